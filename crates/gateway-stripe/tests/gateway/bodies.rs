//! Answers that arrive in pieces, not at all, without end, or malformed.

use crate::provider::{Act, HASTY, Provider, charge, intent, reply};
use counterfoil_core::payments::provider::{Cause, ProviderOutcome};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n";
const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

async fn play(script: Vec<Act>) -> ProviderOutcome {
    Provider::playing(script).await.charged().await
}

fn is_approved(outcome: &ProviderOutcome) -> bool {
    matches!(outcome, ProviderOutcome::Approved(_))
}

#[tokio::test]
async fn an_answer_in_single_bytes_is_read_whole() {
    let outcome = play(vec![Act::Drip(reply(200, "", &intent("pi_1", "succeeded")))]).await;
    assert!(is_approved(&outcome), "{outcome:?}");
}

#[tokio::test]
async fn an_answer_in_chunks_is_read_whole() {
    let body = intent("pi_1", "succeeded");
    let mut script = vec![Act::Send(CHUNKED.to_vec())];
    for piece in body.as_bytes().chunks(7) {
        let text = str::from_utf8(piece).unwrap();
        script.push(Act::Send(format!("{:x}\r\n{text}\r\n", piece.len()).into_bytes()));
    }
    script.push(Act::Send(b"0\r\n\r\n".to_vec()));
    let outcome = play(script).await;
    assert!(is_approved(&outcome), "{outcome:?}");
}

#[tokio::test]
async fn an_interim_answer_is_skipped() {
    let mut bytes = b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec();
    bytes.extend(reply(200, "", &intent("pi_1", "succeeded")));
    let outcome = play(vec![Act::Send(bytes)]).await;
    assert!(is_approved(&outcome), "{outcome:?}");
}

#[tokio::test]
async fn the_content_type_does_not_matter_if_the_json_parses() {
    let body = intent("pi_1", "succeeded");
    let text = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let outcome = play(vec![Act::Send(text.into_bytes())]).await;
    assert!(is_approved(&outcome), "{outcome:?}");
}

#[tokio::test]
async fn garbage_is_unreadable() {
    let whole = intent("pi_1", "succeeded");
    for body in ["", "null", "OK", "<html>", "{", "\u{0}\u{1}", &whole[..whole.len() - 1]] {
        let outcome = play(vec![Act::Send(reply(200, "", body))]).await;
        assert_eq!(outcome, ProviderOutcome::Unknown(Cause::Unreadable), "{body:?}");
    }
    let mut not_text = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n".to_vec();
    not_text.extend([0xff, 0xfe, 0x00, 0x80]);
    assert_eq!(play(vec![Act::Send(not_text)]).await, ProviderOutcome::Unknown(Cause::Unreadable));
}

#[tokio::test]
async fn a_stray_byte_in_any_field_makes_the_answer_unreadable() {
    let whole = reply(200, "", &intent("pi_1", "succeeded"));
    assert!(is_approved(&play(vec![Act::Send(whole.clone())]).await));
    let place = whole.windows(14).position(|word| word == b"payment_intent").unwrap();
    let mut stray = whole;
    stray[place] = 0x80;
    assert_eq!(play(vec![Act::Send(stray)]).await, ProviderOutcome::Unknown(Cause::Unreadable));
}

#[tokio::test]
async fn an_answer_that_is_not_http_is_a_cut() {
    let outcome = play(vec![Act::Send(b"SSH-2.0-OpenSSH\r\n\r\n".to_vec()), Act::Cut]).await;
    assert_eq!(outcome, ProviderOutcome::Unknown(Cause::Cut));
}

#[tokio::test]
async fn a_huge_answer_is_unreadable_and_not_read_to_its_end() {
    let announced = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", u64::MAX / 2);
    let flood = Act::Flood(vec![b' '; 8192]);
    assert_eq!(
        play(vec![Act::Send(announced.into_bytes()), flood]).await,
        ProviderOutcome::Unknown(Cause::Unreadable)
    );
    let mut chunk = b"1000\r\n".to_vec();
    chunk.extend([b' '; 0x1000]);
    chunk.extend(b"\r\n");
    assert_eq!(
        play(vec![Act::Send(CHUNKED.to_vec()), Act::Flood(chunk)]).await,
        ProviderOutcome::Unknown(Cause::Unreadable)
    );
}

#[tokio::test]
async fn the_largest_answer_is_read_and_one_byte_more_is_not() {
    let body = intent("pi_1", "succeeded");
    let padded = |bytes: usize| format!("{body}{}", " ".repeat(bytes - body.len()));
    let outcome = play(vec![Act::Send(reply(200, "", &padded(256 * 1024)))]).await;
    assert!(is_approved(&outcome), "{outcome:?}");
    let outcome = play(vec![Act::Send(reply(200, "", &padded(256 * 1024 + 1)))]).await;
    assert_eq!(outcome, ProviderOutcome::Unknown(Cause::Unreadable));
}

#[tokio::test]
async fn an_endless_head_is_a_cut() {
    let script = vec![Act::Send(b"HTTP/1.1 200 OK\r\n".to_vec()), Act::Flood(b"x-a: b\r\n".repeat(512))];
    assert_eq!(play(script).await, ProviderOutcome::Unknown(Cause::Cut));
}

#[tokio::test]
async fn no_answer_at_all_is_a_timeout() {
    let provider = Provider::playing(vec![Act::Hang]).await;
    assert_eq!(charge(&provider.gateway(HASTY)).await, ProviderOutcome::Unknown(Cause::Timeout));
    assert_eq!(provider.seen().len(), 1);
}

#[tokio::test]
async fn half_an_answer_is_a_timeout() {
    for half in [&b"HTTP/1.1 200"[..], HEAD, CHUNKED, b"HTTP/1.1 402 X\r\ncontent-length: 9\r\n\r\n{"] {
        let provider = Provider::playing(vec![Act::Send(half.to_vec()), Act::Hang]).await;
        assert_eq!(charge(&provider.gateway(HASTY)).await, ProviderOutcome::Unknown(Cause::Timeout));
    }
}

#[tokio::test]
async fn a_cut_before_or_within_the_head_or_body_is_a_cut() {
    let whole = reply(200, "", &intent("pi_1", "succeeded"));
    for sent in [&b""[..], b"HTTP/1.1 200", HEAD, CHUNKED, &whole[..whole.len() - 1]] {
        let outcome = play(vec![Act::Send(sent.to_vec()), Act::Cut]).await;
        assert_eq!(outcome, ProviderOutcome::Unknown(Cause::Cut), "{}", String::from_utf8_lossy(sent));
    }
}

#[tokio::test]
async fn a_server_error_is_known_by_its_head_alone() {
    let head = b"HTTP/1.1 500 X\r\ncontent-length: 1000\r\n\r\n".to_vec();
    for end in [Act::Hang, Act::Cut, Act::Flood(vec![b' '; 4096])] {
        let outcome = play(vec![Act::Send(head.clone()), end]).await;
        assert_eq!(outcome, ProviderOutcome::Unknown(Cause::ServerError));
    }
}
