//! CPU time of a process and all its threads, from `/proc/PID/stat`.

use crate::failure::{Failure, Result};
use std::time::Duration;

/// Used so far by the process.
pub(crate) fn cpu_of(pid: u32) -> Result<Duration> {
    read(&format!("/proc/{pid}/stat"))
}

/// Used so far by this process.
pub(crate) fn cpu_of_self() -> Result<Duration> {
    read("/proc/self/stat")
}

fn read(path: &str) -> Result<Duration> {
    let stat = std::fs::read_to_string(path).map_err(Failure::while_(format!("reading {path}")))?;
    let ticks = ticks(&stat).ok_or_else(|| Failure::new(format!("{path} is unreadable")))?;
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Ok(Duration::from_micros(ticks.saturating_mul(1_000_000) / per_second))
}

/// User and system time: the 14th and 15th field. The second field is a name and may hold anything, spaces too.
fn ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    user.checked_add(system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_fields_behind_any_name() {
        let stat = "42 (a) b (c)) S 1 42 42 0 -1 4194304 100 0 0 0 17 25 3 4 20 0 5 0 99 1000 10";
        assert_eq!(ticks(stat), Some(42));
        assert_eq!(ticks("42 (x) S 1"), None);
    }

    #[test]
    fn this_process_is_measured() {
        assert!(cpu_of(std::process::id()).unwrap() <= cpu_of_self().unwrap());
        assert!(cpu_of(u32::MAX).is_err());
    }
}
