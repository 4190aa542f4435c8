//! Structured logs on stderr: readable where a person looks, JSON where a program does.

use crate::config::{LogFormat, Settings};
use crate::exit::Exit;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Starts logging for the life of the process.
pub(crate) fn start(settings: &Settings) -> Result<(), Exit> {
    let filter = EnvFilter::try_new(&settings.log.level)
        .map_err(|error| Exit::refused(format!("log.level cannot be read ({error}); say for example `info`")))?;
    let json = match settings.log.format {
        LogFormat::Json => true,
        LogFormat::Text => false,
        LogFormat::Auto => !std::io::stderr().is_terminal(),
    };
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    let started = if json {
        builder.json().flatten_event(true).try_init()
    } else {
        builder.with_ansi(std::io::stderr().is_terminal()).try_init()
    };
    started.map_err(|error| Exit::failed(format!("logging could not start: {error}")))
}
