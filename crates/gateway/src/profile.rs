//! Provider profiles as data: the promises of each provider's documents about keys, errors and
//! queries. Where a document is silent, the profile assumes the worse.

use counterfoil_core::outbox::PEER_PROFILE;
use counterfoil_core::payments::provider::Rules;
use counterfoil_core::types::limits::KEY_BYTES_MAX;
use counterfoil_core::types::time::Span;

/// A provider's contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProviderProfile {
    /// The name in settings, audit records and answers.
    pub name: &'static str,
    /// The rules for decisions about payments.
    pub rules: Rules,
}

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The base that most profiles vary: remembers keys, replays its own errors and can be queried.
const BASE: Rules = Rules {
    dedup_window: Some(Span::from_ms(DAY)),
    stores_errors: false,
    reexecutes_errors: false,
    queryable: true,
    // The connector's default timeout, as no document has a value. A connector puts its own here.
    send_within: Span::from_ms(20 * SECOND),
    late_delivery: Span::from_ms(2 * MINUTE),
    query_lag: Span::from_ms(MINUTE),
    key_bytes_max: 64,
};

/// Every profile, one entry per provider.
pub const PROFILES: [ProviderProfile; 12] = [
    // A provider that keeps every promise.
    ProviderProfile {
        name: "ideal",
        rules: Rules { dedup_window: Some(Span::from_ms(365 * DAY)), query_lag: Span::ZERO, ..BASE },
    },
    // Stripe v1: at least 24 h; a 500 is stored and replayed under its key. Its search is
    // documented to lag by up to an hour during outages, which is when we need it.
    ProviderProfile {
        name: "stripe",
        rules: Rules { stores_errors: true, query_lag: Span::from_ms(HOUR), key_bytes_max: 255, ..BASE },
    },
    // Stripe v2: 30 days; failed work is attempted again.
    ProviderProfile {
        name: "stripe-v2",
        rules: Rules {
            dedup_window: Some(Span::from_ms(30 * DAY)),
            reexecutes_errors: true,
            query_lag: Span::from_ms(HOUR),
            key_bytes_max: 255,
            ..BASE
        },
    },
    // Checkout.com: 24 h, but only 2xx answers are saved.
    ProviderProfile { name: "checkout", rules: Rules { reexecutes_errors: true, ..BASE } },
    // Adyen: 7 days or more, 64 characters, per regional endpoint.
    ProviderProfile { name: "adyen", rules: Rules { dedup_window: Some(Span::from_ms(7 * DAY)), ..BASE } },
    // PPRO: 24 h, 4xx are not stored.
    ProviderProfile { name: "ppro", rules: Rules { reexecutes_errors: true, ..BASE } },
    // PayPal: the window differs by API; the shortest is assumed.
    ProviderProfile {
        name: "paypal",
        rules: Rules { dedup_window: Some(Span::from_ms(3 * HOUR)), key_bytes_max: 38, ..BASE },
    },
    // Braintree's GraphQL API: 30 days, answers with the current state.
    ProviderProfile {
        name: "braintree",
        rules: Rules { dedup_window: Some(Span::from_ms(30 * DAY)), ..BASE },
    },
    // Braintree's classic API: a 30-second heuristic is no deduplication.
    ProviderProfile { name: "braintree-classic", rules: Rules { dedup_window: None, ..BASE } },
    // FluidPay: 5 minutes.
    ProviderProfile {
        name: "fluidpay",
        rules: Rules { dedup_window: Some(Span::from_ms(5 * MINUTE)), ..BASE },
    },
    // Qonto: 30 minutes.
    ProviderProfile {
        name: "qonto",
        rules: Rules { dedup_window: Some(Span::from_ms(30 * MINUTE)), ..BASE },
    },
    // TrueLayer: its pages say 6 h and 30 days; the shorter is assumed.
    ProviderProfile {
        name: "truelayer",
        rules: Rules { dedup_window: Some(Span::from_ms(6 * HOUR)), ..BASE },
    },
];

/// A peer's contract: the promises of Counterfoil about transfers. A key and its effect are
/// committed together, so the effect happens once and is replayed as long as the key is kept. Keys
/// are kept for 24 h unless the peer's operator sets less. A peer is not a provider, so this is not
/// one of the profiles.
pub static PEER: ProviderProfile = ProviderProfile {
    name: PEER_PROFILE,
    rules: Rules { query_lag: Span::ZERO, key_bytes_max: KEY_BYTES_MAX, ..BASE },
};

/// The rules of a provider with an unknown profile: no promises at all.
const UNKNOWN_PROVIDER: Rules = Rules {
    dedup_window: None,
    stores_errors: true,
    reexecutes_errors: true,
    queryable: false,
    // The longest timeout allowed; a connector puts its own here.
    send_within: Span::from_ms(10 * MINUTE),
    late_delivery: Span::from_ms(DAY),
    query_lag: Span::from_ms(DAY),
    key_bytes_max: 64,
};

impl ProviderProfile {
    /// The profile of that name.
    pub fn named(name: &str) -> Option<&'static ProviderProfile> {
        PROFILES.iter().chain([&PEER]).find(|profile| profile.name == name)
    }

    /// The rules of the profile of that name; the worst rules if there is none.
    pub fn rules_of(name: &str) -> Rules {
        ProviderProfile::named(name).map_or(UNKNOWN_PROVIDER, |profile| profile.rules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_core::payments::provider::{ProviderStep, downstream_key};
    use counterfoil_core::types::digest::MacKey;
    use counterfoil_core::types::id::ChargeId;
    use std::collections::HashSet;

    #[test]
    fn keys_fit_every_profile_and_differ_by_payment_step_and_generation() {
        let mac = MacKey::new(&[1; 32]);
        for profile in PROFILES.iter().chain([&PEER]) {
            let mut keys = HashSet::new();
            for charge in 0..50 {
                for step in [
                    ProviderStep::Charge,
                    ProviderStep::Authorize,
                    ProviderStep::Capture,
                    ProviderStep::Void,
                    ProviderStep::Refund,
                    ProviderStep::Payout,
                ] {
                    for generation in 1..4 {
                        let charge = ChargeId::from_i64(charge).into();
                        let key = downstream_key(&mac, charge, step, generation, &profile.rules);
                        assert_eq!(key, downstream_key(&mac, charge, step, generation, &profile.rules));
                        assert!((24..=profile.rules.key_bytes_max).contains(&key.len()), "{key}");
                        assert!(key.bytes().all(|byte| byte.is_ascii_alphanumeric()));
                        keys.insert(key);
                    }
                }
            }
            assert_eq!(keys.len(), 900, "{}", profile.name);
        }
    }

    #[test]
    fn names_are_unique() {
        let names: HashSet<_> = PROFILES.iter().chain([&PEER]).map(|profile| profile.name).collect();
        assert_eq!(names.len(), PROFILES.len() + 1);
        assert!(ProviderProfile::named("stripe").is_some() && ProviderProfile::named("nobody").is_none());
        assert_eq!(ProviderProfile::named("counterfoil"), Some(&PEER));
        assert_eq!(ProviderProfile::rules_of("nobody").dedup_window, None, "nothing is promised");
    }
}
