//! Servers for the tests: installed if missing, started before the tests, stopped after them.

use crate::failure::{Failure, Result};
use counterfoil_testkit::postgres::{self, Server};
use counterfoil_testkit::{faketime, redis};
use std::process::Command;

pub(crate) struct Servers {
    postgres: Server,
}

impl Servers {
    /// Starts PostgreSQL. Tests that need Redis start it themselves, so Redis is only installed, as
    /// is libfaketime.
    pub(crate) fn start() -> Result<Servers> {
        if faketime::find().is_err() {
            install(faketime::PACKAGE)?;
        }
        if redis::find().is_err() {
            install("redis-server")?;
        }
        let postgres = postgres(&[])?;
        eprintln!("\nPostgreSQL for the tests: {}", postgres.address());
        Ok(Servers { postgres })
    }

    /// Environment variables that tell tests the server's address.
    pub(crate) fn variables(&self) -> [(&'static str, String); 1] {
        [(postgres::VARIABLE, self.postgres.address())]
    }
}

/// Starts a PostgreSQL server with additional settings.
pub(crate) fn postgres(settings: &[(&str, &str)]) -> Result<Server> {
    if postgres::find().is_err() {
        install("postgresql")?;
    }
    Server::start(settings).map_err(|failure| Failure::new(failure.to_string()))
}

/// Installs a Debian package.
pub(crate) fn install(package: &str) -> Result<()> {
    eprintln!("\n$ apt-get install {package}");
    let apt = |arguments: &[&str]| {
        let done = Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive").status();
        done.is_ok_and(|status| status.success())
    };
    let arguments = ["install", "-y", "--no-install-recommends", package];
    // The package list may name versions that the archive no longer has.
    if apt(&arguments) || (apt(&["update"]) && apt(&arguments)) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{package} is needed and could not be installed: install it by hand (as root: apt-get install {package})"
    )))
}
