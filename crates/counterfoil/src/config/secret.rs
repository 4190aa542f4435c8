//! A URL that may carry a credential.

use std::fmt;

/// A URL or path whose credential is masked when printed; [`reveal`](SecretUrl::reveal) returns it
/// in full.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SecretUrl(String);

impl SecretUrl {
    pub(super) fn new(url: &str) -> SecretUrl {
        SecretUrl(url.to_owned())
    }

    /// The full URL with its credential, for opening it, never for printing.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    pub(super) fn has_credential_and_host(&self) -> bool {
        self.parts().is_some_and(|(scheme, credential, host)| {
            !scheme.is_empty()
                && !credential.is_empty()
                && !host.starts_with(['/', '?', '#', ':'])
                && !host.is_empty()
        })
    }

    /// Scheme, credential, and the rest from the host on. The last `@` ends the credential, because
    /// a key may contain an `@`.
    fn parts(&self) -> Option<(&str, &str, &str)> {
        let (scheme, rest) = self.0.split_once("://")?;
        let (credential, host) = rest.rsplit_once('@')?;
        Some((scheme, credential, host))
    }
}

impl fmt::Display for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = match self.parts() {
            Some((scheme, _, host)) => {
                write!(f, "{scheme}://***@")?;
                host
            }
            None => &self.0,
        };
        // Drivers also accept passwords as parameters.
        match shown.split_once('?') {
            Some((place, _)) => write!(f, "{place}?***"),
            None => f.write_str(shown),
        }
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretUrl({self})")
    }
}
