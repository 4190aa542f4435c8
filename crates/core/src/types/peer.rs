//! The name of a peer: another Counterfoil, with ledger of its own, that money can be sent to.

use super::limits::PEER_NAME_BYTES_MAX;
use std::fmt;

/// A peer's name: 1–32 lower-case letters, digits and `_`, the first a letter. So it can stand in a setting's name, in the
/// name of a variable, in an account's code and in what a payment is bound to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerName(String);

/// A text that is no peer's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPeerName;

impl PeerName {
    /// Reads a name.
    pub fn parse(text: &str) -> Result<PeerName, BadPeerName> {
        let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if begins && text.len() <= PEER_NAME_BYTES_MAX && text.bytes().all(fits) {
            Ok(PeerName(text.to_owned()))
        } else {
            Err(BadPeerName)
        }
    }

    /// The name.
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
