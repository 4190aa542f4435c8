//! CPU time of a process and all its threads, from `/proc/PID/stat`.

use std::io::{Error, Result};
use std::time::Duration;

/// CPU time of a process so far.
pub fn cpu_of(pid: u32) -> Result<Duration> {
    ticks_of_process(pid).map(|(ticks, _)| time(ticks))
}

/// CPU time of this process so far.
pub fn cpu_of_self() -> Result<Duration> {
    cpu_of(std::process::id())
}

/// CPU time so far of a process and all its children, including those that have ended.
pub fn cpu_of_family(pid: u32) -> Result<Duration> {
    let mut before = ticks_of_process(pid)?;
    loop {
        let living = ticks_of_running_children(pid)?;
        let after = ticks_of_process(pid)?;
        // A child that ended during the count may be counted twice or not at all: count again.
        if after.1 == before.1 {
            return Ok(time(after.0 + after.1 + living));
        }
        before = after;
    }
}

/// Ticks of the process itself, and of its ended children.
fn ticks_of_process(pid: u32) -> Result<(u64, u64)> {
    let [_, user, system, of_the_dead] = read(&format!("/proc/{pid}/stat"))?;
    Ok((user + system, of_the_dead))
}

/// Ticks of its running children.
fn ticks_of_running_children(pid: u32) -> Result<u64> {
    let mut all = 0;
    for entry in std::fs::read_dir("/proc")?.flatten() {
        // Not every entry is a process, and a process may have ended meanwhile.
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        if let Some([parent, user, system, _]) = fields(&stat)
            && parent == u64::from(pid)
        {
            all += user + system;
        }
    }
    Ok(all)
}

fn read(path: &str) -> Result<[u64; 4]> {
    let unreadable = |why: &dyn std::fmt::Display| Error::other(format!("reading {path}: {why}"));
    let stat = std::fs::read_to_string(path).map_err(|error| unreadable(&error))?;
    fields(&stat).ok_or_else(|| unreadable(&"it has not the fields it should have"))
}

fn time(ticks: u64) -> Duration {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_micros(ticks.saturating_mul(1_000_000) / per_second)
}

/// The parent (the 4th field), user and system time (the 14th and 15th), and both of ended children
/// (the 16th and 17th). The second field is a name and may contain anything, spaces too.
fn fields(stat: &str) -> Option<[u64; 4]> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    let field = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some([field(1)?, field(11)?, field(12)?, field(13)?.checked_add(field(14)?)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_any_process_name() {
        let stat = "42 (a) b (c)) S 1 42 42 0 -1 4194304 100 0 0 0 17 25 3 4 20 0 5 0 99 1000 10";
        assert_eq!(fields(stat), Some([1, 17, 25, 7]));
        assert_eq!(fields("42 (x) S 1"), None);
    }

    #[test]
    fn this_process_is_measured() {
        assert!(cpu_of(std::process::id()).unwrap() <= cpu_of_self().unwrap());
        assert!(cpu_of(u32::MAX).is_err());
        assert!(cpu_of_self().unwrap() <= cpu_of_family(std::process::id()).unwrap());
        assert!(cpu_of_family(u32::MAX).is_err());
    }
}
