use super::schema;
use super::{LAYOUT, read, read_shards, write};
use crate::fixtures::{account, fields_of, fields_written, json, references, refusals, sealed};
use crate::form;
use counterfoil_core::ledger::account::{Guard, Side};
use counterfoil_core::types::reference::ReferenceKind;
use utoipa::PartialSchema;

#[test]
fn golden_account() {
    let mut text = Vec::new();
    write(&mut text, &account(), &references());
    assert_eq!(
        String::from_utf8(text.clone()).unwrap(),
        format!(
            r#"{{"id":"{}","object":"account","code":"customer:42","asset":"USD","normal_side":"credit","floor":-5,"cap":null,"shards":16,"metadata":{{"order":"42"}},"created_at":"1970-01-01T00:00:00.000Z"}}"#,
            sealed(ReferenceKind::Account, 7)
        )
    );
    assert_eq!(fields_written(&text), fields_of(schema::Account::schema()));
}

#[test]
fn invalid_accounts_are_refused() {
    let own = format!(r#"{{"code":"{}","asset":"USD"}}"#, sealed(ReferenceKind::Account, 7));
    let absent = format!(r#"{{"code":"ac_{}","asset":"USD"}}"#, "0".repeat(26));
    let long = format!(r#"{{"code":"{}","asset":"{}"}}"#, "c".repeat(65), "A".repeat(17));
    refusals(
        read,
        &[
            ("[]", &[("", "the body must be an object, not an array")]),
            ("{}", &[("/code", "missing"), ("/asset", "missing")]),
            (r#"{"code":null,"asset":null}"#, &[("/code", "missing"), ("/asset", "missing")]),
            (
                r#"{"cod":"a","code":"-a","asset":"é","floor":0.5,"cap":9223372036854775808,"shards":0,"normal_side":"left","metadata":[]}"#,
                &[
                    ("/cod", "`cod` is not a field of an account; did you mean `code`?"),
                    ("/code", "the first a letter or digit"),
                    ("/asset", "a letter, then letters"),
                    ("/floor", "fraction"),
                    ("/cap", "between -9223372036854775808 and 9223372036854775807"),
                    ("/shards", "between 1 and 256"),
                    ("/normal_side", "must be `debit` or `credit`"),
                    ("/metadata", "object of texts"),
                ],
            ),
            (
                r#"{"code":7,"asset":[],"floor":"0","cap":true,"shards":"1","normal_side":{}}"#,
                &[
                    ("/code", "not a number"),
                    ("/asset", "not an array"),
                    ("/floor", "not a text"),
                    ("/cap", "not a truth value"),
                    ("/shards", "not a text"),
                    ("/normal_side", "not an object"),
                ],
            ),
            (r#"{"code":"a b","asset":"USD","shards":257}"#, &[("/code", "1 to 64"), ("/shards", "between")]),
            (r#"{"code":"","asset":""}"#, &[("/code", "1 to 64"), ("/asset", "at most 16")]),
            (&long, &[("/code", "1 to 64"), ("/asset", "at most 16")]),
            (&own, &[("/code", "form of an account's id")]),
            (&absent, &[("/code", "form of an account's id")]),
            (
                r#"{"code":"a","asset":"USD","normal_side":"Debit"}"#,
                &[("/normal_side", "`debit` or `credit`")],
            ),
            (r#"{"code":"a","asset":"USD","metadata":{"a":1}}"#, &[("/metadata/a", "must be a text")]),
        ],
    );
    refusals(
        read_shards,
        &[
            ("{}", &[("/shards", "missing")]),
            (r#"{"shards":1.5}"#, &[("/shards", "fraction")]),
            (
                r#"{"shards":0,"shard":1}"#,
                &[("/shard", "did you mean `shards`?"), ("/shards", "between 1 and 256")],
            ),
            (r#"{"shards":[2]}"#, &[("/shards", "not an array")]),
        ],
    );
}

#[test]
fn minimal_and_full_accounts_are_read() {
    let small = read(&json(r#"{"code":"a/b:c","asset":"usd"}"#)).unwrap();
    assert_eq!((small.code.as_str(), small.asset.code()), ("a/b:c", "USD"));
    assert_eq!((small.normal, small.guard, small.shards), (Side::Credit, Guard::default(), 1));
    let full = r#"{"code":"c","asset":"points","floor":-9223372036854775808,"cap":9223372036854775807,"shards":256,"normal_side":"debit","metadata":{"order":"42"}}"#;
    let full = json(full);
    let read_full = read(&full).unwrap();
    assert_eq!(read_full.guard, Guard { floor: Some(i64::MIN), cap: Some(i64::MAX) });
    assert_eq!((read_full.shards, read_full.normal, read_full.asset.code()), (256, Side::Debit, "POINTS"));
    let nulls = r#"{"code":"a/b:c","asset":"usd","floor":null,"cap":null,"shards":null,"normal_side":null,"metadata":null}"#;
    assert_eq!(read(&json(nulls)).unwrap(), small);
    let form = b"code=c&asset=points&floor=-9223372036854775808&cap=9223372036854775807&shards=256&normal_side=debit&metadata[order]=42";
    assert_eq!(form::parse(form, &LAYOUT).unwrap(), full);
    assert_eq!(read_shards(&json(r#"{"shards":256}"#)).unwrap(), 256);
}
