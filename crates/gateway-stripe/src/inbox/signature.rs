//! Stripe's signatures: `Stripe-Signature: t=SECONDS,v1=HEX[,v1=HEX…]`. Each `v1` is the
//! HMAC-SHA-256 of `SECONDS.BODY`, keyed with the secret as written, `whsec_` included.
//!
//! A body is only accepted if a holder of a secret signed exactly these bytes at the stated time,
//! at most [`TOLERANCE`] from now. Comparison takes constant time. Schemes other than `v1` are
//! ignored. Pure.

use counterfoil_core::types::limits::{SIGNATURE_BYTES_MAX, SIGNATURE_PARTS_MAX};
use counterfoil_core::types::time::{Span, Time};
use counterfoil_gateway::inbox::Unopened;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;
use std::fmt::Write;

/// Largest difference between now and a signature's time, before or after.
pub const TOLERANCE: Span = Span::from_ms(300_000);

const TAG_BYTES: usize = 32;

/// A secret for verifying webhooks, with its HMAC state prepared. Never printed.
#[derive(Clone)]
pub struct WebhookSecret(Hmac<Sha256>);

impl WebhookSecret {
    /// Takes the secret as shown on the provider's pages.
    pub fn new(text: &str) -> WebhookSecret {
        // HMAC takes keys of any length; only a changed crate could reach the fallback.
        let mac = Hmac::<Sha256>::new_from_slice(text.as_bytes());
        WebhookSecret(mac.unwrap_or_else(|_| Hmac::new(&hmac::digest::Key::<Hmac<Sha256>>::default())))
    }

    /// The header that the provider would send with `body` at that second.
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

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(***)")
    }
}

/// Checks that `header` signs `body` under one of `secrets`, at a time near `now`.
///
/// The signature is checked before the time, so that a refusal for age is only given to genuine
/// webhooks.
pub fn verify(secrets: &[WebhookSecret], header: &[u8], body: &[u8], now: Time) -> Result<(), Unopened> {
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

/// A parsed header.
struct Signed<'a> {
    /// The time as written, because this text was signed.
    seconds: &'a str,
    at: Time,
    tags: Vec<[u8; TAG_BYTES]>,
}

impl Signed<'_> {
    /// Requires exactly one time and at least one `v1`; unknown names belong to other schemes.
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

/// Parses seconds in canonical form: no sign, no leading zero.
fn instant(seconds: &str) -> Option<Time> {
    let count: i64 = seconds.parse().ok()?;
    (count >= 0 && count.to_string() == seconds).then_some(Time::from_ms(count.checked_mul(1_000)?))
}

/// Parses 64 lower-case hexadecimal digits.
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
