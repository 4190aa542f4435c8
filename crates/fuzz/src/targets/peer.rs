//! A peer's answers, through its connector and a real socket: a transfer counts as ours only if the
//! peer's answer says so.

use super::prepared_server::{http, prepared_server, read, storable};
use crate::target::{Check, Kind, Target};
use counterfoil_core::payments::provider::{
    Approval, Cause, LookupResult, ProviderFault, ProviderOutcome, ProviderStep, Stands,
};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_core::types::peer::PeerName;
use counterfoil_core::types::time::Span;
use counterfoil_gateway::{Gateway, ProviderCall, ProviderLookup};
use counterfoil_gateway_peer::{PeerGateway, PeerSettings};
use counterfoil_transport::TransportLimits;
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Builder;

pub(super) const TARGET: Target = Target {
    name: "peer",
    seeds,
    words: &[
        "\"id\":",
        "\"tr_1\"",
        "\"tr_1/../../v1/x\"",
        "\"from\":",
        "\"to\":",
        "\"ac_ours\"",
        "\"ac_theirs\"",
        "\"alice\"",
        "\"amount\":",
        "\"amount_posted\":",
        "400",
        "-400",
        "400.0",
        "4e2",
        "\"currency\":",
        "\"USD\"",
        "\"usd\"",
        "\"EUR\"",
        "\"status\":",
        "\"posted\"",
        "\"pending\"",
        "\"metadata\":",
        "\"counterfoil_payment\":",
        "\"po_1\"",
        "\"error\":",
        "\"insufficient_funds\"",
        "\"cap_exceeded\"",
        "\"shutting_down\"",
        "\"store_unavailable\"",
        "\"state\":",
        "\"completed\"",
        "\"expired\"",
        "\"failed_terminal\"",
        "\"resource\":",
        "\"type\":",
        "\"transfer\"",
        "null",
        "\\u0000",
        "{",
        "}",
        ",",
        ":",
    ],
    length_max: 2_048,
    short: 2_000,
    start,
};

/// Statuses, chosen by the first byte of an input.
const STATUSES: [u16; 16] = [200, 201, 201, 299, 300, 304, 400, 400, 401, 403, 404, 409, 422, 429, 500, 503];
const DESTINATIONS: [&str; 2] = ["ac_theirs", "alice"];

