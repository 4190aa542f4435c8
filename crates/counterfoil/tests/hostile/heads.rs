//! Bad headers: keys, API keys, media types, lengths, and several faults at once.

use crate::bad::{BadRequest, Expected, Request};
use crate::bodies::Target;
use crate::routes::Route;
use crate::targets;
use crate::world::World;

pub(crate) fn make(world: &World, routes: &[Route], bad: &mut Vec<BadRequest>) {
    for target in Target::all(world) {
        keys(&target, bad);
        media(&target, bad);
        lengths(&target, bad);
        orders(&target, bad);
    }
    for route in routes.iter().filter(|route| route.secured) {
        secrets(route, world, bad);
    }
}

/// Invalid values of `Idempotency-Key`.
fn bad_keys() -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = [
        "",
        " ",
        "a b",
        "a\tb",
        "\"",
        "\"\"",
        "\"a",
        "a\" \"b",
        "\"a\"b",
        "\"a\" b",
        "\"a\"\"b\"",
        "\"a\\\"",
        "\"\\x\"",
        "\"a b\"",
        "\"é\"",
        "é",
        "\u{a0}",
        "日本",
        "\"a\";p=1",
        "\"a\", \"b\"",
        "a, b",
        "\"\\\\",
    ]
    .iter()
    .map(|key| key.as_bytes().to_vec())
    .collect();
    keys.extend([
        vec![b'k'; 256],
        vec![b'k'; 5_000],
        format!("\"{}\"", "k".repeat(256)).into_bytes(),
        b"\xe9".to_vec(),
        b"k\xff".to_vec(),
    ]);
    keys
}

fn keys(target: &Target<'_>, bad: &mut Vec<BadRequest>) {
    let path = target.write.path;
    let good = || target.request().json(&target.key("keys"), target.good_text.clone());
    let invalid = || Expected::new(400, "idempotency_key_invalid");
    let mut push = |what: String, request, expected| {
        bad.push(BadRequest::new(format!("POST {path}: {what}"), request, expected));
    };
    push(
        "no key".to_owned(),
        good().without("Idempotency-Key"),
        Expected::new(400, "idempotency_key_required"),
    );
    for key in bad_keys() {
        let what =
            format!("the key {:?}", String::from_utf8_lossy(&key).chars().take(20).collect::<String>());
        push(what, good().instead("Idempotency-Key", key), invalid());
    }
    for second in [target.key("keys"), "other".to_owned(), String::new(), "\"a\"".to_owned()] {
        push("two keys".to_owned(), good().header("Idempotency-Key", second.clone()), invalid());
        push("two keys, one in lower case".to_owned(), good().header("idempotency-key", second), invalid());
    }
    // Bytes forbidden in headers are refused before any other check.
    for byte in (0..=0x1f_u8).chain([0x7f]).filter(|byte| *byte != b'\t') {
        let key = [b"k", &[byte][..], b"k"].concat();
        push(
            format!("the byte {byte:#04x} in a key"),
            good().instead("Idempotency-Key", key),
            Expected::new(400, "malformed_request"),
        );
    }
}

fn media(target: &Target<'_>, bad: &mut Vec<BadRequest>) {
    let refused = || Expected::new(415, "unsupported_media_type");
    let good = || target.request().json(&target.key("media"), target.good_text.clone());
    let mut push = |what: String, request| {
        bad.push(BadRequest::new(format!("POST {}: {what}", target.write.path), request, refused()));
    };
    for media in [
        "",
        " ",
        "text/plain",
        "text/json",
        "text/html",
        "application/xml",
        "application/jsonp",
        "application/json5",
        "application/ld+json",
        "application/problem+json",
        "application/octet-stream",
        "multipart/form-data",
        "multipart/form-data; boundary=x",
        "json",
        "*/*",
        "application/*",
        "application/json, text/plain",
        "application/json application/json",
        "application/json; charset=utf-16",
        "application/json; charset=latin1",
        "application/json; charset=us-ascii",
        "application/json; charset",
        "application/json; charset=",
        "application/json; version=1",
        "application/json; charset=utf-8; v=1",
        "application/json; charset=\"\"utf-8\"\"",
        "application\\json",
        "application/x-www-form-urlencoded; charset=latin1",
        "application/x-www-form-urlencoded2",
        "; application/json",
        "application/json;;x",
        "é",
        "application/jsoné",
    ] {
        push(format!("the media type {media:?}"), good().instead("Content-Type", media));
    }
    push("no media type".to_owned(), good().without("Content-Type"));
    push("two media types".to_owned(), good().header("Content-Type", "application/json"));
    for coding in ["gzip", "br", "deflate", "zstd", "compress", "x-gzip", "identity, gzip", "aes128gcm", ""] {
        push(format!("the coding {coding:?}"), good().header("Content-Encoding", coding));
        let second = good().header("Content-Encoding", "identity").header("Content-Encoding", coding);
        push(format!("the codings identity and {coding:?}"), second);
    }
}

