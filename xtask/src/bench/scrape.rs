//! Two figures from the server's metrics: durable writes, and the change sets in them.

use crate::failure::{Failure, Result};
use counterfoil_testkit::http;
use std::net::SocketAddr;
use std::time::Duration;

const NAME: &str = "counterfoil_store_commit_batch";

/// Counters since the server's start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Commits {
    pub(super) writes: f64,
    pub(super) sets: f64,
}

impl Commits {
    pub(super) async fn read(server: SocketAddr) -> Result<Commits> {
        let answer = http::ask(server, "GET", "/metrics", "", Duration::from_secs(10)).await;
        let text =
            String::from_utf8_lossy(&answer.map_err(Failure::while_("reading /metrics"))?.body).into_owned();
        Commits::parse(&text).ok_or_else(|| Failure::new(format!("/metrics has no {NAME}")))
    }

    fn parse(text: &str) -> Option<Commits> {
        let value = |suffix: &str| {
            let mut values = text.lines().filter_map(|line| {
                let rest = line.strip_prefix(NAME)?.strip_prefix(suffix)?;
                // A label or a space follows the name; otherwise it is a longer name.
                let rest = rest
                    .strip_prefix('{')
                    .map_or(Some(rest), |labelled| labelled.split_once('}').map(|it| it.1))?;
                rest.strip_prefix(' ')?.split(' ').next()?.parse::<f64>().ok()
            });
            let first = values.next()?;
            Some(values.fold(first, |sum, value| sum + value))
        };
        Some(Commits { writes: value("_count")?, sets: value("_sum")? })
    }

    /// Change sets per durable write since `earlier`.
    pub(super) fn per_write_since(self, earlier: Commits) -> f64 {
        (self.sets - earlier.sets) / (self.writes - earlier.writes).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_and_count_are_found_among_other_lines() {
        let text = "# TYPE counterfoil_store_commit_batch histogram\n\
                    counterfoil_store_commit_batch_sum 12.0\n\
                    counterfoil_store_commit_batch_count 3\n\
                    counterfoil_store_commit_batch_bucket{le=\"1.0\"} 2\n\
                    counterfoil_store_commit_batches_count 9\n";
        let first = Commits { writes: 3.0, sets: 12.0 };
        assert_eq!(Commits::parse(text), Some(first));
        let labelled = text.replace("_sum ", "_sum{store=\"embedded\"} ");
        assert_eq!(Commits::parse(&labelled), Some(first));
        let later = Commits { writes: 5.0, sets: 20.0 };
        assert!((later.per_write_since(first) - 4.0).abs() < f64::EPSILON);
        assert_eq!(Commits::parse(""), None);
    }
}
