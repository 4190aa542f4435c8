//! Contracts of twelve providers, from their documentation, with seconds for hours. The table is
//! separate from the product's profiles, so the judge does not repeat a mistake in them.

/// A provider's promises.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contract {
    /// Name of the product's profile.
    pub(super) profile: &'static str,
    /// How long keys are remembered; `None` if they are not.
    pub(super) window_ms: Option<u64>,
    /// Whether a request answered with 5xx is executed again under its key.
    pub(super) reexecutes: bool,
    /// Delay until queries show an effect.
    pub(super) lag_ms: u64,
}

/// A sent request is executed within this time or never. Real delays are far shorter, so that a
/// busy machine does not break the provider's promise.
pub(super) const LATE_MS: u64 = 1_500;

const fn keeps(profile: &'static str, window_ms: u64) -> Contract {
    Contract { profile, window_ms: Some(window_ms), reexecutes: false, lag_ms: 200 }
}

/// One line per provider. The windows keep the order of the documented ones.
pub(super) const CONTRACTS: [Contract; 12] = [
    Contract { lag_ms: 1, ..keeps("ideal", 16_000) },
    // Its documentation says that search results lag.
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
    /// The promises of no real provider: keys remembered forever, errors never executed again,
    /// queries without lag.
    pub(super) const BLIND: Contract = Contract { lag_ms: 1, ..keeps("ideal", 86_400_000) };

    /// The server's settings for this provider.
    pub(super) fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = vec![
            ("COUNTERFOIL_GATEWAY__PROFILE", self.profile.to_owned()),
            ("COUNTERFOIL_GATEWAY__TIMEOUT_MS", "500".to_owned()),
            ("COUNTERFOIL_GATEWAY__LATE_DELIVERY_MS", LATE_MS.to_string()),
            ("COUNTERFOIL_GATEWAY__QUERY_LAG_MS", (self.lag_ms + LATE_MS / 10).to_string()),
            // This provider fails all the time; the circuit breaker must let calls through.
            ("COUNTERFOIL_GATEWAY__BREAKER_OPEN_MS", "100".to_owned()),
            ("COUNTERFOIL_OUTBOX__BACKOFF_CAP_MS", "200".to_owned()),
        ];
        settings.extend(self.window_ms.map(|ms| ("COUNTERFOIL_GATEWAY__DEDUP_WINDOW_MS", ms.to_string())));
        settings
    }

    /// The provider's behaviour without faults, as members of its fault settings.
    pub(super) fn usual(&self) -> String {
        // A provider without deduplication forgets keys at once.
        let window_ms = self.window_ms.unwrap_or(1);
        let Contract { lag_ms, reexecutes, .. } = self;
        format!(r#""dedup_window_ms":{window_ms},"query_lag_ms":{lag_ms},"forget_errors":{reexecutes}"#)
    }
}
