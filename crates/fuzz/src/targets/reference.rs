//! References: text that opens is exactly the text this instance would have sealed.

use crate::target::{Check, Kind as Answer, Target};
use counterfoil_core::types::digest::MacKey;
use counterfoil_core::types::reference::{ReferenceKind, References};

pub(super) const TARGET: Target = Target {
    name: "reference",
    seeds,
    words: &[
        "ch_",
        "ac_",
        "tr_",
        "tx_",
        "en_",
        "bk_",
        "0",
        "z",
        "7zzzzzzzzzzzzzzzzzzzzzzzzz",
        "_",
        "\u{e9}",
        "l",
        "O",
    ],
    length_max: 64,
    short: 20_000,
    start,
};

const KINDS: [ReferenceKind; 6] = [
    ReferenceKind::Charge,
    ReferenceKind::Account,
    ReferenceKind::Transfer,
    ReferenceKind::Transaction,
    ReferenceKind::Entry,
    ReferenceKind::Bulk,
];

fn references() -> References {
    References::new(MacKey::new(&[7; 32]))
}

fn seeds() -> Vec<Vec<u8>> {
    let ids = [0, 1, -1, i64::MIN, i64::MAX, 123_456_789_012];
    let sealed =
        KINDS.iter().flat_map(|kind| ids.map(|id| references().seal(*kind, id).to_string().into_bytes()));
    sealed.collect()
}

fn start() -> Check {
    let references = references();
    Box::new(move |input| {
        let text = String::from_utf8_lossy(input);
        let mut opened = Vec::new();
        for kind in KINDS {
            if let Some(id) = references.open(kind, &text) {
                assert_eq!(references.seal(kind, id).as_str(), text, "another text for the same id");
                opened.push(kind);
            }
        }
        assert!(opened.len() <= 1, "one text, two kinds: {opened:?}");
        // An id from the input goes out and comes back.
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(input).for_each(|(place, byte)| *place = *byte);
        let id = i64::from_be_bytes(bytes);
        for kind in KINDS {
            let sealed = references.seal(kind, id);
            assert_eq!(references.open(kind, sealed.as_str()), Some(id), "{sealed}");
        }
        Answer::of(format!("{opened:?}"))
    })
}
