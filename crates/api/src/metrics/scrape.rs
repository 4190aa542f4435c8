//! `GET /metrics`: the Prometheus text format, or OpenMetrics for clients that accept it.

use super::Metrics;
use crate::answer::{self, Answered};
use crate::request::Call;
use counterfoil_wire::problem::{Code, Problem};
use http::HeaderMap;
use http::header::ACCEPT;
use prometheus_client::encoding::text;
use std::collections::HashSet;
use tokio::time::Instant;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The server's metrics, for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "Operation", responses((status = 200, description = "Prometheus text format.", content_type = "text/plain")))]
pub(crate) async fn scrape(call: Call) -> Answered {
    // While the store cannot count, the last counts stay; other metrics show that it is down.
    if let Ok(tally) = call.app.service.tally().await {
        call.app.metrics.set_tally(tally);
    }
    let text = call.app.metrics.text().map_err(|_| Problem::new(Code::InternalError))?;
    Ok(if wants_open_metrics(&call.headers) {
        answer::ok(OPEN_METRICS, text)
    } else {
        answer::ok(PROMETHEUS, prometheus(&text))
    })
}

impl Metrics {
    /// All metrics, in the OpenMetrics text format.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        self.hot_accounts.drop_cool(Instant::now());
        let mut out = String::with_capacity(16_384);
        text::encode(&mut out, &self.registry)?;
        Ok(out)
    }
}

fn wants_open_metrics(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_some_and(|accept| accept.contains("application/openmetrics-text"))
}

/// Converts OpenMetrics to the older Prometheus format, which describes a counter by its full name,
/// with `_total`.
fn prometheus(open_metrics: &str) -> String {
    let counters: HashSet<&str> = open_metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let mut out = String::with_capacity(open_metrics.len() + 512);
    for line in open_metrics.lines().filter(|line| *line != "# EOF") {
        let described = line
            .strip_prefix("# TYPE ")
            .or_else(|| line.strip_prefix("# HELP "))
            .and_then(|rest| rest.split_once(' '))
            .filter(|(name, _)| counters.contains(name));
        match described {
            Some((name, rest)) => {
                let word = line.get(..7).unwrap_or_default();
                out.extend([word, name, "_total ", rest]);
            }
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_core::types::digest::MacKey;
    use counterfoil_core::types::id::AccountId;
    use counterfoil_core::types::reference::References;
    use counterfoil_engine::signal::{Signal, Watch as _};
    use std::time::Duration;

    #[test]
    fn every_metric_of_the_contract_exists_from_the_start() {
        let metrics = Metrics::new();
        // Series of the provider exist once the engine has reported the provider's name.
        metrics.saw(Signal::Breaker { provider: "stripe", state: 0 });
        metrics.saw(Signal::Gateway {
            provider: "stripe",
            step: "charge",
            outcome: "approved",
            took: Duration::from_millis(3),
        });
        metrics.set_references(&References::new(MacKey::new(&[1; 32])));
        metrics.saw(Signal::HotAccount { account: AccountId::from_i64(1), writes: 250 });
        metrics.saw(Signal::ProjectionLag(Duration::from_millis(1_500)));
        let text = prometheus(&metrics.text().unwrap());
        for (name, kind) in [
            ("requests_total", "counter"),
            ("request_seconds", "histogram"),
            ("claims_total", "counter"),
            ("inflight_wait_seconds", "histogram"),
            ("stuck_in_flight", "gauge"),
            ("outbox_pending", "gauge"),
            ("outbox_lag_seconds", "gauge"),
            ("fail_closed_total", "counter"),
            ("key_missing_total", "counter"),
            ("gateway_calls_total", "counter"),
            ("gateway_seconds", "histogram"),
            ("gateway_fence_bypass_total", "counter"),
            ("breaker_state", "gauge"),
            ("store_commit_seconds", "histogram"),
            ("store_commit_batch", "histogram"),
            ("store_conflicts_total", "counter"),
            ("parked", "gauge"),
            ("dead_letters", "gauge"),
            ("projection_lag_seconds", "gauge"),
            ("hot_account_writes_per_second", "gauge"),
            ("cache_requests_total", "counter"),
        ] {
            let line = format!("# TYPE counterfoil_{name} {kind}\n");
            assert!(text.contains(&line), "{line}{text}");
        }
        for sample in [
            "\ncounterfoil_fail_closed_total 0\n",
            "\ncounterfoil_gateway_fence_bypass_total 0\n",
            "\ncounterfoil_gateway_calls_total{provider=\"stripe\",step=\"charge\",outcome=\"approved\"} 1\n",
            "\ncounterfoil_breaker_state{provider=\"stripe\"} 0\n",
            "\ncounterfoil_projection_lag_seconds 1.5\n",
            "\ncounterfoil_hot_account_writes_per_second{account=\"ac_",
            "\ncounterfoil_cache_requests_total{result=\"hit\"} 0\n",
            "\ncounterfoil_claims_total{tenant=\"other\",outcome=\"reclaimed\"} 0\n",
        ] {
            assert!(text.contains(sample), "{sample}{text}");
        }
    }

    #[test]
    fn calls_without_the_fence_are_counted() {
        let metrics = Metrics::new();
        metrics.saw(Signal::FenceBypass);
        let text = prometheus(&metrics.text().unwrap());
        assert!(text.contains("\ncounterfoil_gateway_fence_bypass_total 1\n"), "{text}");
    }
}
