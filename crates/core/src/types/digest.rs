//! SHA-256 and HMAC-SHA-256 over lists of parts. Every part has its length in front, so two
//! different lists never have equal input.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// 32 bytes of SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(domain: &str, parts: &[&[u8]]) -> Digest {
        let mut hash = Sha256::new();
        absorb(domain, parts, |bytes| hash.update(bytes));
        Digest(hash.finalize().into())
    }

    pub const fn from_bytes(bytes: [u8; 32]) -> Digest {
        Digest(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Lower-case hexadecimal.
    pub fn hex(&self) -> String {
        self.0.iter().fold(String::with_capacity(64), |mut text, byte| {
            for nibble in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
            }
            text
        })
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

/// A prepared key for HMAC-SHA-256. `Debug` never shows its bytes.
#[derive(Clone)]
pub struct MacKey(Hmac<Sha256>);

impl MacKey {
    pub fn new(secret: &[u8; 32]) -> MacKey {
        // A 32-byte array is always a valid HMAC key; only a change of the crate could reach the
        // fallback.
        MacKey(
            Hmac::<Sha256>::new_from_slice(secret)
                .unwrap_or_else(|_| Hmac::new(&hmac::digest::Key::<Hmac<Sha256>>::default())),
        )
    }

    pub fn tag(&self, domain: &str, parts: &[&[u8]]) -> Digest {
        let mut mac = self.0.clone();
        absorb(domain, parts, |bytes| mac.update(bytes));
        Digest(mac.finalize().into_bytes().into())
    }

    /// Whether `tag` is the tag of `domain` and `parts`. The comparison takes constant time.
    pub fn is_tag(&self, tag: &Digest, domain: &str, parts: &[&[u8]]) -> bool {
        let mut mac = self.0.clone();
        absorb(domain, parts, |bytes| mac.update(bytes));
        mac.verify_slice(tag.as_bytes()).is_ok()
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKey(***)")
    }
}

/// Passes length and bytes of each part to `update`. Short parts are joined, because each update
/// has overhead.
fn absorb(domain: &str, parts: &[&[u8]], mut update: impl FnMut(&[u8])) {
    let mut together = [0; 192];
    let mut used = 0_usize;
    for part in std::iter::once(domain.as_bytes()).chain(parts.iter().copied()) {
        let length = u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes();
        for bytes in [length.as_slice(), part] {
            let mut end = used.saturating_add(bytes.len());
            if end > together.len() {
                update(together.get(..used).unwrap_or_default());
                (used, end) = (0, bytes.len());
            }
            match together.get_mut(used..end) {
                Some(room) => {
                    room.copy_from_slice(bytes);
                    used = end;
                }
                None => update(bytes),
            }
        }
    }
    update(together.get(..used).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_parts_never_collide() {
        assert_ne!(Digest::of("d", &[b"ab", b"c"]), Digest::of("d", &[b"a", b"bc"]));
        assert_ne!(Digest::of("d", &[b"ab"]), Digest::of("da", &[b"b"]));
        let key = MacKey::new(&[7; 32]);
        assert_ne!(key.tag("d", &[b"ab", b""]), key.tag("d", &[b"ab"]));
        assert_ne!(key.tag("d", &[]), MacKey::new(&[8; 32]).tag("d", &[]));
    }

    /// Joining short parts does not change the digest, at any length.
    #[test]
    fn a_digest_covers_lengths_and_bytes_in_order() {
        let long = vec![0x5a; 400];
        for first in (0..400).step_by(7) {
            for second in [0, 1, 100, 183, 184, 185, 192, 193, 400] {
                let parts = [&long[..first], b"between", &long[..second]];
                let mut joined = Vec::new();
                for part in [b"domain".as_slice()].into_iter().chain(parts) {
                    joined.extend(u64::try_from(part.len()).unwrap().to_be_bytes());
                    joined.extend(part);
                }
                let expected: [u8; 32] = Sha256::digest(&joined).into();
                assert_eq!(Digest::of("domain", &parts).as_bytes(), &expected, "{first} {second}");
            }
        }
    }

    #[test]
    fn only_the_right_tag_is_accepted() {
        let key = MacKey::new(&[7; 32]);
        let tag = key.tag("d", &[b"ab", b"c"]);
        assert!(key.is_tag(&tag, "d", &[b"ab", b"c"]));
        assert!(!key.is_tag(&tag, "d", &[b"a", b"bc"]));
        assert!(!key.is_tag(&tag, "e", &[b"ab", b"c"]));
        assert!(!MacKey::new(&[8; 32]).is_tag(&tag, "d", &[b"ab", b"c"]));
    }

    #[test]
    fn a_digest_is_shown_in_hexadecimal() {
        let mut bytes = [0xa5; 32];
        (bytes[0], bytes[1], bytes[2]) = (0x00, 0x0f, 0xf0);
        let digest = Digest::from_bytes(bytes);
        assert_eq!(digest.hex(), format!("000ff0{}", "a5".repeat(29)));
        assert_eq!(digest.as_bytes(), &bytes);
    }

    #[test]
    fn a_key_never_shows_itself() {
        assert_eq!(format!("{:?}", MacKey::new(&[7; 32])), "MacKey(***)");
    }
}
