//! HTTP: routing of requests, and sending of outcomes.

mod body;
mod control;
mod dispatch;
mod read;
mod respond;

pub(crate) use dispatch::dispatch;

/// The connection must be closed without an answer.
#[derive(Debug)]
pub(crate) struct Cut;

impl std::fmt::Display for Cut {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("the simulator cut the connection on purpose")
    }
}

impl std::error::Error for Cut {}
