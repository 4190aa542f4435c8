//! The twelve providers as their documents describe them, in a hurry: hours are seconds here, so that a cell takes
//! seconds. A table of its own and not the product's profiles: what judges does not follow a mistake there.

/// What a provider promises.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contract {
    /// The product's name for it.
    pub(super) profile: &'static str,
    /// It remembers keys so long; nothing if it does not.
    pub(super) window_ms: Option<u64>,
    /// Whether a request that was answered with a 5xx is executed again under its key.
    pub(super) reexecutes: bool,
    /// Queries are behind by so much.
    pub(super) lag_ms: u64,
}

/// A request that was sent is executed within this time or never. Real delays are far below: a busy machine must not
/// make a liar of the provider.
pub(super) const LATE_MS: u64 = 1_500;

const fn keeps(profile: &'static str, window_ms: u64) -> Contract {
    Contract { profile, window_ms: Some(window_ms), reexecutes: false, lag_ms: 200 }
}

/// One line a provider; the windows keep the documents' order.
pub(super) const CONTRACTS: [Contract; 12] = [
    Contract { lag_ms: 1, ..keeps("ideal", 16_000) },
    // Its search is documented to lag far behind.
    Contract { lag_ms: 600, ..keeps("stripe", 12_000) },
    Contract { lag_ms: 600, reexecutes: true, ..keeps("stripe-v2", 14_000) },
    Contract { reexecutes: true, ..keeps("checkout", 12_000) },
    keeps("adyen", 13_000),
    Contract { reexecutes: true, ..keeps("ppro", 12_000) },
    keeps("paypal", 9_000),
    keeps("braintree", 14_000),
    Contract { window_ms: None, ..keeps("braintree-classic", 0) },
    keeps("fluidpay", 5_000),
    keeps("qonto", 7_000),
    keeps("truelayer", 10_000),
];

impl Contract {
    /// What no provider promises: keys for ever, no errors executed again, queries that are never behind.
    pub(super) const BLIND: Contract = Contract { lag_ms: 1, ..keeps("ideal", 86_400_000) };

    /// The server's settings for it.
    pub(super) fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = vec![
            ("COUNTERFOIL_GATEWAY__PROFILE", self.profile.to_owned()),
            ("COUNTERFOIL_GATEWAY__TIMEOUT_MS", "500".to_owned()),
            ("COUNTERFOIL_GATEWAY__LATE_DELIVERY_MS", LATE_MS.to_string()),
            ("COUNTERFOIL_GATEWAY__QUERY_LAG_MS", (self.lag_ms + LATE_MS / 10).to_string()),
            // Failing is what this provider does; it is to be asked all the same.
            ("COUNTERFOIL_GATEWAY__BREAKER_OPEN_MS", "100".to_owned()),
            ("COUNTERFOIL_OUTBOX__BACKOFF_CAP_MS", "200".to_owned()),
        ];
        settings.extend(self.window_ms.map(|ms| ("COUNTERFOIL_GATEWAY__DEDUP_WINDOW_MS", ms.to_string())));
        settings
    }

    /// How the provider behaves at its best, as members of its faults.
    pub(super) fn usual(&self) -> String {
        // One that remembers no keys forgets them at once.
        let window_ms = self.window_ms.unwrap_or(1);
        let Contract { lag_ms, reexecutes, .. } = self;
        format!(r#""dedup_window_ms":{window_ms},"query_lag_ms":{lag_ms},"forget_errors":{reexecutes}"#)
    }
}
