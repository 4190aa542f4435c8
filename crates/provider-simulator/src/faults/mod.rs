//! Faults: the settings of a test, and the injector that decides which request meets one.

mod injector;

use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use injector::{After, Before, FaultInjector};

/// Longest delay of an answer: as long as a hung request hangs.
const LATENCY_MS_MAX: u64 = 600_000;
/// Longest late delivery: a day.
const LATE_DELIVERY_MS_MAX: u64 = 86_400_000;
/// Longest window or lag: the longest documented dedup window of any provider, rounded up.
const WINDOW_MS_MAX: u64 = 31 * 86_400_000;

/// The provider's faults. By default there are none.
///
/// The odds are drawn once for every POST that would execute. Refusals, queries and replays have no
/// faults, except `other_replay`. If several faults meet one request, `drop_before` wins over
/// `error_before`; after executing, `hang_after` wins over `drop_after`, which wins over
/// `error_after`. `duplicate` combines with any of the last three.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// Delays every answer but refusals. The request is executed even if the client does not wait.
    pub latency_ms: u64,
    /// Odds of a 500 without executing.
    pub error_before: f64,
    /// Odds of a 500 after executing.
    pub error_after: f64,
    /// Odds of a cut connection without executing.
    pub drop_before: f64,
    /// Odds of a cut connection after executing.
    pub drop_after: f64,
    /// Odds of never answering after executing.
    pub hang_after: f64,
    /// Odds of executing twice.
    pub duplicate: f64,
    /// Idempotency keys are forgotten this long after their answer.
    pub dedup_window_ms: u64,
    /// Whether a key replays a 500 from the faults above.
    pub store_errors: bool,
    /// Whether a 500 after executing leaves its key free, so that a retry is executed again.
    pub forget_errors: bool,
    /// Odds of an answer with another amount than the executed one. Replays of the key have the
    /// true amount.
    pub wrong_amount: f64,
    /// Odds that a replay differs from the first answer: it says that the request is not finished.
    pub other_replay: f64,
    /// Queries do not see effects younger than this.
    pub query_lag_ms: u64,
    /// A request met by `drop_before` or `hang_after` is executed this much later instead. With 0
    /// it is never executed, or at once, respectively. Until then its key is free, and if another
    /// request takes the key, the late one is not executed.
    pub late_delivery_ms: u64,
    /// The seed; the same seed and the same requests meet the same faults.
    pub seed: Option<u64>,
}

/// Rejected fault settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadFaults {
    message: String,
}

impl Default for Faults {
    fn default() -> Self {
        Faults {
            latency_ms: 0,
            error_before: 0.0,
            error_after: 0.0,
            drop_before: 0.0,
            drop_after: 0.0,
            hang_after: 0.0,
            duplicate: 0.0,
            // Stripe documents at least a day.
            dedup_window_ms: 86_400_000,
            store_errors: false,
            forget_errors: false,
            wrong_amount: 0.0,
            other_replay: 0.0,
            query_lag_ms: 0,
            late_delivery_ms: 0,
            seed: None,
        }
    }
}

impl Faults {
    /// Reads settings from a JSON object; missing members have their defaults.
    pub(crate) fn parse(json: &[u8]) -> Result<Faults, BadFaults> {
        // Serde would read a struct from an array too, which is surely a mistake.
        if json.trim_ascii_start().first() != Some(&b'{') {
            return Err(BadFaults { message: "faults are set with a JSON object".to_owned() });
        }
        let faults: Faults =
            serde_json::from_slice(json).map_err(|error| BadFaults { message: error.to_string() })?;
        faults.check()?;
        Ok(faults)
    }

    /// Checks the bounds of every setting.
    pub(crate) fn check(&self) -> Result<(), BadFaults> {
        let odds = [
            ("error_before", self.error_before),
            ("error_after", self.error_after),
            ("drop_before", self.drop_before),
            ("drop_after", self.drop_after),
            ("hang_after", self.hang_after),
            ("duplicate", self.duplicate),
            ("wrong_amount", self.wrong_amount),
            ("other_replay", self.other_replay),
        ];
        let times = [
            ("latency_ms", self.latency_ms, LATENCY_MS_MAX),
            ("late_delivery_ms", self.late_delivery_ms, LATE_DELIVERY_MS_MAX),
            ("dedup_window_ms", self.dedup_window_ms, WINDOW_MS_MAX),
            ("query_lag_ms", self.query_lag_ms, WINDOW_MS_MAX),
        ];
        if let Some((name, value)) = odds.into_iter().find(|(_, value)| !(0.0..=1.0).contains(value)) {
            return Err(BadFaults { message: format!("{name} is {value}, but odds go from 0 to 1") });
        }
        if let Some((name, value, max)) = times.into_iter().find(|(_, value, max)| value > max) {
            return Err(BadFaults { message: format!("{name} is {value}, but goes up to {max}") });
        }
        Ok(())
    }
}

impl fmt::Display for BadFaults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "The faults stay as they were: {}.", self.message)
    }
}

impl std::error::Error for BadFaults {}

#[cfg(test)]
mod tests {
    use super::Faults;

    #[test]
    fn an_empty_object_is_no_faults() {
        assert_eq!(Faults::parse(b" {}"), Ok(Faults::default()));
    }

    #[test]
    fn bad_settings_are_refused_by_name() {
        for (json, named) in [
            (r#"{"latency":1}"#, "latency"),
            (r#"{"error_before":1.5}"#, "error_before"),
            (r#"{"drop_after":-0.1}"#, "drop_after"),
            (r#"{"duplicate":"often"}"#, "often"),
            (r#"{"latency_ms":600001}"#, "latency_ms"),
            (r#"{"latency_ms":-1}"#, "-1"),
            (r#"{"latency_ms":1,"latency_ms":2}"#, "latency_ms"),
            ("[]", "JSON object"),
            ("", "JSON object"),
            ("{", "EOF"),
        ] {
            let message = Faults::parse(json.as_bytes()).unwrap_err().to_string();
            assert!(message.contains(named), "{json}: {message}");
        }
        let not_a_number = Faults { hang_after: f64::NAN, ..Faults::default() };
        assert!(not_a_number.check().unwrap_err().to_string().contains("hang_after"));
    }
}
