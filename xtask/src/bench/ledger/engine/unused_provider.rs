//! A provider that is never called: ledger commands need none.

use counterfoil_core::outbox::ProviderBinding;
use counterfoil_core::payments::provider::{LookupResult, ProviderOutcome, Rules};
use counterfoil_core::types::time::Span;
use counterfoil_gateway::{Gateway, ProviderCall, ProviderLookup};

pub(super) struct UnusedProvider;

impl Gateway for UnusedProvider {
    fn binding(&self) -> ProviderBinding {
        ProviderBinding { profile: "nobody".into(), endpoint: "nowhere".into() }
    }

    fn rules(&self, _: &ProviderBinding) -> Rules {
        Rules {
            dedup_window: None,
            stores_errors: false,
            reexecutes_errors: false,
            queryable: false,
            send_within: Span::ZERO,
            late_delivery: Span::ZERO,
            query_lag: Span::ZERO,
            key_bytes_max: 64,
        }
    }

    async fn call(&self, _: ProviderCall) -> ProviderOutcome {
        ProviderOutcome::NotSent
    }

    async fn lookup(&self, _: ProviderLookup) -> LookupResult {
        LookupResult::Nothing
    }
}
