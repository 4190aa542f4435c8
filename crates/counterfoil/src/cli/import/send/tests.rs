use super::*;
use crate::cli::import::command::Route;
use crate::cli::import::read;
use counterfoil_core::idempotency::derive::{Bucket, Stable, Width};
use counterfoil_core::idempotency::fingerprint::{Fingerprint, FingerprintInput};
use counterfoil_core::types::id::TenantId;
use counterfoil_core::types::json::Json;
use counterfoil_core::types::time::Span;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn answer(status: u16, error: Option<Code>) -> Answer {
    Answer { status, error: error.map(|code| code.name().to_owned()), ..Answer::default() }
}

#[test]
fn stored_refusals_are_final_and_other_answers_are_retried() {
    for code in [Code::GatewayUnavailable, Code::GatewayUnauthorized, Code::MarkedFailed, Code::CardDeclined]
    {
        assert!(!passes(&answer(code.status(), Some(code))), "{code:?}");
    }
    for code in [Code::OutcomePending, Code::IdempotencyKeyInUse, Code::StoreUnavailable, Code::RateLimited] {
        assert!(passes(&answer(code.status(), Some(code))), "{code:?}");
    }
    for (status, again) in [(502, true), (504, true), (429, true), (404, false), (201, false), (401, false)] {
        assert_eq!(passes(&answer(status, None)), again, "{status}");
    }
}

#[test]
fn only_an_answer_that_holds_the_key_closes_it() {
    for code in [Code::InvalidRequest, Code::Unauthorized, Code::NotFound, Code::BodyTooLarge] {
        assert!(!is_closed(&answer(code.status(), Some(code))), "{code:?}");
    }
    for closed in [
        answer(201, None),
        answer(409, Some(Code::AccountExists)),
        answer(410, Some(Code::IdempotencyKeyExpired)),
    ] {
        assert!(is_closed(&closed), "{closed:?}");
    }
}

#[test]
fn the_golden_closing_is_accepted_by_the_server() {
    let body = Json::parse(CLOSING_BODY).unwrap();
    assert!(counterfoil_wire::account::read::read(&body).is_ok());
    let request = FingerprintInput {
        tenant: TenantId::from_i64(1),
        method: "POST",
        path: CLOSING_PATH,
        query: &[],
        body: &body,
    };
    assert_eq!(
        Fingerprint::of(request).digest().hex(),
        "00aae0c3e9a559516ed26a6ae1e6fc0d7dc865da7b1b13a79a823bc6cb51b3f2"
    );
}

#[test]
fn a_pause_never_exceeds_its_ceiling() {
    for _ in 0..100 {
        assert!(jitter(PAUSE_MAX) <= PAUSE_MAX);
    }
}

const OWN: i64 = 100;
const CHARGE: &str = r#"{"order_id":1,"amount":5,"currency":"USD","payment_method":"pm_card_visa"}"#;

/// A request as the scripted server saw it: the path and the bucket of the key.
type SeenRequest = (String, Bucket);

