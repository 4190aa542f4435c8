//! Webhooks. The signature is checked again by a naive parser and an HMAC written out; the one used
//! field of an event is read again by serde.
//!
//! An input is a header, a line feed and a body. In the header `$T` stands for now, `$O` and `$F`
//! for the oldest and the latest valid second, `$o` and `$f` for one beyond. `$A` and `$B` stand
//! for the tag of the header's first time and the body under either live secret, `$Z` for the tag
//! under an unknown secret. Random bytes would never form a valid signature.

use crate::target::{Check, Kind, Target, texts};
use counterfoil_core::types::time::Time;
use counterfoil_gateway::Inbox;
use counterfoil_gateway::inbox::{ProviderEvent, Unopened};
use counterfoil_gateway_stripe::StripeInbox;
use counterfoil_gateway_stripe::signature::{WebhookSecret, verify};
use serde_json::Value;
use sha2::{Digest, Sha256};

pub(super) const TARGET: Target = Target {
    name: "webhook",
    seeds,
    words: &[
        "t=$T",
        "t=$O",
        "t=$F",
        "t=$o",
        "t=$f",
        "t=0",
        "t=-1",
        "t=",
        "v1=$A",
        "v1=$B",
        "v1=$Z",
        "v0=$A",
        "v1=",
        "v0=",
        "$A",
        "$B",
        "$T",
        ",",
        "=",
        " ",
        "\n",
        "{",
        "}",
        "\"data\":",
        "\"object\":",
        "\"metadata\":",
        "\"counterfoil_payment\":",
        "\"ch_1\"",
        "\"\\u0000\"",
        "null",
        "[",
        "]",
        ":",
        "9999999999999",
        "1e999",
        "\u{feff}",
    ],
    length_max: 2_048,
    short: 20_000,
    start,
};

const NOW: i64 = 1_790_000_000;
const LIVE: [&str; 2] =
    ["whsec_old_secret_0123456789", "whsec_new_secret_which_is_longer_than_a_block_of_sixty_four_bytes"];
const STRANGER: &str = "whsec_stranger_0123456789";
const NOBODY: &str = "whsec_nobody_signs_with_this";

fn seeds() -> Vec<Vec<u8>> {
    let event = r#"{"id":"evt_1","type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","amount":1250,"metadata":{"counterfoil_payment":"ch_1"}}}}"#;
    let headers = [
        "t=$T,v1=$A",
        "t=$T,v1=$B",
        "t=$O,v1=$B",
        "t=$F,v1=$A",
        "t=$o,v1=$A",
        "t=$f,v1=$A",
        "t=$T,v1=$Z",
        "t=$T,v1=$Z,v1=$A",
        "v0=$A,t=$T,v1=$B",
        "t=$T,v0=$A",
        "t=$T,t=$T,v1=$A",
        "",
    ];
    let mut seeds: Vec<Vec<u8>> =
        headers.iter().map(|header| format!("{header}\n{event}").into_bytes()).collect();
    seeds.extend(texts(&[
        "t=$T,v1=$A\n{}",
        "t=$T,v1=$A\n[]",
        "t=$T,v1=$A\n{\"data\":{\"object\":{\"metadata\":null}}}",
    ]));
    seeds
}

fn start() -> Check {
    let inbox = StripeInbox::new("stripe", LIVE.map(WebhookSecret::new).to_vec());
    let now = Time::from_ms(NOW * 1_000);
    Box::new(move |input| {
        let at = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
        let (template, body) = (&input[..at], input.get(at + 1..).unwrap_or_default());
        let header = expanded(template, body);
        let opened = inbox.open(Some(&header), body, now);
        let signed = if opened == Err(Unopened::Unreadable) { Ok(()) } else { opened.clone().map(|_| ()) };
        assert_eq!(signed, naive(&header, body), "{}", header.escape_ascii());
        if signed.is_ok() {
            only_these(&header, body, now);
            read_twice(&opened, body);
        }
        assert_eq!(inbox.open(None, body, now), Err(Unopened::Missing));
        // Letters, because digits do not count: number of parts, and number of tags.
        let count =
            |which: fn(&[u8]) -> bool| header.split(|byte| *byte == b',').filter(|part| which(part)).count();
        let (parts, tags) = (count(|_| true).min(18), count(|part| part.starts_with(b"v1=")).min(4));
        let parts = ["p".repeat(parts), "v".repeat(tags)].concat();
        Kind::of(format!("{:?} {parts}", opened.map(|event| event.payment.is_some())))
    })
}

