//! A provider's answers, through the connector and a real socket: the connector believes nothing
//! that the bytes do not say.

use super::prepared_server::{http, prepared_server, read, storable};
use crate::target::{Check, Kind, Target};
use counterfoil_core::payments::provider::{Approval, LookupResult, ProviderOutcome, ProviderStep, Stands};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_gateway::{Gateway, ProviderCall, ProviderLookup, ProviderProfile};
use counterfoil_gateway_stripe::{ProfileOverrides, StripeGateway, StripeSettings};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

pub(super) const TARGET: Target = Target {
    name: "answer",
    seeds,
    words: &[
        "\"id\":",
        "\"pi_1\"",
        "\"\"",
        "\\u0000",
        "\"status\":",
        "\"succeeded\"",
        "\"requires_capture\"",
        "\"canceled\"",
        "\"requires_payment_method\"",
        "\"processing\"",
        "\"amount\":",
        "\"amount_received\":",
        "\"amount_capturable\":",
        "1250",
        "-1250",
        "1250.0",
        "1e3",
        "null",
        "\"currency\":",
        "\"usd\"",
        "\"eur\"",
        "\"metadata\":",
        "\"counterfoil_payment\":",
        "\"ch_1\"",
        "\"ch_2\"",
        "\"last_payment_error\":",
        "\"error\":",
        "\"type\":",
        "\"card_error\"",
        "\"idempotency_error\"",
        "\"code\":",
        "\"payment_intent\":",
        "\"data\":",
        "\"has_more\":",
        "true",
        "false",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "HTTP/1.1 200 OK\r\n",
        "content-length: 0\r\n",
        "transfer-encoding: chunked\r\n",
        "\r\n",
        "retry-after: 7\r\n",
    ],
    length_max: 4_096,
    short: 2_000,
    start,
};

/// Statuses, chosen by the first byte of an input.
const STATUSES: [u16; 16] = [200, 200, 200, 201, 299, 300, 304, 400, 401, 402, 403, 404, 409, 429, 500, 503];
/// Second bytes: a call, a search, or a call whose answer is the input itself, byte by byte.
const RAW: u8 = 2;

