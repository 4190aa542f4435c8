//! The connector's settings, and the parser of its URL. Error texts never repeat any part of the
//! URL, because a malformed URL may carry the key anywhere.

use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::peer::PeerName;
use counterfoil_core::types::time::Span;
use counterfoil_transport::{Address, AddressError, TransportConfigError, TransportLimits};

/// The settings of a connector.
#[derive(Clone, Debug)]
pub struct PeerSettings {
    /// The name of the peer in our settings.
    pub name: PeerName,
    /// `counterfoil+https://KEY@host[:port]/ACCOUNT`: an API key of the peer, and the id of our
    /// account there.
    pub url: Masked<String>,
    /// How long the peer keeps its keys: its `idempotency.replay_window_ms`, or less.
    pub retention: Span,
    pub limits: TransportLimits,
}

/// The reasons for refusing settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerSettingsError {
    #[error(
        "the URL of a peer must begin with counterfoil+http:// or counterfoil+https://; write counterfoil+https://KEY@host[:port]/ac_…"
    )]
    Scheme,
    #[error(
        "the URL of a peer names no API key; write it before the host, as in counterfoil+https://KEY@host/ac_…"
    )]
    KeyMissing,
    /// The credential has characters that no API key has.
    #[error(
        "the API key in the URL of a peer may only hold letters, digits, '_', '-', '.' and '~'; check for a stray ':', '%' or '@'"
    )]
    KeyUnusable,
    #[error("the URL of a peer has no usable host; write host or host:port after the '@'")]
    Host,
    /// The account is missing or named by its code.
    #[error(
        "the URL of a peer must end with the id of our account there, as in counterfoil+https://KEY@host/ac_…; the id and not the code, because it is of one tenant of one store"
    )]
    Account,
    #[error("the timeout of peers must be above zero and at most 10 minutes")]
    Timeout,
    #[error("the connections to a peer must be between 1 and 10000")]
    Connections,
    #[error("TLS could not be set up for a peer ({0}); use another build of the program")]
    Tls(String),
}

impl From<AddressError> for PeerSettingsError {
    fn from(bad: AddressError) -> PeerSettingsError {
        match bad {
            AddressError::Scheme => PeerSettingsError::Scheme,
            AddressError::KeyMissing => PeerSettingsError::KeyMissing,
            AddressError::KeyUnusable => PeerSettingsError::KeyUnusable,
            AddressError::Host => PeerSettingsError::Host,
            AddressError::Query => PeerSettingsError::Account,
        }
    }
}

impl From<TransportConfigError> for PeerSettingsError {
    fn from(why: TransportConfigError) -> PeerSettingsError {
        match why {
            TransportConfigError::Timeout => PeerSettingsError::Timeout,
            TransportConfigError::Connections => PeerSettingsError::Connections,
            TransportConfigError::Tls(why) => PeerSettingsError::Tls(why),
        }
    }
}

/// Parses the URL; its path is the id of an account.
pub(crate) fn address(url: &str) -> Result<Address, PeerSettingsError> {
    let address = Address::parse(url, "counterfoil")?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let id = address.path.strip_prefix("ac_").filter(|rest| !rest.is_empty());
    if id.is_some_and(|rest| rest.bytes().all(plain)) { Ok(address) } else { Err(PeerSettingsError::Account) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_peer_urls_are_refused_without_showing_the_key() {
        for (url, error) in [
            ("https://SECRET@host/ac_1", PeerSettingsError::Scheme),
            ("stripe+https://SECRET@host/ac_1", PeerSettingsError::Scheme),
            ("counterfoil+http://host/ac_1", PeerSettingsError::KeyMissing),
            ("counterfoil+http://SECRET:x@host/ac_1", PeerSettingsError::KeyUnusable),
            ("counterfoil+http://SECRET@/ac_1", PeerSettingsError::Host),
            ("counterfoil+http://SECRET@host", PeerSettingsError::Account),
            ("counterfoil+http://SECRET@host/", PeerSettingsError::Account),
            ("counterfoil+http://SECRET@host/ac_", PeerSettingsError::Account),
            ("counterfoil+http://SECRET@host/clearing:us", PeerSettingsError::Account),
            ("counterfoil+http://SECRET@host/ac_1/more", PeerSettingsError::Account),
            ("counterfoil+http://SECRET@host/ac_1?x=y", PeerSettingsError::Account),
        ] {
            let refused = address(url).err();
            assert_eq!(refused.as_ref(), Some(&error), "{url}");
            assert!(!format!("{error} {error:?}").contains("SECRET"));
        }
        let address = address("counterfoil+https://sk_1@EU.example.com:8443/ac_9Az").unwrap();
        assert_eq!(
            (address.endpoint.as_str(), address.path.as_str()),
            ("https://eu.example.com:8443", "ac_9Az")
        );
    }
}
