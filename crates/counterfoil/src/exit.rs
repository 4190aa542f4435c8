//! The end of a command that failed: one clear sentence on stderr and an exit code.

use std::process::ExitCode;

/// A failed command: exit code and sentence.
#[derive(Debug)]
pub(crate) struct Exit {
    code: u8,
    sentence: String,
}

impl Exit {
    /// Bad settings, an unreachable store or a taken port: nothing was done.
    pub(crate) fn refused(sentence: impl std::fmt::Display) -> Exit {
        Exit { code: 2, sentence: sentence.to_string() }
    }

    /// The work began and failed.
    pub(crate) fn failed(sentence: impl std::fmt::Display) -> Exit {
        Exit { code: 1, sentence: sentence.to_string() }
    }

    /// Prints the sentence and returns the code.
    pub(crate) fn report(self) -> ExitCode {
        eprintln!("counterfoil: {}", self.sentence.trim_end());
        ExitCode::from(self.code)
    }
}
