//! A client's answer, reduced to the parts that the product promises to repeat.

use counterfoil_testkit::http::Answer;
use serde_json::Value;

/// Headers that a replay must repeat.
const DECLARED: [&str; 3] = ["content-type", "location", "idempotency-expires"];
/// Error code: the store cannot be written, and the provider was not called.
const AWAY: &str = "store_unavailable";
/// Temporary refusals: the same key may be sent again.
const PASSING: [&str; 5] =
    ["idempotency_key_in_use", "payment_in_progress", "outcome_pending", "rate_limited", "shutting_down"];
/// Final refusals.
const LASTING: [&str; 8] = [
    "card_declined",
    "payout_failed",
    "insufficient_funds",
    "cap_exceeded",
    "charge_state_conflict",
    "gateway_rejected",
    "gateway_unauthorized",
    "gateway_unavailable",
];

/// A final answer: status, declared headers and body, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FinalAnswer {
    pub(super) status: u16,
    declared: Box<str>,
    body: Box<[u8]>,
}

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    Final(FinalAnswer),
    /// Retry later: in progress, or not known yet.
    Later,
    /// Retry later: the store is unavailable.
    Away,
    /// A status that a valid request should never get.
    Strange(u16),
    /// No complete answer: the server died, or was dead.
    Cut,
}

impl Attempt {
    pub(super) fn of(answer: std::io::Result<Answer>) -> Attempt {
        let Ok(answer) = answer else { return Attempt::Cut };
        if matches!(answer.status, 200 | 201) {
            return Attempt::Final(FinalAnswer::of(&answer));
        }
        let told = FinalAnswer::of(&answer);
        match told.error() {
            Some(error) if error == AWAY => Attempt::Away,
            Some(error) if PASSING.contains(&error.as_str()) => Attempt::Later,
            Some(error) if LASTING.contains(&error.as_str()) => Attempt::Final(told),
            Some(_) | None => Attempt::Strange(answer.status),
        }
    }
}

impl FinalAnswer {
    fn of(answer: &Answer) -> FinalAnswer {
        let declared =
            DECLARED.map(|name| format!("{name}: {}\n", answer.header(name).unwrap_or("(absent)")));
        FinalAnswer {
            status: answer.status,
            declared: declared.concat().into(),
            body: answer.body.as_slice().into(),
        }
    }

    pub(super) fn is_success(&self) -> bool {
        matches!(self.status, 200 | 201)
    }

    fn body(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The id it names: `id` of a created or moved object, `charge` or `payout` of a refused one.
    pub(super) fn names(&self) -> Option<String> {
        let body = self.body();
        let fields = if self.is_success() { &["id"][..] } else { &["charge", "payout"] };
        fields.iter().find_map(|field| body[*field].as_str()).map(str::to_owned)
    }

    /// The error code.
    pub(super) fn error(&self) -> Option<String> {
        self.body()["error"].as_str().map(str::to_owned)
    }

    /// The value of a numeric field.
    pub(super) fn number(&self, field: &str) -> Option<u64> {
        self.body()[field].as_u64()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::crash) fn answer(status: u16, body: &str) -> Answer {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Answer { status, headers, body: body.as_bytes().to_vec() }
    }

    pub(in crate::crash) fn final_answer(status: u16, body: &str) -> FinalAnswer {
        FinalAnswer::of(&answer(status, body))
    }

    #[test]
    fn only_declared_parts_count() {
        let first = final_answer(201, r#"{"id":"ch_1","amount":7}"#);
        assert_eq!((first.names().as_deref(), first.number("amount")), (Some("ch_1"), Some(7)));
        let mut replay = answer(201, r#"{"id":"ch_1","amount":7}"#);
        replay.headers.push(("idempotent-replayed".into(), "true".into()));
        assert_eq!(FinalAnswer::of(&replay), first);
        replay.headers.push(("location".into(), "/v1/charges/ch_1".into()));
        assert_ne!(FinalAnswer::of(&replay), first);
        assert_ne!(final_answer(201, r#"{"id":"ch_1", "amount":7}"#), first);
        assert_eq!(final_answer(402, r#"{"charge":"ch_2"}"#).names().as_deref(), Some("ch_2"));
        assert_eq!(final_answer(402, r#"{"payout":"po_2"}"#).names().as_deref(), Some("po_2"));
        assert_eq!(final_answer(402, "{}").names(), None);
    }

    #[test]
    fn every_answer_has_its_meaning() {
        let of = |status, error| Attempt::of(Ok(answer(status, &format!(r#"{{"error":"{error}"}}"#))));
        for status in [200, 201] {
            assert!(matches!(of(status, ""), Attempt::Final(_)), "{status}");
        }
        for (status, error) in [(400, "insufficient_funds"), (402, "card_declined")] {
            assert!(matches!(of(status, error), Attempt::Final(_)), "{error}");
        }
        // One status, two meanings.
        assert!(matches!(of(409, "charge_state_conflict"), Attempt::Final(_)));
        assert_eq!(of(409, "payment_in_progress"), Attempt::Later);
        assert!(matches!(of(503, "gateway_unavailable"), Attempt::Final(_)));
        assert_eq!(of(503, "outcome_pending"), Attempt::Later);
        assert_eq!(of(503, "store_unavailable"), Attempt::Away);
        for (status, error) in [(400, "invalid_request"), (404, "not_found"), (500, ""), (503, "")] {
            assert_eq!(of(status, error), Attempt::Strange(status));
        }
        assert_eq!(Attempt::of(Err(std::io::ErrorKind::UnexpectedEof.into())), Attempt::Cut);
    }
}
