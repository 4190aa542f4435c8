//! Stripe's signatures: `Stripe-Signature: t=SECONDS,v1=HEX[,v1=HEX…]`, each the HMAC-SHA-256 of `SECONDS.BODY` under a
//! secret as it is written, `whsec_` included.
//!
//! Promises: a body is only ever accepted if somebody with a secret signed exactly these bytes at the time that stands
//! beside the signature, not more than [`TOLERANCE`] from now; how long a comparison takes says nothing about where two
//! signatures differ. Signatures of other schemes than `v1` are not looked at. Pure.

use counterfoil_core::types::limits::{SIGNATURE_BYTES_MAX, SIGNATURE_PARTS_MAX};
use counterfoil_core::types::time::{Span, Time};
use counterfoil_gateway::inbox::Unopened;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;
use std::fmt::Write;

/// How far from now a signature's time may be, before or after.
pub const TOLERANCE: Span = Span::from_ms(300_000);

/// The bytes of a signature.
const TAG_BYTES: usize = 32;

/// A secret the provider signs with, prepared once. It never shows itself.
#[derive(Clone)]
pub struct Secret(Hmac<Sha256>);

impl Secret {
    /// The secret as the provider's pages show it.
    pub fn new(text: &str) -> Secret {
        // HMAC takes keys of any length; the fallback can only be reached by a change of the crate.
        let mac = Hmac::<Sha256>::new_from_slice(text.as_bytes());
        Secret(mac.unwrap_or_else(|_| Hmac::new(&hmac::digest::Key::<Hmac<Sha256>>::default())))
    }

    /// The header with which the provider would send `body` at that second.
    pub fn sign(&self, seconds: i64, body: &[u8]) -> String {
        let tag = self.over(&seconds.to_string(), body).finalize().into_bytes();
        tag.iter().fold(format!("t={seconds},v1="), |mut header, byte| {
            // Writing to a string cannot fail.
            let _ = write!(header, "{byte:02x}");
            header
        })
    }

    fn over(&self, seconds: &str, body: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(seconds.as_bytes());
        mac.update(b".");
        mac.update(body);
        mac
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// Whether `header` says that somebody with one of `secrets` signed `body`, and not too far from `now`.
///
/// Whose it is comes first: what is said about its age is said of the provider's own bytes only.
pub fn verify(secrets: &[Secret], header: &[u8], body: &[u8], now: Time) -> Result<(), Unopened> {
    let signed = Signed::read(header).ok_or(Unopened::Malformed)?;
    let matches = secrets.iter().any(|secret| {
        let mac = secret.over(signed.seconds, body);
        signed.tags.iter().any(|tag| mac.clone().verify_slice(tag).is_ok())
    });
    if !matches {
        return Err(Unopened::NoMatch);
    }
    if signed.at.plus(TOLERANCE) < now {
        return Err(Unopened::TooOld);
    }
    if now.plus(TOLERANCE) < signed.at {
        return Err(Unopened::FromTheFuture);
    }
    Ok(())
}

/// A header, taken apart.
struct Signed<'a> {
    /// The time as it was written: that text is what was signed.
    seconds: &'a str,
    at: Time,
    tags: Vec<[u8; TAG_BYTES]>,
}

impl Signed<'_> {
    /// One time and at least one `v1`; whatever else is named is another scheme's.
    fn read(header: &[u8]) -> Option<Signed<'_>> {
        if header.len() > SIGNATURE_BYTES_MAX {
            return None;
        }
        let text = std::str::from_utf8(header).ok()?;
        if text.split(',').count() > SIGNATURE_PARTS_MAX {
            return None;
        }
        let (mut time, mut tags) = (None, Vec::new());
        for part in text.split(',') {
            match part.split_once('=')? {
                ("t", _) if time.is_some() => return None,
                ("t", seconds) => time = Some((seconds, instant(seconds)?)),
                ("v1", hex) => tags.push(tag(hex)?),
                (_, _) => {}
            }
        }
        let (seconds, at) = time.filter(|_| !tags.is_empty())?;
        Some(Signed { seconds, at, tags })
    }
}

/// The instant of a count of seconds, written as numbers are: no sign, no zero before it.
fn instant(seconds: &str) -> Option<Time> {
    let count: i64 = seconds.parse().ok()?;
    (count >= 0 && count.to_string() == seconds).then_some(Time::from_ms(count.checked_mul(1_000)?))
}

/// 64 hexadecimal digits in lower case, as the provider writes them.
fn tag(hex: &str) -> Option<[u8; TAG_BYTES]> {
    let mut tag = [0; TAG_BYTES];
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    if pairs.len() != TAG_BYTES || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in tag.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(tag)
}

const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
