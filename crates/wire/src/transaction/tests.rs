use super::schema;
use super::{LAYOUT, read, read_reverse, write};
use crate::fixtures::{fields_of, json, members, references, refusals, sealed, transaction};
use crate::form;
use counterfoil_core::ledger::account::Side;
use counterfoil_core::ledger::transaction::TransactionKind;
use counterfoil_core::types::id::{ChargeId, HoldId, TransactionId};
use counterfoil_core::types::reference::ReferenceKind;
use serde_json::Value;
use utoipa::PartialSchema;

fn written(kind: TransactionKind, reversed_by: Option<TransactionId>) -> String {
    let mut text = Vec::new();
    write(&mut text, &transaction(kind), reversed_by, &references());
    String::from_utf8(text).unwrap()
}

#[test]
fn golden_transaction() {
    let (id, entry) = (sealed(ReferenceKind::Transaction, 3), sealed(ReferenceKind::Entry, 3));
    let (from, to) = (sealed(ReferenceKind::Account, 7), sealed(ReferenceKind::Account, 8));
    let text = written(TransactionKind::General, Some(TransactionId::from_i64(5)));
    let reversed_by = sealed(ReferenceKind::Transaction, 5);
    assert_eq!(
        text,
        format!(
            r#"{{"id":"{id}","object":"transaction","kind":"general","entries":[{{"id":"{entry}_0","account":"{from}","direction":"debit","layer":"posted","amount":1250,"asset":"USD"}},{{"id":"{entry}_1","account":"{to}","direction":"credit","layer":"posted","amount":1250,"asset":"USD"}}],"reverses":null,"reversed_by":"{reversed_by}","charge":null,"transfer":null,"metadata":{{"order":"42"}},"created_at":"1970-01-01T00:00:00.000Z"}}"#
        )
    );
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(members(&value), fields_of(schema::Transaction::schema()));
    assert_eq!(members(&value["entries"][0]), fields_of(schema::TransactionEntry::schema()));
}

#[test]
fn each_kind_names_the_objects_it_belongs_to() {
    let hold = HoldId::from_i64(4);
    for (kind, name, about) in [
        (TransactionKind::Transfer, "transfer", Some(("transfer", sealed(ReferenceKind::Transfer, 3)))),
        (TransactionKind::General, "general", None),
        (TransactionKind::Conversion, "conversion", None),
        (
            TransactionKind::Charge(ChargeId::from_i64(3)),
            "charge",
            Some(("charge", sealed(ReferenceKind::Charge, 3))),
        ),
        (
            TransactionKind::Reversal(TransactionId::from_i64(2)),
            "reversal",
            Some(("reverses", sealed(ReferenceKind::Transaction, 2))),
        ),
        (TransactionKind::Held(hold), "held", Some(("transfer", sealed(ReferenceKind::Transfer, 4)))),
        (
            TransactionKind::HoldPosted(hold),
            "hold_posted",
            Some(("transfer", sealed(ReferenceKind::Transfer, 4))),
        ),
        (
            TransactionKind::HoldVoided(hold),
            "hold_voided",
            Some(("transfer", sealed(ReferenceKind::Transfer, 4))),
        ),
        (
            TransactionKind::HoldLapsed(hold),
            "hold_lapsed",
            Some(("transfer", sealed(ReferenceKind::Transfer, 4))),
        ),
    ] {
        let value: Value = serde_json::from_str(&written(kind, None)).unwrap();
        assert_eq!(value["kind"], name);
        for field in ["reverses", "reversed_by", "charge", "transfer"] {
            let expected = about.as_ref().filter(|(known, _)| *known == field).map(|(_, id)| id.as_str());
            assert_eq!(value[field].as_str(), expected, "{name} {field}");
        }
    }
}

#[test]
fn invalid_transactions_are_refused() {
    let entry = r#"{"account":"a","direction":"debit","amount":1,"asset":"USD"}"#;
    let many = format!(r#"{{"entries":[{}]}}"#, vec![entry; 41].join(","));
    let one = format!(r#"{{"entries":[{entry}]}}"#);
    let mixed = format!(
        r#"{{"entries":[{entry},7,{{}},{{"acount":"a","account":"","direction":"left","amount":1.5,"asset":"?"}}],"metadata":{{"a":null}}}}"#
    );
    refusals(
        |body| read(body, &references()),
        &[
            ("null", &[("", "must be an object, not null")]),
            ("{}", &[("/entries", "missing; send an array of 2 to 40 objects like {\"account\":…")]),
            (r#"{"entries":null}"#, &[("/entries", "missing")]),
            (r#"{"entries":{}}"#, &[("/entries", "not an object")]),
            (r#"{"entries":[]}"#, &[("/entries", "has 0 elements; send an array of 2 to 40")]),
            (&one, &[("/entries", "has 1 elements")]),
            (&many, &[("/entries", "has 41 elements")]),
            (r#"{"entrys":[]}"#, &[("/entrys", "did you mean `entries`?"), ("/entries", "missing")]),
            (
                &mixed,
                &[
                    ("/entries/1", "an entry must be an object, not a number"),
                    ("/entries/2/account", "missing"),
                    ("/entries/2/direction", "missing"),
                    ("/entries/2/amount", "missing"),
                    ("/entries/2/asset", "missing"),
                    ("/entries/3/acount", "is not a field of an entry; did you mean `account`?"),
                    ("/entries/3/account", "is no account"),
                    ("/entries/3/direction", "must be `debit` or `credit`"),
                    ("/entries/3/amount", "fraction"),
                    ("/entries/3/asset", "a letter, then"),
                    ("/metadata/a", "not null"),
                ],
            ),
        ],
    );
    refusals(
        read_reverse,
        &[(r#"{"metadata":{}}"#, &[("/metadata", "not a field of this request; leave it out")])],
    );
    assert!(read_reverse(&json("{}")).is_ok());
}

#[test]
fn entries_keep_their_order_in_json_and_forms() {
    let body = json(
        r#"{"entries":[{"account":"a","direction":"debit","amount":5,"asset":"usd"},{"account":"b","direction":"credit","amount":5,"asset":"USD"}],"metadata":{"order":"42"}}"#,
    );
    let post = read(&body, &references()).unwrap();
    let sides: Vec<Side> = post.entries.iter().map(|leg| leg.side).collect();
    assert_eq!(sides, [Side::Debit, Side::Credit]);
    assert_eq!(post.metadata["order"].reveal(), "42");
    let form = b"entries[0][account]=a&entries[0][direction]=debit&entries[0][amount]=5&entries[0][asset]=usd&\
        entries[1][account]=b&entries[1][direction]=credit&entries[1][amount]=5&entries[1][asset]=USD&metadata[order]=42";
    assert_eq!(form::parse(form, &LAYOUT).unwrap(), body);
}
