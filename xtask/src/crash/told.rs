//! What a client was told, reduced to what the product promises to repeat.

use crate::http::Answer;
use serde_json::Value;

/// Headers that a replay must repeat.
const DECLARED: [&str; 3] = ["content-type", "location", "idempotency-expires"];

/// A final answer: status, declared headers and body, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) status: u16,
    declared: Box<str>,
    body: Box<[u8]>,
}

/// What one attempt brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The end of the matter.
    Final(Told),
    /// Come back later: still running, not known yet, or the store is away.
    Later,
    /// Nothing that a good request should be told.
    Strange(u16),
    /// No whole answer: the server died, or was dead.
    Cut,
}

impl Attempt {
    pub(super) fn of(answer: std::io::Result<Answer>) -> Attempt {
        match answer {
            Ok(answer) if matches!(answer.status, 201 | 400 | 402) => Attempt::Final(Told::of(&answer)),
            Ok(answer) if matches!(answer.status, 409 | 429 | 503) => Attempt::Later,
            Ok(answer) => Attempt::Strange(answer.status),
            Err(_) => Attempt::Cut,
        }
    }
}

impl Told {
    fn of(answer: &Answer) -> Told {
        let declared =
            DECLARED.map(|name| format!("{name}: {}\n", answer.header(name).unwrap_or("(absent)")));
        Told {
            status: answer.status,
            declared: declared.concat().into(),
            body: answer.body.as_slice().into(),
        }
    }

    /// What it speaks of: `id` of a charge or transfer, `charge` of a refused charge.
    pub(super) fn names(&self) -> Option<String> {
        let body: Value = serde_json::from_slice(&self.body).ok()?;
        let field = if self.status == 201 { "id" } else { "charge" };
        body[field].as_str().map(str::to_owned)
    }

    /// The error it tells of.
    pub(super) fn error(&self) -> Option<String> {
        let body: Value = serde_json::from_slice(&self.body).ok()?;
        body["error"].as_str().map(str::to_owned)
    }

    /// The amount it names.
    pub(super) fn amount(&self) -> Option<u64> {
        let body: Value = serde_json::from_slice(&self.body).ok()?;
        body["amount"].as_u64()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::crash) fn answer(status: u16, body: &str) -> Answer {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Answer { status, headers, body: body.as_bytes().to_vec() }
    }

    pub(in crate::crash) fn told(status: u16, body: &str) -> Told {
        Told::of(&answer(status, body))
    }

    #[test]
    fn only_declared_parts_count() {
        let first = told(201, r#"{"id":"ch_1","amount":7}"#);
        assert_eq!((first.names().as_deref(), first.amount()), (Some("ch_1"), Some(7)));
        let mut replay = answer(201, r#"{"id":"ch_1","amount":7}"#);
        replay.headers.push(("idempotent-replayed".into(), "true".into()));
        assert_eq!(Told::of(&replay), first);
        replay.headers.push(("location".into(), "/v1/charges/ch_1".into()));
        assert_ne!(Told::of(&replay), first);
        assert_ne!(told(201, r#"{"id":"ch_1", "amount":7}"#), first);
        assert_eq!(told(402, r#"{"charge":"ch_2"}"#).names().as_deref(), Some("ch_2"));
        assert_eq!(told(402, "{}").names(), None);
    }

    #[test]
    fn every_status_has_its_meaning() {
        let of = |status| Attempt::of(Ok(answer(status, "{}")));
        for status in [201, 400, 402] {
            assert!(matches!(of(status), Attempt::Final(_)), "{status}");
        }
        for status in [409, 429, 503] {
            assert_eq!(of(status), Attempt::Later);
        }
        for status in [200, 401, 404, 410, 422, 500] {
            assert_eq!(of(status), Attempt::Strange(status));
        }
        assert_eq!(Attempt::of(Err(std::io::ErrorKind::UnexpectedEof.into())), Attempt::Cut);
    }
}
