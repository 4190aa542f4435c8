//! The parameters of a run, and their bounds.

use std::net::SocketAddr;
use std::time::Duration;

use crate::LoadError;

/// More connections would measure the scheduler. The number has four digits in a key.
pub const CONNECTIONS_MAX: usize = 4096;
/// A day; longer soak tests need other tools.
const DURATION_MAX: Duration = Duration::from_hours(24);
/// Leaves room for the numbers of connection and request below the 255 bytes of an idempotency key.
const KEY_PREFIX_BYTES_MAX: usize = 64;
/// Far above any API key, far below a server's limit of headers.
const HEADER_VALUE_BYTES_MAX: usize = 512;

/// A closed-loop run: every connection sends its next request after the answer to the last one.
/// Without `Debug`, because it contains a secret.
#[derive(Clone)]
pub struct Plan {
    pub addr: SocketAddr,
    /// Value of the `Host` header.
    pub host: String,
    /// Sent as `Authorization: Bearer`.
    pub api_key: String,
    /// Connections, each with one request in flight.
    pub connections: usize,
    /// Length of the measurement, after the warm-up.
    pub duration: Duration,
    /// Percentage of requests that repeat an earlier one of the same connection; 100 sends only
    /// repeats.
    pub replay_percent: u8,
    /// Time under load that is not measured.
    pub warmup: Duration,
    /// Prefix of every idempotency key. Must differ from run to run, or requests turn into replays.
    pub key_prefix: String,
}

impl Plan {
    /// Checks all bounds, before anything is sent.
    pub(crate) fn check(&self) -> Result<(), LoadError> {
        if !(1..=CONNECTIONS_MAX).contains(&self.connections) {
            return Err(LoadError::Plan("connections must be 1 to 4096"));
        }
        if self.replay_percent > 100 {
            return Err(LoadError::Plan("the replay percentage must be 0 to 100"));
        }
        if self.duration.is_zero() || self.duration > DURATION_MAX || self.warmup > DURATION_MAX {
            return Err(LoadError::Plan(
                "the duration must be above zero, and it and the warm-up at most a day",
            ));
        }
        let prefix = self.key_prefix.as_bytes();
        if !(1..=KEY_PREFIX_BYTES_MAX).contains(&prefix.len()) || !prefix.iter().copied().all(is_key_byte) {
            return Err(LoadError::Plan("the key prefix must be 1 to 64 letters, digits, '-' or '_'"));
        }
        if !is_header_value(&self.host) {
            return Err(LoadError::Plan("the host must be 1 to 512 visible ASCII characters"));
        }
        if !is_header_value(&self.api_key) {
            return Err(LoadError::Plan("the API key must be 1 to 512 visible ASCII characters"));
        }
        Ok(())
    }
}

pub(crate) fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn is_header_value(value: &str) -> bool {
    (1..=HEADER_VALUE_BYTES_MAX).contains(&value.len()) && value.bytes().all(|b| b.is_ascii_graphic())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn small(addr: SocketAddr) -> Plan {
        Plan {
            addr,
            host: "localhost".to_owned(),
            api_key: "sk_test_demo".to_owned(),
            connections: 4,
            duration: Duration::from_millis(150),
            replay_percent: 0,
            warmup: Duration::ZERO,
            key_prefix: "run1".to_owned(),
        }
    }

    #[test]
    fn plans_out_of_bounds_are_refused() {
        let plan = small("127.0.0.1:1".parse().unwrap());
        assert!(plan.check().is_ok());
        let odd = [
            Plan { connections: 0, ..plan.clone() },
            Plan { connections: CONNECTIONS_MAX + 1, ..plan.clone() },
            Plan { replay_percent: 101, ..plan.clone() },
            Plan { duration: Duration::ZERO, ..plan.clone() },
            Plan { warmup: Duration::MAX, ..plan.clone() },
            Plan { key_prefix: String::new(), ..plan.clone() },
            Plan { key_prefix: "a b".to_owned(), ..plan.clone() },
            Plan { api_key: "sk\r\nX: 1".to_owned(), ..plan.clone() },
            Plan { host: String::new(), ..plan },
        ];
        for (number, plan) in odd.iter().enumerate() {
            assert!(matches!(plan.check(), Err(LoadError::Plan(_))), "plan {number}");
        }
    }
}
