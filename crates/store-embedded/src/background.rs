//! Threads whose work seldom keeps anybody waiting.

use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::gettid;

/// Lower than that of the threads which answer.
const NICER_BY: i32 = 5;

/// Lets this thread stand back where processors are short: under load those who answer would wait for it.
pub(crate) fn stand_back() {
    let thread = Some(gettid());
    let lowered = getpriority_process(thread)
        .and_then(|nice| setpriority_process(thread, nice.saturating_add(NICER_BY)));
    if let Err(error) = lowered {
        tracing::debug!(%error, "a background thread keeps its priority");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_thread_that_asks_stands_back() {
        let nice = || getpriority_process(Some(gettid())).unwrap();
        let before = nice();
        let lowered = std::thread::spawn(move || {
            stand_back();
            nice()
        });
        // The lowest priority there is stays what it is.
        assert_eq!(lowered.join().unwrap(), (before + NICER_BY).min(19));
        assert_eq!(nice(), before);
    }
}
