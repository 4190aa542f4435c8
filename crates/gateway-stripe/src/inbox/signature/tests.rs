use super::*;

const T: i64 = 1_700_000_000;
const NOW: Time = Time::from_ms(T * 1_000);
const BODY: &[u8] = br#"{"id":"evt_1","object":"event"}"#;
const SECRET: &str = "whsec_test_secret";
const TAG: &str = "0c8670ed117751cc551a20e35839447075c42800ea3cf3e8a2fbda99cd1e6edd";

fn check(secrets: &[&str], header: &str, body: &[u8], now: Time) -> Result<(), Unopened> {
    let secrets: Vec<WebhookSecret> = secrets.iter().map(|text| WebhookSecret::new(text)).collect();
    verify(&secrets, header.as_bytes(), body, now)
}

fn at(header: &str) -> Result<(), Unopened> {
    check(&[SECRET], header, BODY, NOW)
}

#[test]
fn a_malformed_header_is_refused() {
    let other = "v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39";
    for header in [
        String::new(),
        ",".into(),
        "t".into(),
        TAG.into(),
        format!("v1={TAG}"),
        format!("t={T}"),
        format!("t={T},{other}"),
        format!("t={T};v1={TAG}"),
        format!("t={T},v1"),
        format!("t={T},v1={TAG},"),
        format!("t={T},v1={TAG},junk"),
        format!("t={T},v1="),
        format!("t={T},v1={}", &TAG[1..]),
        format!("t={T},v1={TAG}0"),
        format!("t={T},v1={}", TAG.to_uppercase()),
        format!("t={T},v1={}g", &TAG[1..]),
        format!("t={T},v1= {}", &TAG[1..]),
        format!("t={T}, v1={TAG}"),
        format!("t={T},t={T},v1={TAG}"),
        format!("t={T},v1={TAG},t={}", T + 1),
        format!("t=,v1={TAG}"),
        format!("t=-{T},v1={TAG}"),
        format!("t=+{T},v1={TAG}"),
        format!("t=0{T},v1={TAG}"),
        format!("t={T}.0,v1={TAG}"),
        format!("t=99999999999999999999,v1={TAG}"),
        format!("t={},v1={TAG}", i64::MAX),
    ] {
        assert_eq!(at(&header), Err(Unopened::Malformed), "{header}");
    }
    assert_eq!(verify(&[WebhookSecret::new(SECRET)], b"t=1,v1=\xff", BODY, NOW), Err(Unopened::Malformed));
}

#[test]
fn a_header_is_bounded_in_bytes_and_in_parts() {
    let parts = |count: usize| format!("t={T},v1={TAG}{}", ",v0=x".repeat(count - 2));
    assert_eq!(at(&parts(SIGNATURE_PARTS_MAX)), Ok(()));
    assert_eq!(at(&parts(SIGNATURE_PARTS_MAX + 1)), Err(Unopened::Malformed));
    let long = |bytes: usize| {
        let head = format!("t={T},v1={TAG},v0=");
        let rest = "x".repeat(bytes - head.len());
        head + &rest
    };
    assert_eq!(at(&long(SIGNATURE_BYTES_MAX)), Ok(()));
    assert_eq!(at(&long(SIGNATURE_BYTES_MAX + 1)), Err(Unopened::Malformed));
}

#[test]
fn a_forged_signature_matches_nothing() {
    let header = format!("t={T},v1={TAG}");
    assert_eq!(check(&["whsec_another_secret"], &header, BODY, NOW), Err(Unopened::NoMatch));
    assert_eq!(
        check(&["test_secret"], &header, BODY, NOW),
        Err(Unopened::NoMatch),
        "the prefix is part of it"
    );
    assert_eq!(check(&[""], &header, BODY, NOW), Err(Unopened::NoMatch));
    assert_eq!(check(&[], &header, BODY, NOW), Err(Unopened::NoMatch));
    assert_eq!(at(&format!("t={T},v1={}", "0".repeat(64))), Err(Unopened::NoMatch));
    for digit in 0..64 {
        let mut forged = TAG.as_bytes().to_vec();
        forged[digit] = if forged[digit] == b'0' { b'1' } else { b'0' };
        let forged = String::from_utf8(forged).unwrap();
        assert_eq!(at(&format!("t={T},v1={forged}")), Err(Unopened::NoMatch), "digit {digit}");
    }
}

