//! Provider profiles as data: what each provider's own documents promise about keys, errors and queries. Where a
//! document is silent the profile assumes the worse.

use counterfoil_core::payments::provider::Rules;
use counterfoil_core::types::time::Span;

/// A provider's contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The name in settings, audit records and answers.
    pub name: &'static str,
    /// The rules decisions are made by.
    pub rules: Rules,
}

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Remembers keys, replays its own errors, can be asked: what most profiles vary.
const BASE: Rules = Rules {
    dedup_window: Some(Span::from_ms(DAY)),
    stores_errors: false,
    reexecutes_errors: false,
    queryable: true,
    // No document says it: the deadline a connector has unless it is set. A connector puts its own here.
    send_within: Span::from_ms(20 * SECOND),
    late_delivery: Span::from_ms(2 * MINUTE),
    query_lag: Span::from_ms(MINUTE),
    key_bytes_max: 64,
};

/// Every profile, one line a provider.
pub const PROFILES: [Profile; 12] = [
    // A provider that keeps every promise one could wish for.
    Profile {
        name: "ideal",
        rules: Rules { dedup_window: Some(Span::from_ms(365 * DAY)), query_lag: Span::ZERO, ..BASE },
    },
    // Stripe v1: at least 24 h, and a 500 is stored and replayed under its key. Its search is documented to be up to an
    // hour behind during outages, which is when it is asked.
    Profile {
        name: "stripe",
        rules: Rules { stores_errors: true, query_lag: Span::from_ms(HOUR), key_bytes_max: 255, ..BASE },
    },
    // Stripe v2: 30 days, failed work is attempted again.
    Profile {
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
    Profile { name: "checkout", rules: Rules { reexecutes_errors: true, ..BASE } },
    // Adyen: 7 days or more, 64 characters, per regional endpoint.
    Profile { name: "adyen", rules: Rules { dedup_window: Some(Span::from_ms(7 * DAY)), ..BASE } },
    // PPRO: 24 h, 4xx are not stored.
    Profile { name: "ppro", rules: Rules { reexecutes_errors: true, ..BASE } },
    // PayPal: the window differs by API; the shortest is assumed.
    Profile {
        name: "paypal",
        rules: Rules { dedup_window: Some(Span::from_ms(3 * HOUR)), key_bytes_max: 38, ..BASE },
    },
    // Braintree's GraphQL API: 30 days, answers with the current state.
    Profile { name: "braintree", rules: Rules { dedup_window: Some(Span::from_ms(30 * DAY)), ..BASE } },
    // Braintree's classic API: a 30-second heuristic is no deduplication.
    Profile { name: "braintree-classic", rules: Rules { dedup_window: None, ..BASE } },
    // FluidPay: 5 minutes.
    Profile { name: "fluidpay", rules: Rules { dedup_window: Some(Span::from_ms(5 * MINUTE)), ..BASE } },
    // Qonto: 30 minutes.
    Profile { name: "qonto", rules: Rules { dedup_window: Some(Span::from_ms(30 * MINUTE)), ..BASE } },
    // TrueLayer: its pages say 6 h and 30 days; the shorter is assumed.
    Profile { name: "truelayer", rules: Rules { dedup_window: Some(Span::from_ms(6 * HOUR)), ..BASE } },
];

impl Profile {
    /// The profile of that name.
    pub fn named(name: &str) -> Option<&'static Profile> {
        PROFILES.iter().find(|profile| profile.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_core::payments::provider::{Step, downstream_key};
    use counterfoil_core::types::digest::MacKey;
    use counterfoil_core::types::id::ChargeId;
    use std::collections::HashSet;

    #[test]
    fn keys_fit_every_profile_and_differ_by_payment_step_and_generation() {
        let mac = MacKey::new(&[1; 32]);
        for profile in &PROFILES {
            let mut keys = HashSet::new();
            for charge in 0..50 {
                for step in [Step::Charge, Step::Authorize, Step::Capture, Step::Void, Step::Refund] {
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
            assert_eq!(keys.len(), 750, "{}", profile.name);
        }
    }

    #[test]
    fn names_are_unique() {
        let names: HashSet<_> = PROFILES.iter().map(|profile| profile.name).collect();
        assert_eq!(names.len(), PROFILES.len());
        assert!(Profile::named("stripe").is_some() && Profile::named("nobody").is_none());
    }
}
