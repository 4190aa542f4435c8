//! Structured logs on stderr: text on a terminal, JSON elsewhere.

use crate::config::{LogFormat, Settings};
use crate::exit::Exit;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Starts logging for the life of the process.
pub(crate) fn start(settings: &Settings) -> Result<(), Exit> {
    let filter = EnvFilter::try_new(&settings.log.level).map_err(|error| {
        Exit::refused(format!("log.level cannot be read ({error}); use for example `info`"))
    })?;
    let json = match settings.log.format {
        LogFormat::Json => true,
        LogFormat::Text => false,
        LogFormat::Auto => !std::io::stderr().is_terminal(),
    };
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    let started = if json {
        builder.json().flatten_event(true).try_init()
    } else {
        builder.with_ansi(std::io::stderr().is_terminal()).try_init()
    };
    // Log only the place of a panic: its message may hold anything.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "a task panicked: its request fails, the process continues");
    }));
    started.map_err(|error| Exit::failed(format!("logging could not start: {error}")))
}
