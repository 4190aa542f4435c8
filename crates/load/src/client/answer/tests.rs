use super::*;
use proptest::prelude::*;

const CHARGE: &[u8] =
    b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nlocation:/v1/charges/ch_1\r\n\
    IDEMPOTENT-REPLAYED: \t true \r\ncontent-length: 7\r\nidempotency-expires: t\r\n\r\n{\"a\":1}";

fn whole(bytes: &[u8]) -> Answer<'_> {
    let head = Head::scan(bytes).unwrap().unwrap();
    assert_eq!(head.answer_len(), bytes.len());
    Answer { head, bytes }
}

#[test]
fn an_answer_to_a_charge_is_parsed() {
    let answer = whole(CHARGE);
    assert_eq!(answer.head.status, 201);
    assert!(answer.head.replayed && !answer.head.closes && answer.is_success());
    assert_eq!(answer.body(), b"{\"a\":1}");
    let kept: Vec<&[u8]> = answer.head.kept.iter().flatten().map(|span| answer.cut(*span)).collect();
    assert_eq!(kept, [b"application/json".as_slice(), b"/v1/charges/ch_1", b"t"]);
}

#[test]
fn an_incomplete_head_is_awaited_at_every_split() {
    let head = CHARGE.len() - 7;
    for cut in 0..head {
        assert_eq!(Head::scan(&CHARGE[..cut]), Ok(None), "cut at {cut}");
    }
    assert!(Head::scan(&CHARGE[..head]).unwrap().is_some());
}

#[test]
fn odd_heads_are_parsed() {
    let closing = whole(b"HTTP/1.1 503 \r\nConnection: Close\r\nContent-Length: 0\r\n\r\n");
    assert!(closing.head.closes && !closing.is_success());
    assert!(whole(b"HTTP/1.0 200\r\ncontent-length:0\r\n\r\n").head.closes);
    assert_eq!(whole(b"HTTP/1.1 204 No Content\r\n\r\n").body(), b"");
    assert_eq!(
        whole(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 1\r\nx:\r\n\r\n!").body(),
        b"!"
    );
    assert!(
        !whole(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nidempotent-replayed: false\r\n\r\n").head.replayed
    );
}

#[test]
fn malformed_answers_are_refused() {
    for (bytes, why) in [
        (b"SSH-2.0-OpenSSH\r\n".as_slice(), Malformed::StatusLine),
        (b"HTTP/1.1 20x OK\r\n", Malformed::StatusLine),
        (b"HTTP/1.1 2000 OK\r\n", Malformed::StatusLine),
        (b"HTTP/1.1 100 Continue\r\n\r\n", Malformed::StatusLine),
        (b"HTTP/2 200\r\n", Malformed::StatusLine),
        (b"\r\n\r\n", Malformed::StatusLine),
        (b"\n", Malformed::HeaderLine),
        (b"HTTP/1.1 200 OK\n\n", Malformed::HeaderLine),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", Malformed::HeaderLine),
        (b"HTTP/1.1 200 OK\r\n: x\r\n\r\n", Malformed::HeaderLine),
        (b"HTTP/1.1 200 OK\r\na: b\r\n folded: c\r\n\r\n", Malformed::HeaderLine),
        (b"HTTP/1.1 200 OK\r\n\r\n", Malformed::NoLength),
        (b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", Malformed::Length),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Malformed::Length),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", Malformed::Length),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n", Malformed::BodyTooLong),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Malformed::Chunked),
    ] {
        assert_eq!(Head::scan(bytes), Err(why), "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn endless_heads_are_refused() {
    let mut lines = b"HTTP/1.1 200 OK\r\n".to_vec();
    while lines.len() < HEAD_BYTES_MAX {
        assert_eq!(Head::scan(&lines), Ok(None));
        lines.extend_from_slice(b"x-filler: 0123456789012345678901234567890123456789\r\n");
    }
    assert_eq!(Head::scan(&lines), Err(Malformed::HeadTooLong));
    assert_eq!(Head::scan(&vec![b'x'; HEAD_BYTES_MAX]), Err(Malformed::HeadTooLong));
}

#[test]
fn a_replay_must_repeat_everything_kept() {
    let answer = |replayed: &str, status: u16, kind: &str, location: &str, body: &str| {
        let length = body.len();
        format!(
            "HTTP/1.1 {status} X\r\n{replayed}{kind}{location}content-length: {length}\r\nrequest-id: {replayed:?}\r\n\r\n{body}"
        )
        .into_bytes()
    };
    let (kind, place, mark) = ("content-type: a\r\n", "location: b\r\n", "idempotent-replayed: true\r\n");
    let first = answer("", 201, kind, place, "{}");
    let repeats = |bytes: &[u8]| whole(bytes).repeats(&whole(&first));
    assert!(repeats(&answer(mark, 201, kind, place, "{}")));
    assert!(!repeats(&answer("", 201, kind, place, "{}")), "not marked");
    assert!(!repeats(&answer(mark, 200, kind, place, "{}")), "status");
    assert!(!repeats(&answer(mark, 201, "content-type: c\r\n", place, "{}")), "header");
    assert!(!repeats(&answer(mark, 201, kind, "", "{}")), "header left out");
    assert!(!repeats(&answer(mark, 201, kind, place, "{ }")), "body");
}

proptest! {
    #[test]
    fn garbage_is_an_error_or_waited_for(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Head::scan(&bytes);
    }

    /// Mangled real answers reach deeper than noise does.
    #[test]
    fn a_mangled_answer_never_points_outside_itself(
        at in 0..CHARGE.len(), byte in any::<u8>(), cut in 0..=CHARGE.len(),
    ) {
        let mut bytes = CHARGE.to_vec();
        bytes[at] = byte;
        bytes.truncate(cut);
        if let Ok(Some(head)) = Head::scan(&bytes) && head.answer_len() <= bytes.len() {
            let answer = Answer { head, bytes: &bytes };
            prop_assert!(answer.body().len() <= bytes.len());
            prop_assert!(!answer.repeats(&answer) || head.replayed);
        }
    }
}
