//! Progress of long commands: a bar on a terminal, occasional lines in a log.

use indicatif::{ProgressBar, ProgressStyle};
use std::cell::Cell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Minimum interval between lines in a log.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// A progress display on stderr, removed when dropped.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    total: u64,
    last_line: Cell<Option<Instant>>,
}

impl Progress {
    pub(crate) fn new(total: u64) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(total);
            if let Ok(style) = ProgressStyle::with_template("{bar:40.cyan/blue} {pos}/{len} {elapsed} {msg}")
            {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Progress { bar, total, last_line: Cell::new(None) }
    }

    pub(crate) fn show(&self, done: u64, message: &str) {
        if let Some(bar) = &self.bar {
            bar.set_position(done);
            bar.set_message(message.to_owned());
        } else if self.last_line.get().is_none_or(|last_line| last_line.elapsed() >= LINE_EVERY) {
            self.last_line.set(Some(Instant::now()));
            eprintln!("{done}/{} {message}", self.total);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
