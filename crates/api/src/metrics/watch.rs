//! Turns the engine's signals into metrics.

use super::{GatewayLabels, Metrics, ProviderLabel};
use counterfoil_engine::signal::{Signal, Watch};
use tokio::time::Instant;

impl Watch for Metrics {
    fn saw(&self, signal: Signal) {
        match signal {
            Signal::Claim { tenant, outcome } => self.tenants.claim(tenant, outcome),
            Signal::Waited(took) => self.inflight_wait_seconds.observe(took.as_secs_f64()),
            Signal::Gateway { provider, step, outcome, took } => {
                let labels = GatewayLabels { provider, step, outcome };
                self.gateway_calls.get_or_create(&labels).inc();
                self.gateway_seconds.observe(took.as_secs_f64());
            }
            Signal::Breaker { provider, state } => {
                self.breaker_state.get_or_create(&ProviderLabel { provider }).set(state);
            }
            Signal::Commit(took) => self.store_commit_seconds.observe(took.as_secs_f64()),
            Signal::Cache { hit } => {
                if hit { &self.cache_hits } else { &self.cache_misses }.inc();
            }
            Signal::FenceBypass => {
                self.gateway_fence_bypass.inc();
            }
            Signal::Conflict => {
                self.store_conflicts.inc();
            }
            Signal::FailClosed => {
                self.fail_closed.inc();
            }
            Signal::ProjectionLag(lag) => {
                self.projection_lag_seconds.set(lag.as_secs_f64());
            }
            Signal::HotAccount { account, writes } => {
                self.hot_accounts.report(account, writes, Instant::now());
            }
        }
    }
}
