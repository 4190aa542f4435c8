//! Metrics by tenant. The engine identifies tenants by id; their names become known when they
//! authenticate.

use super::CHARGES;
use counterfoil_core::types::id::TenantId;
use counterfoil_engine::signal::ClaimOutcome;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Most tenants with separate series. Further tenants share the name `other`, so that labels
/// stay bounded.
pub(super) const TENANTS_MAX: usize = 1_000;
const OTHER: &str = "other";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ClaimLabels {
    tenant: Arc<str>,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct MissingLabels {
    tenant: Arc<str>,
    route: String,
}

pub(super) struct Tenants {
    claims: Family<ClaimLabels, Counter>,
    key_missing: Family<MissingLabels, Counter>,
    known: RwLock<HashMap<i64, Handles>>,
    other: Handles,
}

#[derive(Clone)]
struct Handles {
    name: Arc<str>,
    won: Counter,
    replayed: Counter,
    waited: Counter,
    in_use: Counter,
    mismatch: Counter,
    expired: Counter,
    reclaimed: Counter,
}

impl Tenants {
    pub(super) fn new(
        claims: Family<ClaimLabels, Counter>,
        key_missing: Family<MissingLabels, Counter>,
    ) -> Tenants {
        let other = Handles::new(&claims, OTHER);
        drop(
            key_missing
                .get_or_create(&MissingLabels { tenant: Arc::clone(&other.name), route: CHARGES.to_owned() }),
        );
        Tenants { claims, key_missing, known: RwLock::new(HashMap::new()), other }
    }

    pub(super) fn set_name(&self, tenant: TenantId, name: &str) {
        let is_known = {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            known.contains_key(&tenant.to_i64()) || known.len() >= TENANTS_MAX
        };
        if is_known {
            return;
        }
        let handles = Handles::new(&self.claims, name);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < TENANTS_MAX {
            known.entry(tenant.to_i64()).or_insert(handles);
        }
    }

    pub(super) fn claim(&self, tenant: TenantId, outcome: ClaimOutcome) {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&tenant.to_i64()).unwrap_or(&self.other).of(outcome).inc();
    }

    pub(super) fn key_missing(&self, tenant: TenantId, route: &str) {
        let tenant = {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(&known.get(&tenant.to_i64()).unwrap_or(&self.other).name)
        };
        self.key_missing.get_or_create(&MissingLabels { tenant, route: route.to_owned() }).inc();
    }
}

impl Handles {
    fn new(claims: &Family<ClaimLabels, Counter>, name: &str) -> Handles {
        let name: Arc<str> = Arc::from(name);
        let of = |outcome: ClaimOutcome| {
            claims.get_or_create_owned(&ClaimLabels { tenant: Arc::clone(&name), outcome: outcome.name() })
        };
        Handles {
            won: of(ClaimOutcome::Won),
            replayed: of(ClaimOutcome::Replayed),
            waited: of(ClaimOutcome::Waited),
            in_use: of(ClaimOutcome::InUse),
            mismatch: of(ClaimOutcome::Mismatch),
            expired: of(ClaimOutcome::Expired),
            reclaimed: of(ClaimOutcome::Reclaimed),
            name,
        }
    }

    const fn of(&self, outcome: ClaimOutcome) -> &Counter {
        match outcome {
            ClaimOutcome::Won => &self.won,
            ClaimOutcome::Replayed => &self.replayed,
            ClaimOutcome::Waited => &self.waited,
            ClaimOutcome::InUse => &self.in_use,
            ClaimOutcome::Mismatch => &self.mismatch,
            ClaimOutcome::Expired => &self.expired,
            ClaimOutcome::Reclaimed => &self.reclaimed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenant_names_are_learned_and_their_number_is_bounded() {
        let (claims, missing) = (Family::default(), Family::default());
        let tenants = Tenants::new(Family::clone(&claims), Family::clone(&missing));
        let count = |name: &str| {
            let labels = ClaimLabels { tenant: Arc::from(name), outcome: "won" };
            claims.get(&labels).map_or(0, |counter| counter.get())
        };
        tenants.claim(TenantId::from_i64(1), ClaimOutcome::Won);
        assert_eq!((count("other"), count("t1")), (1, 0));
        for id in 1..=1_500 {
            tenants.set_name(TenantId::from_i64(id), &format!("t{id}"));
            tenants.claim(TenantId::from_i64(id), ClaimOutcome::Won);
        }
        assert_eq!((count("t1"), count("t1000"), count("t1001"), count("other")), (1, 1, 0, 501));
    }
}
