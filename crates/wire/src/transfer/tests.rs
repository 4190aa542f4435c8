use super::schema;
use super::{LAYOUT, read, read_post, read_void, write_done, write_held};
use crate::fixtures::{fields_of, fields_written, hold, json, references, refusals, sealed, transaction};
use crate::form;
use counterfoil_core::ledger::account::AccountCode;
use counterfoil_core::ledger::hold::HoldState;
use counterfoil_core::ledger::transaction::TransactionKind;
use counterfoil_core::payments::ledger::{AccountSelector, End, HoldTerms};
use counterfoil_core::types::id::{AccountId, TransactionId};
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_core::types::time::Time;
use utoipa::PartialSchema;

#[test]
fn golden_transfer() {
    let mut text = Vec::new();
    write_done(&mut text, &transaction(TransactionKind::Transfer), &references());
    let (id, posting) = (sealed(ReferenceKind::Transfer, 3), sealed(ReferenceKind::Transaction, 3));
    let (from, to) = (sealed(ReferenceKind::Account, 7), sealed(ReferenceKind::Account, 8));
    assert_eq!(
        String::from_utf8(text.clone()).unwrap(),
        format!(
            r#"{{"id":"{id}","object":"transfer","from":"{from}","to":"{to}","amount":1250,"currency":"USD","status":"posted","hold":false,"amount_posted":1250,"transaction":"{posting}","expires_at":null,"metadata":{{"order":"42"}},"created_at":"1970-01-01T00:00:00.000Z"}}"#
        )
    );
    assert_eq!(fields_written(&text), fields_of(schema::Transfer::schema()));
}

#[test]
fn golden_held_transfers() {
    let (id, posting) = (sealed(ReferenceKind::Transfer, 4), sealed(ReferenceKind::Transaction, 9));
    let (from, to) = (sealed(ReferenceKind::Account, 7), sealed(ReferenceKind::Account, 8));
    let by = TransactionId::from_i64(9);
    for (state, now, status, amount_posted, posting) in [
        (HoldState::Pending, 59_999, "pending", 0, "null".to_owned()),
        (HoldState::Pending, 60_000, "lapsed", 0, "null".to_owned()),
        (HoldState::Posted { amount: 1_000, by }, 60_000, "posted", 1_000, format!("\"{posting}\"")),
        (HoldState::Voided { by }, 0, "voided", 0, "null".to_owned()),
        (HoldState::Lapsed { by }, 0, "lapsed", 0, "null".to_owned()),
    ] {
        let mut text = Vec::new();
        write_held(&mut text, &hold(state), Time::from_ms(now), &references());
        assert_eq!(
            String::from_utf8(text).unwrap(),
            format!(
                r#"{{"id":"{id}","object":"transfer","from":"{from}","to":"{to}","amount":1250,"currency":"USD","status":"{status}","hold":true,"amount_posted":{amount_posted},"transaction":{posting},"expires_at":"1970-01-01T00:01:00.000Z","metadata":{{}},"created_at":"1970-01-01T00:00:00.000Z"}}"#
            )
        );
    }
}

#[test]
fn invalid_transfers_are_refused() {
    refusals(
        |body| read(body, &references()),
        &[
            ("7", &[("", "must be an object, not a number")]),
            (
                "{}",
                &[("/from", "missing"), ("/to", "missing"), ("/amount", "missing"), ("/currency", "missing")],
            ),
            (
                r#"{"frm":"a","from":"a b","to":"","amount":0,"currency":"$","hold":"yes","expires_at":"tomorrow","metadata":1}"#,
                &[
                    ("/frm", "did you mean `from`?"),
                    ("/hold", "true or false"),
                    ("/expires_at", "RFC 3339"),
                    ("/from", "is no account"),
                    ("/to", "is no account"),
                    ("/amount", "between 1 and 999999999999999"),
                    ("/currency", "an asset's code"),
                    ("/metadata", "object of texts"),
                ],
            ),
            (
                r#"{"from":1,"to":[],"amount":"5","currency":5,"hold":1,"expires_at":5,"asset":"USD"}"#,
                &[
                    ("/asset", "`asset` is not a field of a transfer; leave it out or put it into metadata"),
                    ("/hold", "not a number"),
                    ("/expires_at", "not a number"),
                    ("/from", "not a number"),
                    ("/to", "not an array"),
                    ("/amount", "not a text"),
                    ("/currency", "not a number"),
                ],
            ),
            (
                r#"{"from":"a","to":"b","amount":1000000000000000,"currency":"USD","expires_at":"2026-01-31T12:00:00Z"}"#,
                &[("/expires_at", "only a hold expires"), ("/amount", "between")],
            ),
            (
                r#"{"from":"a","to":"b","amount":1,"currency":"USD","hold":false,"expires_at":"2026-01-31T12:00:00Z"}"#,
                &[("/expires_at", "only a hold expires")],
            ),
        ],
    );
    refusals(
        read_post,
        &[
            ("[]", &[("", "must be an object")]),
            (r#"{"amount":0}"#, &[("/amount", "between")]),
            (r#"{"amount":1.5}"#, &[("/amount", "fraction")]),
            (r#"{"amuont":1}"#, &[("/amuont", "did you mean `amount`?")]),
        ],
    );
    refusals(
        read_void,
        &[(r#"{"amount":1}"#, &[("/amount", "is not a field of this request; leave it out")])],
    );
}

#[test]
fn accounts_are_named_by_id_or_code() {
    let id = sealed(ReferenceKind::Account, 7);
    let transfer = |from: &str| {
        read(&json(&format!(r#"{{"from":"{from}","to":"b","amount":1,"currency":"points"}}"#)), &references())
    };
    assert_eq!(transfer(&id).unwrap().from, AccountSelector::Id(AccountId::from_i64(7)));
    // A text that only looks like an id counts as a code.
    for code in ["customer:42", "a/b", "ac_main", "ac_zzzzzzzzzzzzzzzzzzzzzzzzzz"] {
        assert_eq!(
            transfer(code).unwrap().from,
            AccountSelector::Code(AccountCode::parse(code).unwrap()),
            "{code}"
        );
    }
    assert_eq!(transfer("a").unwrap().asset.code(), "POINTS");
}

#[test]
fn holds_and_their_ends_are_read() {
    let body = |more: &str| format!(r#"{{"from":"a","to":"b","amount":5,"currency":"usd"{more}}}"#);
    let hold = |more: &str| read(&json(&body(more)), &references()).unwrap().hold;
    assert_eq!(hold(""), None);
    assert_eq!(hold(r#","hold":false,"expires_at":null"#), None);
    assert_eq!(hold(r#","hold":true"#), Some(HoldTerms { expires_at: None }));
    let expires_at = Some(Time::from_ms(1_769_853_600_500));
    assert_eq!(
        hold(r#","hold":true,"expires_at":"2026-01-31T12:00:00.5+02:00""#),
        Some(HoldTerms { expires_at })
    );
    let form = b"from=a&to=b&amount=5&currency=usd&hold=true";
    assert_eq!(form::parse(form, &LAYOUT).unwrap(), json(&body(r#","hold":true"#)));
    assert_eq!(read_post(&json("{}")).unwrap(), End::Post { amount: None });
    assert_eq!(read_post(&json(r#"{"amount":5}"#)).unwrap(), End::Post { amount: Some(5) });
    assert_eq!(read_void(&json("{}")).unwrap(), End::Void);
}