fn seeds() -> Vec<Vec<u8>> {
    let intent = |status: &str, more: &str| {
        format!(
            r#"{{"id":"pi_1","object":"payment_intent","amount":1250,{more}"currency":"usd","metadata":{{"counterfoil_payment":"ch_1"}},"status":"{status}"}}"#
        )
    };
    let error = r#"{"type":"card_error","code":"card_declined","decline_code":"lost_card","payment_intent":{"id":"pi_1"}}"#;
    let bodies = [
        (0, intent("succeeded", r#""amount_received":1250,"#)),
        (0, intent("requires_capture", r#""amount_capturable":1250,"amount_received":0,"#)),
        (0, intent("canceled", "")),
        (0, intent("requires_payment_method", &format!("\"last_payment_error\":{error},"))),
        (9, format!("{{\"error\":{error}}}")),
        (7, r#"{"error":{"type":"invalid_request_error","code":"parameter_missing"}}"#.to_owned()),
        (7, r#"{"error":{"type":"idempotency_error"}}"#.to_owned()),
        (13, String::new()),
    ];
    let mut seeds: Vec<Vec<u8>> =
        bodies.iter().map(|(status, body)| [&[*status, 0][..], body.as_bytes()].concat()).collect();
    for more in ["", ","] {
        let one = intent("succeeded", r#""amount_received":1250,"#);
        let two = if more.is_empty() { String::new() } else { intent("canceled", "") };
        seeds.push(
            [b"\x00\x01", format!("{{\"data\":[{one}{more}{two}],\"has_more\":false}}").as_bytes()].concat(),
        );
    }
    let body = intent("succeeded", r#""amount_received":1250,"#);
    let whole = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    seeds.push([&[0, RAW][..], whole.as_bytes()].concat());
    let chunked = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    seeds.push([&[0, RAW][..], chunked.as_bytes()].concat());
    seeds
}

fn start() -> Check {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    // Malformed answers break their connection, so they have a separate provider.
    let (says, gateway) = runtime.block_on(provider(true));
    let (says_raw, gateway_raw) = runtime.block_on(provider(false));
    Box::new(move |input| {
        let (status, how, body) = match input {
            [status, how, body @ ..] => (STATUSES[usize::from(*status) % STATUSES.len()], how % 3, body),
            _ => (200, 0, input),
        };
        *says.lock().expect("one thread") = http(status, body);
        *says_raw.lock().expect("one thread") = body.to_vec();
        match how {
            1 => search(&runtime, &gateway, status, body),
            RAW => {
                let outcome = runtime.block_on(gateway_raw.call(call(&gateway_raw)));
                if let ProviderOutcome::Approved(approval) = &outcome {
                    // The connector parses the frame; an approved field must at least occur in the
                    // bytes.
                    let text = String::from_utf8_lossy(body);
                    assert!(text.contains("HTTP/1.1 2") || text.contains("HTTP/1.0 2"), "{approval:?}");
                    assert!(text.contains("\"id\"") && text.contains("\"status\""), "{approval:?}");
                }
                Kind::of(format!("raw {}", kind(&outcome)))
            }
            _ => {
                let outcome = runtime.block_on(gateway.call(call(&gateway)));
                believed(&outcome, status, body);
                Kind::of(format!("{status} {}", kind(&outcome)))
            }
        }
    })
}

fn search(runtime: &Runtime, gateway: &StripeGateway, status: u16, body: &[u8]) -> Kind {
    let ProviderCall { binding, payment, amount, .. } = call(gateway);
    let lookup = ProviderLookup {
        binding,
        step: ProviderStep::Charge,
        key: "cf".to_owned(),
        payment,
        reference: None,
        amount,
    };
    let found = runtime.block_on(gateway.lookup(lookup));
    let page = match &found {
        LookupResult::Nothing | LookupResult::Several | LookupResult::Payment(_) => read(body),
        LookupResult::Unclear(_) => None,
    };
    let Some(page) = page else {
        return Kind::of(format!("{found:?}").split('(').next().unwrap_or_default());
    };
    let page = page["data"].as_array().expect("a page");
    match &found {
        LookupResult::Nothing => {
            assert!((200..300).contains(&status), "{status} is no proof of absence");
            assert!(page.is_empty(), "absence is an empty page");
        }
        LookupResult::Several => assert!(!page.is_empty(), "several of nothing"),
        LookupResult::Payment(ProviderOutcome::Approved(approval)) => {
            assert!((200..300).contains(&status), "{status} is no approval");
            assert!(page.iter().any(|intent| stands_in(approval, intent)), "{approval:?}");
            let ours = |intent: &Value| intent["metadata"]["counterfoil_payment"] == "ch_1";
            assert!(page.iter().all(ours), "an answer to another question");
        }
        LookupResult::Payment(_) | LookupResult::Unclear(_) => {}
    }
    Kind::of(match &found {
        LookupResult::Payment(outcome) => format!("found {}", kind(outcome)),
        other => format!("{other:?}"),
    })
}

/// Checks that the answer says everything the connector approved, declined or rejected.
fn believed(outcome: &ProviderOutcome, status: u16, body: &[u8]) {
    match outcome {
        ProviderOutcome::Approved(approval) => {
            assert!((200..300).contains(&status), "{status} is no approval");
            assert!(read(body).is_none_or(|json| stands_in(approval, &json)), "{approval:?}");
        }
        ProviderOutcome::Declined(decline) => {
            let Some(json) = read(body) else { return };
            let words = [Some(&decline.code), decline.decline_code.as_ref(), decline.reference.as_ref()];
            assert!(words.into_iter().flatten().all(|word| storable(word)), "{decline:?}");
            match status {
                402 => assert_eq!(json["error"]["type"], "card_error"),
                200..300 => {
                    assert!(json["status"] == "canceled" || json["status"] == "requires_payment_method");
                }
                other => panic!("{other} is no decline"),
            }
        }
        ProviderOutcome::Rejected(rejection) => {
            assert!(matches!(status, 400 | 401 | 403 | 404), "{status} is no rejection");
            assert!(storable(&rejection.code), "{rejection:?}");
        }
        ProviderOutcome::Busy { .. } => assert_eq!(status, 429),
        ProviderOutcome::NotSent => panic!("the request was read to its end"),
        ProviderOutcome::Unknown(_) => {}
    }
}

/// Whether the payment contains everything an approval says.
fn stands_in(approval: &Approval, intent: &Value) -> bool {
    let (status, moved) = if approval.stands == Stands::Captured {
        ("succeeded", &intent["amount_received"])
    } else {
        ("requires_capture", &intent["amount_capturable"])
    };
    let (moved, asked) = (moved.as_i64(), intent["amount"].as_i64());
    let amount = match (moved, asked) {
        (Some(moved), Some(asked)) if moved != asked => 0,
        (Some(amount), _) | (None, Some(amount)) => amount,
        (None, None) => return false,
    };
    let asset = intent["currency"].as_str().and_then(|code| Asset::currency(code).ok());
    storable(&approval.reference)
        && intent["id"] == *approval.reference
        && intent["status"] == status
        && approval.amount_minor == amount
        && approval.asset == asset
        && approval.payment.as_deref() == intent["metadata"]["counterfoil_payment"].as_str()
}

fn kind(outcome: &ProviderOutcome) -> String {
    match outcome {
        ProviderOutcome::Approved(approval) => {
            format!(
                "approved {:?} {} {}",
                approval.stands,
                approval.asset.is_some(),
                approval.payment.is_some()
            )
        }
        ProviderOutcome::Declined(decline) => {
            format!("declined {} {}", decline.decline_code.is_some(), decline.reference.is_some())
        }
        ProviderOutcome::Rejected(rejection) => format!("rejected {:?}", rejection.fault),
        other => format!("{other:?}"),
    }
}

fn call(gateway: &StripeGateway) -> ProviderCall {
    let usd = Asset::parse("USD").expect("a currency");
    ProviderCall {
        binding: gateway.binding(),
        step: ProviderStep::Charge,
        key: "cf0123456789".to_owned(),
        payment: "ch_1".to_owned(),
        reference: None,
        amount: Money::new(1_250, usd).expect("an amount"),
        instrument: Some(Masked::new("pm_card_visa".to_owned())),
    }
}

/// Starts a provider with prepared answers, and a connector to it.
async fn provider(stays: bool) -> (Arc<Mutex<Vec<u8>>>, StripeGateway) {
    let (says, address) = prepared_server(stays).await;
    let settings = StripeSettings {
        url: Masked::new(format!("stripe+http://sk_test_1@{address}")),
        profile: ProviderProfile::named("stripe").expect("a profile"),
        bounds: ProfileOverrides::default(),
        timeout: Duration::from_secs(20),
        connections_max: 4,
    };
    (says, StripeGateway::new(settings).expect("a connector"))
}