fn seeds() -> Vec<Vec<u8>> {
    let transfer = r#"{"id":"tr_1","object":"transfer","from":"ac_ours","to":"ac_theirs","amount":400,"currency":"USD","status":"posted","hold":false,"amount_posted":400,"metadata":{"counterfoil_payment":"po_1"}}"#;
    // One text is both the record of a key and its transfer: the peer gives the same answer to
    // every question.
    let both = format!(
        r#"{{"state":"completed","resource":{{"type":"transfer","id":"tr_1"}},{}"#,
        transfer.get(1..).unwrap_or_default()
    );
    let problem = |error: &str| format!(r#"{{"type":"/errors/{error}","error":"{error}"}}"#);
    let record = |state: &str| format!(r#"{{"state":"{state}","resource":null}}"#);
    let cases = [
        (1, 0, transfer.to_owned()),
        (1, 1, transfer.to_owned()),
        (0, 2, both),
        (0, 2, record("failed_terminal")),
        (0, 2, record("in_flight")),
        (10, 2, problem("not_found")),
        (6, 0, problem("insufficient_funds")),
        (6, 0, problem("cap_exceeded")),
        (6, 0, problem("invalid_request")),
        (8, 0, problem("unauthorized")),
        (15, 0, problem("shutting_down")),
        (15, 0, problem("store_unavailable")),
        (13, 0, String::new()),
    ];
    cases.iter().map(|(status, how, body)| [&[*status, *how][..], body.as_bytes()].concat()).collect()
}

fn start() -> Check {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (says, gateway) = runtime.block_on(peer());
    Box::new(move |input| {
        let (status, how, body) = match input {
            [status, how, body @ ..] => (STATUSES[usize::from(*status) % STATUSES.len()], how % 3, body),
            _ => (201, 0, input),
        };
        *says.lock().expect("one thread") = http(status, body);
        if how == 2 {
            let found = runtime.block_on(gateway.lookup(lookup(&gateway)));
            looked_up(&found, status, body);
            return Kind::of(
                format!("found {status} {found:?}").split(['{', '"']).next().unwrap_or_default(),
            );
        }
        let destination = DESTINATIONS[usize::from(how)];
        let outcome = runtime.block_on(gateway.call(call(&gateway, destination)));
        believed(&outcome, destination, status, body);
        Kind::of(format!("{status} {}", kind(&outcome)))
    })
}

/// Checks that the answer says everything the connector approved, declined or rejected.
fn believed(outcome: &ProviderOutcome, destination: &str, status: u16, body: &[u8]) {
    match outcome {
        ProviderOutcome::Approved(approval) => {
            assert!((200..300).contains(&status), "{status} is no approval");
            assert!(
                read(body).is_none_or(|json| stands_in(approval, &json, Some(destination))),
                "{approval:?}"
            );
        }
        ProviderOutcome::Declined(decline) => {
            assert_eq!(status, 400, "only what the peer keeps under the key is final");
            assert!(matches!(decline.code.as_str(), "insufficient_funds" | "cap_exceeded"), "{decline:?}");
            assert!(read(body).is_none_or(|json| json["error"] == *decline.code), "{decline:?}");
        }
        ProviderOutcome::Rejected(rejection) => {
            let credentials = rejection.fault == ProviderFault::Credentials;
            assert!(
                if credentials { matches!(status, 401 | 403) } else { matches!(status, 400 | 404) },
                "{status}"
            );
            assert!(storable(&rejection.code), "{rejection:?}");
        }
        ProviderOutcome::Busy { retry_after } => {
            assert!(matches!(status, 429 | 503), "{status} is no pause");
            assert_eq!(*retry_after, Some(Span::from_ms(7_000)));
        }
        ProviderOutcome::NotSent => panic!("the request was read to its end"),
        ProviderOutcome::Unknown(cause) => assert_ne!(*cause, Cause::Cut, "the answer was whole"),
    }
}

/// Checks a lookup. The peer is asked twice and gives the same answer, so the body is both the
/// key's record and the transfer.
fn looked_up(found: &LookupResult, status: u16, body: &[u8]) {
    match found {
        LookupResult::Payment(ProviderOutcome::Approved(approval)) => {
            assert_eq!(status, 200, "a record is answered with 200");
            let Some(json) = read(body) else { return };
            assert!(stands_in(approval, &json, None), "{approval:?}");
            let made = json["resource"]["id"].as_str().expect("the key names what it made");
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            assert!(made.starts_with("tr_") && made.bytes().all(plain), "{made:?} leads elsewhere");
            assert!(json["state"] == "completed" || json["state"] == "expired", "{json}");
        }
        LookupResult::Payment(ProviderOutcome::Declined(_)) => {
            let Some(json) = read(body) else { return };
            assert!(
                status == 200 && json["state"] == "failed_terminal" && json["resource"].is_null(),
                "{json}"
            );
        }
        LookupResult::Payment(other) => panic!("{other:?} is nothing a key can say"),
        LookupResult::Several | LookupResult::Nothing => {
            panic!("a key is proof of one transfer, its absence of nothing")
        }
        LookupResult::Unclear(_) => {}
    }
}

/// Whether the transfer contains everything an approval says, and is between our accounts.
fn stands_in(approval: &Approval, transfer: &Value, destination: Option<&str>) -> bool {
    let amounts = (transfer["amount"].as_i64(), transfer["amount_posted"].as_i64());
    let (Some(amount), Some(posted)) = amounts else { return false };
    let reached = destination.is_none_or(|name| !name.starts_with("ac_") || transfer["to"] == name);
    let ours = transfer["from"] == "ac_ours" && reached;
    let payment = transfer["metadata"]["counterfoil_payment"].as_str().filter(|_| ours).unwrap_or_default();
    let asset = transfer["currency"].as_str().and_then(|code| Asset::parse(code).ok());
    storable(&approval.reference)
        && transfer["id"] == *approval.reference
        && transfer["status"] == "posted"
        && approval.stands == Stands::PaidOut
        && approval.amount_minor == if amount == posted { amount } else { 0 }
        && approval.asset == asset
        && approval.payment.as_deref() == Some(payment)
}

fn kind(outcome: &ProviderOutcome) -> String {
    match outcome {
        ProviderOutcome::Approved(approval) => {
            let ours = approval.payment.as_deref() == Some("po_1");
            format!("approved {} {ours} {}", approval.asset.is_some(), approval.amount_minor == 400)
        }
        ProviderOutcome::Declined(decline) => format!("declined {}", decline.code),
        ProviderOutcome::Rejected(rejection) => {
            format!("rejected {:?} {}", rejection.fault, rejection.code == "unnamed")
        }
        other => format!("{other:?}"),
    }
}

fn call(gateway: &PeerGateway, destination: &str) -> ProviderCall {
    ProviderCall {
        binding: gateway.binding(),
        step: ProviderStep::Payout,
        key: "cf0123456789".to_owned(),
        payment: "po_1".to_owned(),
        reference: None,
        amount: Money::new(400, Asset::parse("USD").expect("a currency")).expect("an amount"),
        instrument: Some(Masked::new(destination.to_owned())),
    }
}

fn lookup(gateway: &PeerGateway) -> ProviderLookup {
    let ProviderCall { binding, step, key, payment, reference, amount, .. } = call(gateway, "alice");
    ProviderLookup { binding, step, key, payment, reference, amount }
}

/// Starts a peer with prepared answers, and a connector to it.
async fn peer() -> (Arc<Mutex<Vec<u8>>>, PeerGateway) {
    let (says, address) = prepared_server(true).await;
    let settings = PeerSettings {
        name: PeerName::parse("eu").expect("a name"),
        url: Masked::new(format!("counterfoil+http://sk_test_1@{address}/ac_ours")),
        retention: Span::from_ms(86_400_000),
        limits: TransportLimits { timeout: Duration::from_secs(20), connections_max: 4 },
    };
    (says, PeerGateway::new(settings).expect("a connector"))
}
