//! The servers that tests talk to: started before them, gone after them, installed first where they are missing.

use crate::failure::{Failure, Result};
use counterfoil_testkit::postgres::{self, Server};
use std::process::Command;

/// What is started.
pub(crate) struct Servers {
    postgres: Server,
}

impl Servers {
    /// Starts everything.
    pub(crate) fn start() -> Result<Servers> {
        if postgres::find().is_err() {
            install("postgresql")?;
        }
        let postgres = Server::start(&[]).map_err(|failure| Failure::new(failure.to_string()))?;
        eprintln!("\nPostgreSQL for the tests: {}", postgres.address());
        Ok(Servers { postgres })
    }

    /// Where it is, for the environment of the tests.
    pub(crate) fn variables(&self) -> [(&'static str, String); 1] {
        [(postgres::VARIABLE, self.postgres.address())]
    }
}

/// Installs a Debian package.
fn install(package: &str) -> Result<()> {
    eprintln!("\n$ apt-get install {package}");
    let apt = |arguments: &[&str]| {
        let done = Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive").status();
        done.is_ok_and(|status| status.success())
    };
    let arguments = ["install", "-y", "--no-install-recommends", package];
    // The list of packages may be older than what the archive still has.
    if apt(&arguments) || (apt(&["update"]) && apt(&arguments)) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "the tests need {package}, which could not be installed: install it by hand (as root: apt-get install {package})"
    )))
}
