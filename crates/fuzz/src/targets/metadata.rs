//! Metadata in the stores' format: text that parses is written and parsed again without change.

use crate::target::{Check, Kind, Target, texts};
use counterfoil_core::types::mask::Masked;
use counterfoil_store::codec::metadata::{Metadata, decode, encode};
use counterfoil_store::conformance::variants::{metadata_full, metadata_odd};

pub(super) const TARGET: Target = Target {
    name: "metadata",
    seeds,
    words: &[
        "{",
        "}",
        "\"",
        ":",
        ",",
        "\"a\":\"b\"",
        "\\u0000",
        "\\ud800",
        "null",
        "\u{1f600}",
        "\\",
        "\u{1}",
        "[]",
    ],
    length_max: 8_192,
    short: 20_000,
    start,
};

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = texts(&["{}", "{ }", r#"{"a":1}"#, r#"{"a":"b","a":"c"}"#, r#"{"b":"","a":"\u0000"}"#]);
    seeds.extend(
        [metadata_full(), metadata_odd()].map(|metadata| encode(&metadata).into_owned().into_bytes()),
    );
    seeds
}

fn start() -> Check {
    Box::new(|input| {
        let text = String::from_utf8_lossy(input);
        let read = decode(&text);
        if let Some(read) = &read {
            comes_back(read);
        }
        // The input as pairs; names and values that no client could send are kept too.
        let mut lines = text.split('\n');
        let mut pairs = Metadata::new();
        while let Some(name) = lines.next() {
            pairs.insert(name.to_owned(), Masked::new(lines.next().unwrap_or_default().to_owned()));
        }
        comes_back(&pairs);
        Kind::of(format!("{} {}", read.is_some(), "x".repeat(pairs.len().min(20))))
    })
}

fn comes_back(metadata: &Metadata) {
    let text = encode(metadata);
    assert_eq!(decode(&text).as_ref(), Some(metadata), "{text}");
    let parsed: serde_json::Value = serde_json::from_str(&text).expect("stored metadata is JSON");
    let object = parsed.as_object().expect("stored metadata is an object");
    assert_eq!(object.len(), metadata.len());
    for (name, value) in metadata {
        assert_eq!(
            object.get(name).and_then(|found| found.as_str()),
            Some(value.reveal().as_str()),
            "{name}"
        );
    }
}
