//! The name of a peer: another Counterfoil with its own ledger that can receive money.

use super::limits::PEER_NAME_BYTES_MAX;
use std::fmt;

/// A peer's name: 1–32 lower-case letters, digits and `_`, beginning with a letter. Settings,
/// environment variables, account codes and provider bindings can therefore contain it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerName(String);

/// The text is not a peer's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPeerName;

impl PeerName {
    pub fn parse(text: &str) -> Result<PeerName, BadPeerName> {
        let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if begins && text.len() <= PEER_NAME_BYTES_MAX && text.bytes().all(fits) {
            Ok(PeerName(text.to_owned()))
        } else {
            Err(BadPeerName)
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_plain_and_short() {
        for bad in ["", "Eu", "1eu", "_eu", "e-u", "e u", "e=u", "é", &"e".repeat(33)] {
            assert_eq!(PeerName::parse(bad), Err(BadPeerName), "{bad}");
        }
        for good in ["e", "eu", "eu_west_1", &"e".repeat(32)] {
            assert_eq!(PeerName::parse(good).unwrap().as_str(), good);
        }
    }
}