fn problem(code: Code, more: &str) -> String {
    let body = format!(r#"{{"error":"{}"}}"#, code.name());
    format!(
        "HTTP/1.1 {} X\r\n{more}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        code.status(),
        body.len()
    )
}

fn made() -> String {
    "HTTP/1.1 201 X\r\ncontent-length: 10\r\nconnection: close\r\n\r\n{\"id\":\"x\"}".to_owned()
}

/// Delivers a command to a server with these answers, one per connection. An empty answer cuts the
/// connection.
async fn delivered(
    width: Option<Width>,
    deadline: Duration,
    answers: &[String],
) -> (Delivered, Vec<SeenRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let recipe = Recipe {
        route: Route::Charges,
        stable: Stable::declare("charges", ["order_id"]).unwrap(),
        time_field: None,
        width,
    };
    let records = read::read(CHARGE.as_bytes(), Route::Charges.layout()).0;
    let command = recipe.commands(records, &mut Vec::new()).pop().unwrap();
    let sender = Sender {
        client: Client::new(&format!("http://{}", listener.local_addr().unwrap()), "sk", 1).unwrap(),
        recipe,
        as_of: Some(Time::from_ms(OWN)),
        deadline,
        stopped: AtomicBool::new(false),
    };
    let serve = async {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = String::new();
            while !request.ends_with('}') {
                let mut bytes = [0; 1024];
                let count = stream.read(&mut bytes).await.unwrap();
                request.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
            }
            let buckets = (OWN - 1..=OWN + 1).map(Bucket::Number).chain([Bucket::Forever]);
            let bucket = buckets.into_iter().find(|bucket| request.contains(&command.identity.key(*bucket)));
            asked.push((request.split(' ').nth(1).unwrap().to_owned(), bucket.unwrap()));
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        asked
    };
    tokio::join!(sender.deliver(&command), serve)
}

fn asked(steps: &[(&str, Bucket)]) -> Vec<SeenRequest> {
    steps.iter().map(|(path, bucket)| ((*path).to_owned(), *bucket)).collect()
}

const LONG: Duration = Duration::from_mins(1);

#[tokio::test]
async fn an_answer_that_is_not_final_is_retried_under_the_same_key() {
    let answers = [
        problem(Code::OutcomePending, "retry-after: 0\r\n"),
        String::new(),
        problem(Code::IdempotencyKeyInUse, ""),
        made(),
    ];
    let (delivered, requests) = delivered(None, LONG, &answers).await;
    assert_eq!(requests, asked(&[("/v1/charges", Bucket::Forever); 4]));
    let Outcome::Answered(answer) = delivered.outcome else { panic!("{delivered:?}") };
    assert_eq!((answer.status, answer.resource.as_deref()), (201, Some("x")));
}

#[tokio::test]
async fn a_retry_after_beyond_the_deadline_leaves_the_command_unresolved() {
    let answers = [problem(Code::StoreUnavailable, "retry-after: 3600\r\n")];
    let (delivered, _) = delivered(None, Duration::from_secs(30), &answers).await;
    let Outcome::Unresolved(status, why) = delivered.outcome else { panic!("{delivered:?}") };
    assert_eq!((status, why.as_str()), (Some(503), "store_unavailable"));
}

#[tokio::test]
async fn a_command_is_not_sent_if_a_neighbouring_key_cannot_be_closed() {
    let width = Width::new(Span::from_ms(1));
    for code in [Code::Unauthorized, Code::Forbidden, Code::InvalidRequest] {
        let (delivered, requests) = delivered(width, LONG, &[problem(code, "")]).await;
        assert_eq!(requests, asked(&[("/v1/accounts", Bucket::Number(OWN - 1))]));
        let Outcome::Answered(answer) = delivered.outcome else { panic!("{delivered:?}") };
        assert_eq!(answer.error.as_deref(), Some(code.name()));
    }
}

#[tokio::test]
async fn the_search_asks_the_neighbours_in_order() {
    let width = Width::new(Span::from_ms(1));
    let (before, own, after) = (Bucket::Number(OWN - 1), Bucket::Number(OWN), Bucket::Number(OWN + 1));
    let another = || problem(Code::IdempotencyKeyFingerprintMismatch, "");
    let closed = || problem(Code::AccountExists, "");
    for (answers, requests) in [
        (vec![made(), made()], vec![("/v1/accounts", before), ("/v1/charges", own)]),
        (vec![another(), made()], vec![("/v1/accounts", before), ("/v1/charges", before)]),
        (
            vec![closed(), another(), closed(), made()],
            vec![
                ("/v1/accounts", before),
                ("/v1/charges", own),
                ("/v1/accounts", own),
                ("/v1/charges", after),
            ],
        ),
        (
            vec![closed(), another(), another()],
            vec![("/v1/accounts", before), ("/v1/charges", own), ("/v1/accounts", own)],
        ),
    ] {
        let (_, found) = delivered(width, LONG, &answers).await;
        assert_eq!(found, asked(&requests));
    }
}
