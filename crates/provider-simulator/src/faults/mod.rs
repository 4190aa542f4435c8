//! Faults: the settings of a test, and the injector that decides which request meets one.

mod injector;

use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use injector::{After, Before, FaultInjector};

/// Longest delay of an answer: as long as a hung request hangs.
const LATENCY_MS_MAX: u64 = 600_000;
/// Longest late delivery: a day.
const LATE_DELIVERY_MS_MAX: u64 = 86_400_000;
/// Longest window or lag: the longest dedup window any provider documents, rounded up.
const WINDOW_MS_MAX: u64 = 31 * 86_400_000;

/// How the provider misbehaves. The default is not at all.
///
/// The odds are rolled once for every POST that would execute; replays but for `other_replay`, refusals and queries are
/// spared. When
/// several come up for one request, `drop_before` goes before `error_before`, and after executing `hang_after`
/// before `drop_after` before `error_after`; `duplicate` goes together with any of the latter.
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
    /// Whether the 500s above are what their key replays.
    pub store_errors: bool,
    /// Whether a 500 after executing leaves its key free, so that a retry is executed again.
    pub forget_errors: bool,
    /// Odds of an answer that names another amount than was executed. Its key replays the truth.
    pub wrong_amount: f64,
    /// Odds that a replay is another body than the first: one that says that the request is not finished.
    pub other_replay: f64,
    /// Queries do not see what is younger than this.
    pub query_lag_ms: u64,
    /// A request met by `drop_before` or `hang_after` is executed this much later instead; 0 for never and at
    /// once, respectively. Until then its key is free, and if another request took the key it stays unexecuted.
    pub late_delivery_ms: u64,
    /// Where the dice start; the same seed and the same requests meet the same faults.
    pub seed: Option<u64>,
}

/// Why fault settings were not taken.
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
            // Stripe's own: at least a day.
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
    /// Reads settings from a JSON object; what it does not name is at its default.
    pub(crate) fn parse(json: &[u8]) -> Result<Faults, BadFaults> {
        // A struct could be read from an array too, which nobody means.
        if json.trim_ascii_start().first() != Some(&b'{') {
            return Err(BadFaults { message: "faults are set with a JSON object".to_owned() });
        }
        let faults: Faults =
            serde_json::from_slice(json).map_err(|error| BadFaults { message: error.to_string() })?;
        faults.check()?;
        Ok(faults)
    }

    /// Whether every setting is within its bounds.
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
