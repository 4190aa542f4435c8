//! The provider's answers: small enough to keep one for every key, and rendered to JSON on demand.
//!
//! An answer refers to objects by number and carries the state they had at its time. Everything
//! else it shows never changes, so rendering it again gives the same bytes.

mod distort;
mod json;
mod object;

use bytes::Bytes;
use hyper::StatusCode;

pub(crate) use json::Json;
pub(crate) use object::search_result;

use crate::intents::Status;
use crate::refunds::Refund;
use crate::refusal::Refusal;
use crate::state::State;

/// The outcome of an executed request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// 200 with the intent in its state at that time.
    Intent { number: u32, status: Status },
    /// 402; the intent exists and no money moved.
    Declined { number: u32 },
    /// 200 with the refund.
    Refund(Box<Refund>),
    /// 200 with the payout.
    Payout { number: u32 },
    /// The object's state did not allow the request.
    Refused(Box<Refusal>),
    /// 500 without any information.
    Failed,
}

/// An answer ready to be sent.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
    pub(crate) replayed: bool,
}

impl Answer {
    /// Renders the answer as status and bytes.
    pub(crate) fn render(&self, state: &State) -> Reply {
        let mut json = Json::with_capacity(512);
        let status = match self {
            Answer::Intent { number, status } => {
                object::intent(&mut json, state, *number, *status);
                StatusCode::OK
            }
            Answer::Declined { number } => {
                object::declined(&mut json, state, *number);
                StatusCode::PAYMENT_REQUIRED
            }
            Answer::Refund(refund) => {
                object::refund(&mut json, state, refund);
                StatusCode::OK
            }
            Answer::Payout { number } => {
                object::payout(&mut json, state, *number);
                StatusCode::OK
            }
            Answer::Refused(refusal) => return Reply::refused(refusal),
            Answer::Failed => return Reply::failed(),
        };
        Reply::new(status, json.into_bytes())
    }
}

impl Reply {
    pub(crate) fn new(status: StatusCode, body: Bytes) -> Self {
        Reply { status, body, replayed: false }
    }

    /// A refusal in Stripe's format.
    pub(crate) fn refused(refusal: &Refusal) -> Self {
        let mut json = Json::with_capacity(256);
        object::refusal(&mut json, refusal);
        Reply::new(refusal.status, json.into_bytes())
    }

    /// The same text whether or not the request was executed, so that the client cannot tell.
    pub(crate) fn failed() -> Self {
        const BODY: &[u8] =
            br#"{"error":{"type":"api_error","message":"An error occurred internally with the simulator."}}"#;
        Reply::new(StatusCode::INTERNAL_SERVER_ERROR, Bytes::from_static(BODY))
    }

    /// Marks the reply as a stored one.
    pub(crate) fn replayed(mut self) -> Self {
        self.replayed = true;
        self
    }
}