/// Checks that an accepted header is accepted only for these bytes, at this time and with these
/// secrets.
fn only_these(header: &[u8], body: &[u8], now: Time) {
    let live = LIVE.map(WebhookSecret::new);
    let refused = |secrets: &[WebhookSecret], header: &[u8], body: &[u8]| {
        assert_eq!(verify(secrets, header, body, now), Err(Unopened::NoMatch), "{}", header.escape_ascii());
    };
    refused(&[WebhookSecret::new(NOBODY)], header, body);
    refused(&live, header, &[body, b" "].concat());
    if let Some((last, rest)) = body.split_last() {
        refused(&live, header, rest);
        refused(&live, header, &[rest, &[last ^ 1]].concat());
    }
    let early = Time::from_ms((NOW - 601) * 1_000);
    assert_eq!(verify(&live, header, body, early), Err(Unopened::FromTheFuture));
    let late = Time::from_ms((NOW + 601) * 1_000);
    assert_eq!(verify(&live, header, body, late), Err(Unopened::TooOld));
}

fn read_twice(opened: &Result<ProviderEvent, Unopened>, body: &[u8]) {
    let second = std::str::from_utf8(body).ok().and_then(|text| serde_json::from_str::<Value>(text).ok());
    match (opened, second) {
        (Ok(event), Some(second)) => {
            assert!(second.is_object(), "an event is an object");
            let named = second.pointer("/data/object/metadata/counterfoil_payment").and_then(Value::as_str);
            assert_eq!(event.payment.as_deref(), named);
        }
        // Serde has no numbers beyond doubles.
        (Ok(_), None) => assert!(std::str::from_utf8(body).is_ok(), "an event is text"),
        (Err(why), _) => assert_eq!(*why, Unopened::Unreadable),
    }
}

fn expanded(template: &[u8], body: &[u8]) -> Vec<u8> {
    let mut header = template.to_vec();
    let times = [("$T", NOW), ("$O", NOW - 300), ("$F", NOW + 300), ("$o", NOW - 301), ("$f", NOW + 301)];
    for (word, seconds) in times {
        header = replaced(&header, word, &seconds.to_string());
    }
    let text = String::from_utf8_lossy(&header).into_owned();
    let time = text.split(',').find_map(|part| part.strip_prefix("t=")).unwrap_or("0");
    for (word, secret) in [("$A", LIVE[0]), ("$B", LIVE[1]), ("$Z", STRANGER)] {
        if text.contains(word) {
            header = replaced(&header, word, &tag(secret, time, body));
        }
    }
    header
}

fn replaced(text: &[u8], word: &str, by: &str) -> Vec<u8> {
    let (word, mut rest, mut out) = (word.as_bytes(), text, Vec::new());
    while let Some(at) = rest.windows(word.len()).position(|window| window == word) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(by.as_bytes());
        rest = &rest[at + word.len()..];
    }
    out.extend_from_slice(rest);
    out
}

/// The whole check again, on texts, in the plainest way.
fn naive(header: &[u8], body: &[u8]) -> Result<(), Unopened> {
    let Ok(text) = String::from_utf8(header.to_vec()) else { return Err(Unopened::Malformed) };
    let parts: Vec<&str> = text.split(',').collect();
    let of = |name: &str| -> Vec<&str> { parts.iter().filter_map(|part| part.strip_prefix(name)).collect() };
    let (times, tags) = (of("t="), of("v1="));
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let hex = |text: &str| text.len() == 64 && text.chars().all(|c| "0123456789abcdef".contains(c));
    let formed = text.len() <= 1_024
        && parts.len() <= 16
        && parts.iter().all(|part| part.contains('='))
        && times.len() == 1
        && digits(times[0])
        && (times[0] == "0" || !times[0].starts_with('0'))
        && times[0].parse::<i128>().is_ok_and(|seconds| seconds <= i128::from(i64::MAX / 1_000))
        && !tags.is_empty()
        && tags.iter().all(|tag| hex(tag));
    if !formed {
        return Err(Unopened::Malformed);
    }
    if !LIVE.iter().any(|secret| tags.contains(&tag(secret, times[0], body).as_str())) {
        return Err(Unopened::NoMatch);
    }
    let age = i128::from(NOW) - times[0].parse::<i128>().expect("digits");
    match age {
        301.. => Err(Unopened::TooOld),
        ..=-301 => Err(Unopened::FromTheFuture),
        _ => Ok(()),
    }
}

/// HMAC-SHA-256 of `time.body`, written out from RFC 2104.
fn tag(secret: &str, time: &str, body: &[u8]) -> String {
    let mut key = [0_u8; 64];
    let short = if secret.len() > 64 { Sha256::digest(secret).to_vec() } else { secret.as_bytes().to_vec() };
    key[..short.len()].copy_from_slice(&short);
    let padded = |pad: u8| key.map(|byte| byte ^ pad);
    let inner = Sha256::digest([&padded(0x36)[..], time.as_bytes(), b".", body].concat());
    let outer = Sha256::digest([&padded(0x5c)[..], &inner[..]].concat());
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    outer.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