#[test]
fn an_altered_body_or_time_matches_nothing() {
    let header = format!("t={T},v1={TAG}");
    for byte in 0..BODY.len() {
        let mut altered = BODY.to_vec();
        altered[byte] ^= 1;
        assert_eq!(check(&[SECRET], &header, &altered, NOW), Err(Unopened::NoMatch), "byte {byte}");
    }
    for altered in [&BODY[1..], &BODY[..BODY.len() - 1], b"", &[BODY, b"\n"].concat()] {
        assert_eq!(check(&[SECRET], &header, altered, NOW), Err(Unopened::NoMatch));
    }
    assert_eq!(at(&format!("t={},v1={TAG}", T + 1)), Err(Unopened::NoMatch));
    // The dot does not hide a shift: bytes of the body must not count as part of the time.
    let shifted = WebhookSecret::new(SECRET).sign(17, b"0.x");
    assert_eq!(check(&[SECRET], &shifted.replace("t=17", "t=170"), b"x", NOW), Err(Unopened::NoMatch));
}

#[test]
fn the_tolerance_is_five_minutes_both_ways_to_the_millisecond() {
    let header = format!("t={T},v1={TAG}");
    let moved = |ms: i64| check(&[SECRET], &header, BODY, Time::from_ms(NOW.ms() + ms));
    for (ms, expected) in [
        (-300_001, Err(Unopened::FromTheFuture)),
        (-300_000, Ok(())),
        (0, Ok(())),
        (300_000, Ok(())),
        (300_001, Err(Unopened::TooOld)),
        (86_400_000, Err(Unopened::TooOld)),
    ] {
        assert_eq!(moved(ms), expected, "{ms}");
    }
    let old = check(&["whsec_another_secret"], &header, BODY, Time::from_ms(NOW.ms() + 300_001));
    assert_eq!(old, Err(Unopened::NoMatch), "what is not the provider's has no age");
}

#[test]
fn both_secrets_are_accepted_during_a_rotation() {
    let tag = |secret: &str| WebhookSecret::new(secret).sign(T, BODY).split_once("v1=").unwrap().1.to_owned();
    let (old, new, other) = (tag("whsec_old"), tag("whsec_new"), tag("whsec_other"));
    for header in [
        format!("t={T},v1={old}"),
        format!("t={T},v1={new}"),
        format!("t={T},v1={other},v1={new}"),
        format!("v1={old},v1={other},t={T}"),
        format!("t={T},v0={other},v1={old},v2=anything,x="),
    ] {
        assert_eq!(check(&["whsec_old", "whsec_new"], &header, BODY, NOW), Ok(()), "{header}");
        assert_eq!(check(&["whsec_gone"], &header, BODY, NOW), Err(Unopened::NoMatch), "{header}");
    }
    assert_eq!(check(&["whsec_new"], &format!("t={T},v1={old}"), BODY, NOW), Err(Unopened::NoMatch));
}

#[test]
fn signatures_of_other_schemes_are_ignored() {
    let other = at(&format!("t={T},v0={TAG},v1={}", "0".repeat(64)));
    assert_eq!(other, Err(Unopened::NoMatch));
}

/// Vectors from Python's `hmac`; the first from `openssl dgst -sha256 -hmac`.
#[test]
fn golden_signatures() {
    let all: Vec<u8> = (0..=255).collect();
    let long = "k".repeat(100);
    for (secret, seconds, body, tag) in [
        (SECRET, T, BODY, TAG),
        (
            "whsec_5WbX5kEWLlfzsGNjH64I8lOOqUB6e8FH",
            1_614_265_330,
            b"{\n  \"id\": \"evt_test_webhook\",\n  \"object\": \"event\"\n}",
            "b8b85bffc224657fc1311a63ecac925d186b6a788146dd7f9cb971f6322bfa24",
        ),
        (&long, 0, b"", "243c2f8200e1d4ee892e7a7ded377a65e2beb1c64b997c54b8b0f516216d4b0f"),
        (
            "whsec_été",
            4_102_444_800,
            &all,
            "8f209cbf9701a97094aa521f4e40b6b87d92022103e65c43ecff883044ca0b6d",
        ),
    ] {
        let header = format!("t={seconds},v1={tag}");
        assert_eq!(WebhookSecret::new(secret).sign(seconds, body), header);
        assert_eq!(check(&[secret], &header, body, Time::from_ms(seconds * 1_000)), Ok(()));
    }
}

#[test]
fn a_secret_is_masked_when_printed() {
    assert_eq!(format!("{:?}", WebhookSecret::new(SECRET)), "WebhookSecret(***)");
}
