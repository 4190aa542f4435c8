//! Names read by clients or contained in headers.

use counterfoil_core::idempotency::key::KeyError;
use counterfoil_core::idempotency::reply::ReplyMedia;

#[test]
fn a_malformed_key_is_explained() {
    for (error, says) in [
        (KeyError::Empty, "empty"),
        (KeyError::TooLong, "longer than 255"),
        (KeyError::BadCharacter, "visible ASCII"),
        (KeyError::BadQuotes, "closing quote"),
    ] {
        assert!(error.sentence().contains(says), "{error:?}: {}", error.sentence());
    }
}

#[test]
fn every_media_type_has_its_name() {
    assert_eq!(ReplyMedia::Json.content_type(), "application/json");
    assert_eq!(ReplyMedia::Problem.content_type(), "application/problem+json");
}

/// Stores keep these names beside the bytes of an answer.
#[test]
fn golden_media() {
    for (media, word) in [(ReplyMedia::Json, "json"), (ReplyMedia::Problem, "problem")] {
        assert_eq!((media.name(), ReplyMedia::parse(word)), (word, Some(media)));
    }
    assert_eq!(ReplyMedia::parse("application/json"), None);
}
