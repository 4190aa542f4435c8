//! Settings of the connector, and the reading of its URL. No sentence here repeats any part of the URL: a URL that is
//! wrong may carry the key anywhere.

use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::peer::PeerName;
use counterfoil_core::types::time::Span;
use counterfoil_transport::{Address, BadAddress, TransportConfigError, TransportLimits};

/// What a connector is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the peer is called here.
    pub name: PeerName,
    /// `counterfoil+https://KEY@host[:port]/ACCOUNT`: an API key of the peer, and the id of our account there.
    pub url: Masked<String>,
    /// How long the peer keeps its keys: its `idempotency.replay_window_ms`, or less.
    pub retention: Span,
    /// What the connector may take.
    pub limits: TransportLimits,
}

/// Why a connector cannot be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Another scheme, or none.
    #[error(
        "the URL of a peer must begin with counterfoil+http:// or counterfoil+https://; write counterfoil+https://KEY@host[:port]/ac_…"
    )]
    Scheme,
    /// No credential.
    #[error(
        "the URL of a peer names no API key; write it before the host, as in counterfoil+https://KEY@host/ac_…"
    )]
    KeyMissing,
    /// A credential with characters that no API key has.
    #[error(
        "the API key in the URL of a peer may only hold letters, digits, '_', '-', '.' and '~'; check for a stray ':', '%' or '@'"
    )]
    KeyUnusable,
    /// No host, or not a host.
    #[error("the URL of a peer has no usable host; write host or host:port after the '@'")]
    Host,
    /// No account, or one by its code.
    #[error(
        "the URL of a peer must end with the id of our account there, as in counterfoil+https://KEY@host/ac_…; the id and not the code, because it is of one tenant of one store"
    )]
    Account,
    /// A deadline of zero or beyond reason.
    #[error("the timeout of peers must be above zero and at most 10 minutes")]
    Timeout,
    /// No connections at all, or too many.
    #[error("the connections to a peer must be between 1 and 10000")]
    Connections,
    /// The TLS library could not be set up.
    #[error("TLS could not be set up for a peer ({0}); use another build of the program")]
    Tls(String),
}

impl From<BadAddress> for SettingsError {
    fn from(bad: BadAddress) -> SettingsError {
        match bad {
            BadAddress::Scheme => SettingsError::Scheme,
            BadAddress::KeyMissing => SettingsError::KeyMissing,
            BadAddress::KeyUnusable => SettingsError::KeyUnusable,
            BadAddress::Host => SettingsError::Host,
            BadAddress::Query => SettingsError::Account,
        }
    }
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

/// Takes the URL apart; its path is an account's id.
pub(crate) fn address(url: &str) -> Result<Address, SettingsError> {
    let address = Address::parse(url, "counterfoil")?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let id = address.path.strip_prefix("ac_").filter(|rest| !rest.is_empty());
    if id.is_some_and(|rest| rest.bytes().all(plain)) { Ok(address) } else { Err(SettingsError::Account) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_a_key_a_host_and_an_accounts_id_is_refused_without_showing_the_key() {
        for (url, error) in [
            ("https://SECRET@host/ac_1", SettingsError::Scheme),
            ("stripe+https://SECRET@host/ac_1", SettingsError::Scheme),
            ("counterfoil+http://host/ac_1", SettingsError::KeyMissing),
            ("counterfoil+http://SECRET:x@host/ac_1", SettingsError::KeyUnusable),
            ("counterfoil+http://SECRET@/ac_1", SettingsError::Host),
            ("counterfoil+http://SECRET@host", SettingsError::Account),
            ("counterfoil+http://SECRET@host/", SettingsError::Account),
            ("counterfoil+http://SECRET@host/ac_", SettingsError::Account),
            ("counterfoil+http://SECRET@host/clearing:us", SettingsError::Account),
            ("counterfoil+http://SECRET@host/ac_1/more", SettingsError::Account),
            ("counterfoil+http://SECRET@host/ac_1?x=y", SettingsError::Account),
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
