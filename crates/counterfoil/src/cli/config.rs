//! `config`: lists settings and explains them.

use crate::config::{explain, reference};
use crate::exit::Exit;
use clap::Args;
use std::process::ExitCode;

/// Explains all settings, or one.
#[derive(Args, Debug)]
pub(crate) struct Config {
    /// One setting, as `section.name`.
    name: Option<String>,
}

impl Config {
    pub(super) fn run(self) -> Result<ExitCode, Exit> {
        match self.name {
            None => print!("{}", reference()),
            Some(name) => println!("{}", explain(&name).map_err(Exit::refused)?),
        }
        Ok(ExitCode::SUCCESS)
    }
}
