use super::schema;
use super::{LAYOUT, read, write};
use crate::fixtures::{fields_of, json, members, references, refusals, sealed, transaction};
use crate::form;
use counterfoil_core::ledger::transaction::TransactionKind;
use counterfoil_core::payments::ledger::{AccountSelector, Item, LedgerRefusal};
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::id::{AccountId, SubjectId};
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_engine::present::ItemResult;
use serde_json::Value;
use std::collections::BTreeSet;
use utoipa::PartialSchema;

const TRANSFER: &str = r#"{"from":"a","to":"b","amount":5,"currency":"usd"}"#;
const ENTRIES: &str = r#"{"entries":[{"account":"a","direction":"debit","amount":5,"asset":"usd"},{"account":"b","direction":"credit","amount":5,"asset":"USD"}]}"#;

fn bulk(items: &[&str]) -> String {
    format!(r#"{{"transactions":[{}]}}"#, items.join(","))
}

#[test]
fn golden_bulk() {
    let results = [
        ItemResult::Posted(Box::new(transaction(TransactionKind::Transfer))),
        ItemResult::Refused(LedgerRefusal::InsufficientFunds),
        ItemResult::Invalid(vec![Flaw::new("/from", "no"), Flaw::new("", "never")]),
        ItemResult::Refused(LedgerRefusal::CapExceeded),
    ];
    let mut text = Vec::new();
    write(&mut text, SubjectId::from_i64(6), &results, &references());
    assert_eq!(
        String::from_utf8(text.clone()).unwrap(),
        format!(
            r#"{{"id":"{}","object":"bulk","posted":1,"refused":3,"results":[{{"status":"posted","transaction":"{}"}},{{"status":"refused","error":"insufficient_funds"}},{{"status":"invalid","errors":[{{"pointer":"/transactions/2/from","message":"no"}},{{"pointer":"/transactions/2","message":"never"}}]}},{{"status":"refused","error":"cap_exceeded"}}]}}"#,
            sealed(ReferenceKind::Bulk, 6),
            sealed(ReferenceKind::Transaction, 3)
        )
    );
    let value: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(members(&value), fields_of(schema::Bulk::schema()));
    let of_any: BTreeSet<String> = value["results"].as_array().unwrap().iter().flat_map(members).collect();
    assert_eq!(of_any, fields_of(schema::BulkResult::schema()));
}

#[test]
fn invalid_bulk_requests_are_refused() {
    let many = bulk(&vec![TRANSFER; 1_001]);
    let both = bulk(&[&ENTRIES.replacen('{', r#"{"from":"a","#, 1)]);
    let bad = bulk(&[
        TRANSFER,
        "[]",
        "{}",
        r#"{"from":"a","to":"b","amount":0,"currency":"usd","hold":true}"#,
        r#"{"entries":[{},7]}"#,
    ]);
    refusals(
        |body| read(body, &references()),
        &[
            ("[]", &[("", "must be an object")]),
            ("{}", &[("/transactions", "missing; send an array of 1 to 1000")]),
            (r#"{"transactions":[]}"#, &[("/transactions", "has 0 elements")]),
            (r#"{"transactions":{"0":{}}}"#, &[("/transactions", "not an object")]),
            (&many, &[("/transactions", "has 1001 elements")]),
            (&both, &[("/transactions/0/from", "not both")]),
            (
                &bad,
                &[
                    ("/transactions/1", "a transaction must be an object, not an array"),
                    ("/transactions/2/from", "missing"),
                    ("/transactions/2/to", "missing"),
                    ("/transactions/2/amount", "missing"),
                    ("/transactions/2/currency", "missing"),
                    ("/transactions/3/hold", "`hold` is not a field of a transaction"),
                    ("/transactions/3/amount", "between"),
                    ("/transactions/4/entries/0/account", "missing"),
                    ("/transactions/4/entries/0/direction", "missing"),
                    ("/transactions/4/entries/0/amount", "missing"),
                    ("/transactions/4/entries/0/asset", "missing"),
                    ("/transactions/4/entries/1", "an entry must be an object"),
                ],
            ),
        ],
    );
    let hopeless = bulk(&vec!["{}"; 1_000]);
    assert_eq!(read(&json(&hopeless), &references()).unwrap_err().len(), 32);
}

#[test]
fn a_thousand_items_of_both_kinds_keep_their_order() {
    let items: Vec<&str> = (0..1_000).map(|n| if n % 2 == 0 { TRANSFER } else { ENTRIES }).collect();
    let read_items = read(&json(&bulk(&items)), &references()).unwrap();
    assert_eq!(read_items.len(), 1_000);
    for (number, item) in read_items.iter().enumerate() {
        assert_eq!(matches!(item, Item::Transfer(_)), number % 2 == 0);
    }
    assert!(read(&json(&bulk(&vec![ENTRIES; 1_000])), &references()).is_ok());
}

#[test]
fn repeated_references_are_resolved() {
    let (own, other) = (sealed(ReferenceKind::Account, 7), sealed(ReferenceKind::Account, 8));
    let there = TRANSFER.replace("\"a\"", &format!("\"{own}\"")).replace("\"b\"", &format!("\"{other}\""));
    let back = TRANSFER.replace("\"a\"", &format!("\"{other}\"")).replace("\"b\"", &format!("\"{own}\""));
    let items = read(&json(&bulk(&[&there, &back, &there])), &references()).unwrap();
    let from: Vec<&AccountSelector> =
        items.iter().map(|item| if let Item::Transfer(one) = item { &one.from } else { panic!() }).collect();
    let (seven, eight) =
        (AccountSelector::Id(AccountId::from_i64(7)), AccountSelector::Id(AccountId::from_i64(8)));
    assert_eq!(from, [&seven, &eight, &seven]);
}

#[test]
fn forms_and_json_mean_the_same_request() {
    let form = "transactions[0][from]=a&transactions[0][to]=b&transactions[0][amount]=5&transactions[0][currency]=usd&\
        transactions[1][entries][0][account]=a&transactions[1][entries][0][direction]=debit&\
        transactions[1][entries][0][amount]=5&transactions[1][entries][0][asset]=usd&\
        transactions[1][entries][1][account]=b&transactions[1][entries][1][direction]=credit&\
        transactions[1][entries][1][amount]=5&transactions[1][entries][1][asset]=USD";
    assert_eq!(form::parse(form.as_bytes(), &LAYOUT).unwrap(), json(&bulk(&[TRANSFER, ENTRIES])));
}
