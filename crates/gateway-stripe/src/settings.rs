//! The connector's settings, and the parser of its URL. Error texts never repeat any part of the
//! URL, because a malformed URL may carry the key anywhere.

use counterfoil_core::payments::provider::Rules;
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::time::Span;
use counterfoil_gateway::ProviderProfile;
use counterfoil_transport::{Address, AddressError, TransportConfigError};
use std::time::Duration;

/// Bounds that the operator knows better than the profile; `None` keeps the profile's value.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProfileOverrides {
    /// How long keys are remembered. A profile without deduplication stays without.
    pub dedup_window: Option<Span>,
    /// A request is executed at most this long after it was sent.
    pub late_delivery: Option<Span>,
    /// A query sees everything executed at least this long ago.
    pub query_lag: Option<Span>,
}

impl ProfileOverrides {
    /// Applies the overrides to `rules`.
    pub(crate) fn of(self, rules: Rules) -> Rules {
        Rules {
            dedup_window: rules.dedup_window.map(|window| self.dedup_window.unwrap_or(window)),
            late_delivery: self.late_delivery.unwrap_or(rules.late_delivery),
            query_lag: self.query_lag.unwrap_or(rules.query_lag),
            ..rules
        }
    }
}

/// The settings of a connector.
#[derive(Clone, Debug)]
pub struct StripeSettings {
    /// `stripe+http://KEY@host:port` or `stripe+https://KEY@host[:port]`.
    pub url: Masked<String>,
    /// The contract of the provider behind the URL.
    pub profile: &'static ProviderProfile,
    pub bounds: ProfileOverrides,
    /// Longest time for one call: connecting, sending and reading the whole response.
    pub timeout: Duration,
    /// Concurrent requests; also the number of connections kept open.
    pub connections_max: usize,
}

/// The reasons for refusing settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StripeSettingsError {
    #[error(
        "the gateway URL must begin with stripe+http:// or stripe+https://; write stripe+https://KEY@host[:port]"
    )]
    Scheme,
    #[error("the gateway URL names no API key; write it before the host, as in stripe+https://KEY@host")]
    KeyMissing,
    /// The credential has characters that no API key has.
    #[error(
        "the API key in the gateway URL may only hold letters, digits, '_', '-', '.' and '~'; check for a stray ':', '%' or '@'"
    )]
    KeyUnusable,
    #[error("the gateway URL has no usable host; write host or host:port after the '@'")]
    Host,
    #[error("the gateway URL must end after its host and port; remove the path, query or fragment")]
    Path,
    #[error("the gateway timeout must be above zero and at most 10 minutes")]
    Timeout,
    #[error("the gateway's connections must be between 1 and 10000")]
    Connections,
    #[error("TLS could not be set up for the gateway ({0}); use another build of the program")]
    Tls(String),
}

/// Parses the URL, which must end after its host.
pub(crate) fn address(url: &str) -> Result<Address, StripeSettingsError> {
    let address = Address::parse(url, "stripe").map_err(|bad| match bad {
        AddressError::Scheme => StripeSettingsError::Scheme,
        AddressError::KeyMissing => StripeSettingsError::KeyMissing,
        AddressError::KeyUnusable => StripeSettingsError::KeyUnusable,
        AddressError::Host => StripeSettingsError::Host,
        AddressError::Query => StripeSettingsError::Path,
    })?;
    if address.path.is_empty() { Ok(address) } else { Err(StripeSettingsError::Path) }
}

impl From<TransportConfigError> for StripeSettingsError {
    fn from(why: TransportConfigError) -> StripeSettingsError {
        match why {
            TransportConfigError::Timeout => StripeSettingsError::Timeout,
            TransportConfigError::Connections => StripeSettingsError::Connections,
            TransportConfigError::Tls(why) => StripeSettingsError::Tls(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_parsed() {
        for (url, endpoint, is_https) in [
            ("stripe+http://sk_test_1@127.0.0.1:8080", "http://127.0.0.1:8080", false),
            ("stripe+http://sk_test_1@127.0.0.1:8080/", "http://127.0.0.1:8080", false),
            ("stripe+https://sk_test_1@API.stripe.com", "https://api.stripe.com", true),
            ("stripe+https://sk_test_1@api.stripe.com:8443", "https://api.stripe.com:8443", true),
            ("stripe+http://sk_test_1@[::1]:80", "http://[::1]:80", false),
        ] {
            let address = address(url).unwrap_or_else(|error| panic!("{url}: {error}"));
            assert_eq!((address.endpoint.as_str(), address.is_https), (endpoint, is_https));
            assert_eq!(address.key.reveal(), "sk_test_1");
        }
    }

    #[test]
    fn other_urls_are_refused_without_showing_the_key() {
        for (url, error) in [
            ("", StripeSettingsError::Scheme),
            ("https://SECRET@host", StripeSettingsError::Scheme),
            ("stripe://SECRET@host", StripeSettingsError::Scheme),
            ("SECRET", StripeSettingsError::Scheme),
            ("stripe+http://host:1", StripeSettingsError::KeyMissing),
            ("stripe+http://@host:1", StripeSettingsError::KeyMissing),
            ("stripe+http://SECRET:x@host", StripeSettingsError::KeyUnusable),
            ("stripe+http://SECRET%20@host", StripeSettingsError::KeyUnusable),
            ("stripe+http://SECRET\r\nX: y@host", StripeSettingsError::KeyUnusable),
            ("stripe+http://SECRET@x@host", StripeSettingsError::KeyUnusable),
            ("stripe+http://SECRET@", StripeSettingsError::Host),
            ("stripe+http://SECRET@:80", StripeSettingsError::Host),
            ("stripe+http://SECRET@host:", StripeSettingsError::Host),
            ("stripe+http://SECRET@host:99999", StripeSettingsError::Host),
            ("stripe+http://SECRET@ho st", StripeSettingsError::Host),
            ("stripe+http://SECRET@host/v1", StripeSettingsError::Path),
            ("stripe+http://SECRET@host?a=b", StripeSettingsError::Path),
        ] {
            let refused = address(url).err();
            assert_eq!(refused.as_ref(), Some(&error), "{url:?}");
            assert!(!format!("{error} {error:?}").contains("SECRET"));
        }
    }
}
