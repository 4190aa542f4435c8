use super::*;
use counterfoil_core::types::digest::MacKey;
use counterfoil_core::types::reference::{ReferenceKind, References};
use std::collections::BTreeSet;

const REQUEST: Ulid = Ulid::from_bytes([0; 16]);

fn text(problem: &Problem) -> String {
    String::from_utf8(problem.body(REQUEST).to_vec()).unwrap()
}

#[test]
fn golden_problem() {
    let problem =
        Problem::new(Code::IdempotencyKeyInUse).detail("Wait.").retry_after_ms(5_000).safe_new_key(false);
    assert_eq!(
        text(&problem),
        r#"{"type":"/errors/idempotency_key_in_use","title":"Idempotency key in use","status":409,"detail":"Wait.","error":"idempotency_key_in_use","request_id":"req_00000000000000000000000000","retry_after_ms":5000,"safe_new_key":false}"#
    );
}

#[test]
fn further_fields_are_written_by_name() {
    let charge = References::new(MacKey::new(&[1; 32])).seal(ReferenceKind::Charge, 1);
    let problem = Problem::new(Code::InvalidRequest)
        .detail("x")
        .errors(vec![Flaw::new("/a", "b")])
        .original_request_at(Time::EPOCH)
        .decline_code(None)
        .decline_code(Some("lost_card".to_owned()))
        .charge(charge)
        .charge_status(ChargeStatus::Voided)
        .amount_available(0)
        .dead_letter(charge)
        .reason("several");
    let ends = format!(
        r#""errors":[{{"pointer":"/a","message":"b"}}],"original_request_at":"1970-01-01T00:00:00.000Z","decline_code":null,"decline_code":"lost_card","charge":"{charge}","charge_status":"voided","amount_available":0,"dead_letter":"{charge}","reason":"several"}}"#
    );
    assert!(text(&problem).ends_with(&ends), "{}", text(&problem));
}

#[test]
fn retry_after_is_at_least_one_second() {
    assert_eq!(Problem::new(Code::OutcomePending).retry_after(0).retry_after_seconds(), Some(1));
}

#[test]
fn codes_and_pages_match() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors");
    let pages: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let codes: BTreeSet<String> = Code::ALL.iter().map(|code| format!("{}.md", code.name())).collect();
    assert_eq!(pages, codes);
    for code in Code::ALL {
        let page = code.page();
        assert!(page.starts_with(&format!("# {}\n", code.name())), "{code:?}");
        assert!(page.contains(&format!("Status {}", code.status())), "{code:?}");
        assert!(page.contains("## What happened\n") && page.contains("## What to do\n"), "{code:?}");
    }
}

#[test]
fn examples_on_pages_are_real_problems() {
    for code in Code::ALL {
        let example = code.page().split("```json\n").nth(1).and_then(|rest| rest.split("```").next());
        let example: serde_json::Value = serde_json::from_str(example.unwrap()).unwrap();
        let written: serde_json::Value = serde_json::from_slice(&Problem::new(*code).body(REQUEST)).unwrap();
        for field in ["type", "title", "status", "detail", "error"] {
            assert_eq!(example[field], written[field], "{code:?} {field}");
        }
    }
}
