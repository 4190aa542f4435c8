//! The effect log: one JSON line per effect, handed to the operating system before the effect is
//! applied.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::Effect;
use crate::answer::Json;

/// An open log file; lines are appended.
pub(crate) struct Log {
    file: File,
}

impl Log {
    pub(crate) fn open(path: &Path) -> io::Result<Log> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Log { file })
    }

    /// Writes the line in one unbuffered call, so that a killed process leaves whole lines.
    pub(crate) fn append(&mut self, effect: &Effect) -> io::Result<()> {
        let mut line = Json::with_capacity(256);
        effect.write(&mut line);
        line.raw("\n");
        self.file.write_all(&line.into_bytes())
    }
}
