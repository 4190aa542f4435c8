//! The priority of background threads.

use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::gettid;

/// Background threads are this much nicer than request threads.
const NICER_BY: i32 = 5;

/// Lowers this thread's priority so that request threads win under load.
pub(crate) fn lower_thread_priority() {
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
    fn only_the_calling_thread_is_lowered() {
        let nice = || getpriority_process(Some(gettid())).unwrap();
        let before = nice();
        let lowered = std::thread::spawn(move || {
            lower_thread_priority();
            nice()
        });
        // 19 is the lowest priority there is.
        assert_eq!(lowered.join().unwrap(), (before + NICER_BY).min(19));
        assert_eq!(nice(), before);
    }
}
