//! How a command ends when it cannot do its work: one clear sentence on stderr and a code.

use std::process::ExitCode;

/// A refusal.
#[derive(Debug)]
pub(crate) struct Exit {
    code: u8,
    sentence: String,
}

impl Exit {
    /// Bad settings, an unreachable store, a taken port: nothing was done.
    pub(crate) fn refused(sentence: impl std::fmt::Display) -> Exit {
        Exit { code: 2, sentence: sentence.to_string() }
    }

    /// The work was begun and failed.
    pub(crate) fn failed(sentence: impl std::fmt::Display) -> Exit {
        Exit { code: 1, sentence: sentence.to_string() }
    }

    /// Says it.
    pub(crate) fn tell(self) -> ExitCode {
        eprintln!("counterfoil: {}", self.sentence.trim_end());
        ExitCode::from(self.code)
    }
}