fn lengths(target: &Target<'_>, bad: &mut Vec<BadRequest>) {
    let headed = || {
        target
            .request()
            .header("Idempotency-Key", target.key("lengths"))
            .header("Content-Type", "application/json")
    };
    let mut push = |what: String, request, expected| {
        bad.push(BadRequest::new(format!("POST {}: {what}", target.write.path), request, expected));
    };
    let large = || Expected::new(413, "body_too_large");
    let malformed = || Expected::new(400, "malformed_request");
    // The length is only announced; no body is sent.
    for length in ["1048577", "99999999999", "9223372036854775807"] {
        push(format!("a length of {length}"), headed().header("Content-Length", length), large());
        push(
            "a length to wait for".to_owned(),
            headed().header("Content-Length", length).header("Expect", "100-continue"),
            large(),
        );
    }
    for length in
        ["-1", "+1", "0x10", "1.0", "1e3", "abc", "", "1 1", "1, 2", "18446744073709551616", "\u{661}"]
    {
        push(format!("the length {length:?}"), headed().header("Content-Length", length), malformed());
    }
    push(
        "two lengths".to_owned(),
        headed().header("Content-Length", "2").header("Content-Length", "3").body("{}"),
        malformed(),
    );
    for coding in ["gzip", "chunked, gzip", "identity", "chunked;", "xchunked", "", "chunked, identity"] {
        push(
            format!("the transfer coding {coding:?}"),
            headed().header("Transfer-Encoding", coding).body("0\r\n\r\n"),
            malformed(),
        );
    }
    let chunked = |body: &str| headed().header("Transfer-Encoding", "chunked").body(body);
    for chunks in [
        "zz\r\n",
        "-1\r\n\r\n",
        "0x2\r\n{}\r\n0\r\n\r\n",
        "2 2\r\n{}\r\n0\r\n\r\n",
        "2\r\n{}0\r\n\r\n",
        "ffffffffffffffffff\r\n{}",
        "\r\n\r\n",
        ";\r\n{}",
    ] {
        push(format!("the chunks {chunks:?}"), chunked(chunks), malformed());
    }
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(65_536));
    push("chunks without end".to_owned(), chunked(&chunk.repeat(17)), large());
    push("a large body".to_owned(), headed().body(vec![b' '; 1_048_577]), large());
    push(
        "as much white space as fits".to_owned(),
        headed().body(vec![b' '; 1_048_576]),
        Expected::invalid(&[""]),
    );
}

/// With several faults, the first in the order of checks is reported.
fn orders(target: &Target<'_>, bad: &mut Vec<BadRequest>) {
    for faults in 1..32_u32 {
        let has = |fault: u32| faults & (1 << fault) != 0;
        let path = if has(4) { target.write.path.replace("{id}", "nothing") } else { target.path.clone() };
        if has(4) && path == target.path {
            continue;
        }
        let mut request = target.request().target(path).json(&target.key("orders"), target.good_text.clone());
        let mut expected = Expected::absent();
        if has(3) {
            request = request.body("[]");
            expected = Expected::invalid(&[""]);
        }
        if has(2) {
            request = request.instead("Idempotency-Key", "a b");
            expected = Expected::new(400, "idempotency_key_invalid");
        }
        if has(1) {
            request = request.instead("Content-Type", "text/plain");
            expected = Expected::new(415, "unsupported_media_type");
        }
        if has(0) {
            request = request.instead("Authorization", "Bearer sk_wrong");
            expected = Expected::new(401, "unauthorized");
        }
        bad.push(BadRequest::new(
            format!("POST {}: faults {faults:05b}", target.write.path),
            request,
            expected,
        ));
    }
}

/// Missing and invalid API keys.
fn secrets(route: &Route, world: &World, bad: &mut Vec<BadRequest>) {
    let good = &world.secret;
    let asked = || {
        let request = Request::new(&route.method, &targets::filled(route, world));
        if route.method == "POST" { request.json("hostile-secrets", "{}") } else { request }
    };
    let refused = || Expected::new(401, "unauthorized");
    let mut push = |what: String, request| {
        bad.push(BadRequest::new(format!("{} {}: {what}", route.method, route.path), request, refused()));
    };
    push("no API key".to_owned(), asked());
    let (body, last) = good.split_at(good.len() - 1);
    let flipped = format!("{body}{}", if last == "a" { "b" } else { "a" });
    let long = format!("Bearer sk_{}", "x".repeat(4_000));
    for value in [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        good.clone(),
        format!("Basic {good}"),
        format!("Digest {good}"),
        format!("Bearer{good}"),
        format!("Bearer: {good}"),
        format!("Bearer {}", &good[3..]),
        format!("Bearer {flipped}"),
        format!("Bearer {body}"),
        format!("Bearer {good}a"),
        format!("Bearer {}", good.to_uppercase()),
        format!("Bearer {good} {good}"),
        format!("Bearer {good},{good}"),
        format!("Bearer \"{good}\""),
        format!("Token {good}"),
        "Bearer sk_".to_owned(),
        "Bearer sk_' OR 1=1 --".to_owned(),
        "Bearer null".to_owned(),
        format!("Bearer\t{good}"),
        "Bearer sk_é".to_owned(),
        long,
    ] {
        let shown: String = value.replace(good.as_str(), "…").chars().take(30).collect();
        push(format!("the secret {shown:?}"), asked().header("Authorization", value));
    }
    push("two API keys".to_owned(), asked().by(good).by(good));
    push("an API key and nothing".to_owned(), asked().by(good).header("Authorization", ""));
    push("an API key in the query".to_owned(), {
        let path = targets::filled(route, world);
        asked().target(format!("{path}?api_key={good}"))
    });
    push(
        "an API key in another header".to_owned(),
        asked().header("X-Api-Key", good.as_str()).header("Proxy-Authorization", format!("Bearer {good}")),
    );
}
