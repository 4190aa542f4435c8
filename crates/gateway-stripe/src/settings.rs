//! Settings of the connector, and the reading of its URL. No sentence here repeats any part of the URL: a URL that
//! is wrong may carry the key anywhere.

use counterfoil_core::payments::provider::Rules;
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::time::Span;
use counterfoil_gateway::ProviderProfile;
use counterfoil_transport::{Address, BadAddress, TransportConfigError};
use std::time::Duration;

/// Bounds of the provider's contract that its operator knows better than the profile; what is not given stays.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    /// How long keys are remembered. A profile that remembers none stays so.
    pub dedup_window: Option<Span>,
    /// A request is executed at most this long after it was sent.
    pub late_delivery: Option<Span>,
    /// A query sees everything executed at least this long ago.
    pub query_lag: Option<Span>,
}

impl Bounds {
    /// The rules within these bounds.
    pub(crate) fn of(self, rules: Rules) -> Rules {
        Rules {
            dedup_window: rules.dedup_window.map(|window| self.dedup_window.unwrap_or(window)),
            late_delivery: self.late_delivery.unwrap_or(rules.late_delivery),
            query_lag: self.query_lag.unwrap_or(rules.query_lag),
            ..rules
        }
    }
}

/// What a connector is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `stripe+http://KEY@host:port` or `stripe+https://KEY@host[:port]`.
    pub url: Masked<String>,
    /// The contract of the provider behind the URL.
    pub profile: &'static ProviderProfile,
    /// What is known better.
    pub bounds: Bounds,
    /// How long one call may take: connecting, sending and reading the whole answer.
    pub timeout: Duration,
    /// Requests that may be under way at once, and connections kept open between them.
    pub connections_max: usize,
}

/// Why a connector cannot be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Another scheme, or none.
    #[error(
        "the gateway URL must begin with stripe+http:// or stripe+https://; write stripe+https://KEY@host[:port]"
    )]
    Scheme,
    /// No credential.
    #[error("the gateway URL names no API key; write it before the host, as in stripe+https://KEY@host")]
    KeyMissing,
    /// A credential with characters that no API key has.
    #[error(
        "the API key in the gateway URL may only hold letters, digits, '_', '-', '.' and '~'; check for a stray ':', '%' or '@'"
    )]
    KeyUnusable,
    /// No host, or not a host.
    #[error("the gateway URL has no usable host; write host or host:port after the '@'")]
    Host,
    /// More than a host.
    #[error("the gateway URL must end after its host and port; remove the path, query or fragment")]
    Path,
    /// A deadline of zero or beyond reason.
    #[error("the gateway timeout must be above zero and at most 10 minutes")]
    Timeout,
    /// No connections at all, or too many.
    #[error("the gateway's connections must be between 1 and 10000")]
    Connections,
    /// The TLS library could not be set up.
    #[error("TLS could not be set up for the gateway ({0}); use another build of the program")]
    Tls(String),
}

/// Takes the URL apart; there is nothing after its host.
pub(crate) fn address(url: &str) -> Result<Address, SettingsError> {
    let address = Address::parse(url, "stripe").map_err(|bad| match bad {
        BadAddress::Scheme => SettingsError::Scheme,
        BadAddress::KeyMissing => SettingsError::KeyMissing,
        BadAddress::KeyUnusable => SettingsError::KeyUnusable,
        BadAddress::Host => SettingsError::Host,
        BadAddress::Query => SettingsError::Path,
    })?;
    if address.path.is_empty() { Ok(address) } else { Err(SettingsError::Path) }
}

impl From<TransportConfigError> for SettingsError {
    fn from(why: TransportConfigError) -> SettingsError {
        match why {
            TransportConfigError::Timeout => SettingsError::Timeout,
            TransportConfigError::Connections => SettingsError::Connections,
            TransportConfigError::Tls(why) => SettingsError::Tls(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_taken_apart() {
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
    fn everything_else_is_refused_without_showing_the_key() {
        for (url, error) in [
            ("", SettingsError::Scheme),
            ("https://SECRET@host", SettingsError::Scheme),
            ("stripe://SECRET@host", SettingsError::Scheme),
            ("SECRET", SettingsError::Scheme),
            ("stripe+http://host:1", SettingsError::KeyMissing),
            ("stripe+http://@host:1", SettingsError::KeyMissing),
            ("stripe+http://SECRET:x@host", SettingsError::KeyUnusable),
            ("stripe+http://SECRET%20@host", SettingsError::KeyUnusable),
            ("stripe+http://SECRET\r\nX: y@host", SettingsError::KeyUnusable),
            ("stripe+http://SECRET@x@host", SettingsError::KeyUnusable),
            ("stripe+http://SECRET@", SettingsError::Host),
            ("stripe+http://SECRET@:80", SettingsError::Host),
            ("stripe+http://SECRET@host:", SettingsError::Host),
            ("stripe+http://SECRET@host:99999", SettingsError::Host),
            ("stripe+http://SECRET@ho st", SettingsError::Host),
            ("stripe+http://SECRET@host/v1", SettingsError::Path),
            ("stripe+http://SECRET@host?a=b", SettingsError::Path),
        ] {
            let refused = address(url).err();
            assert_eq!(refused.as_ref(), Some(&error), "{url:?}");
            assert!(!format!("{error} {error:?}").contains("SECRET"));
        }
    }
}
