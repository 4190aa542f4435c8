//! The provider contracts that matter to the protocol. The unit of time is a lease.

use crate::state::{LEASE, TICK};
use counterfoil_core::payments::provider::Rules;
use counterfoil_core::types::time::Span;

/// A provider's contract, and whether a charge can be completed under it.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    pub name: &'static str,
    pub rules: Rules,
}

/// Longer than any run of the model.
const FOR_GOOD: Span = Span::from_ms(1_000 * TICK);

const IDEAL: Rules = Rules {
    dedup_window: Some(FOR_GOOD),
    stores_errors: false,
    reexecutes_errors: false,
    queryable: true,
    // A worker checks its lease and sends in one step.
    send_within: Span::ZERO,
    late_delivery: LEASE,
    query_lag: Span::ZERO,
    key_bytes_max: 64,
};

pub const PROFILES: [Profile; 6] = [
    Profile { name: "deduplicates", rules: IDEAL },
    Profile { name: "stores errors", rules: Rules { stores_errors: true, ..IDEAL } },
    Profile { name: "executes errors again", rules: Rules { reexecutes_errors: true, ..IDEAL } },
    Profile { name: "forgets keys", rules: Rules { dedup_window: Some(Span::from_ms(2 * TICK)), ..IDEAL } },
    Profile { name: "does not deduplicate", rules: Rules { dedup_window: None, ..IDEAL } },
    Profile {
        name: "neither deduplicates nor answers",
        rules: Rules { dedup_window: None, queryable: false, ..IDEAL },
    },
];
