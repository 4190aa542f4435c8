//! A request body that is sent at most once and never after its deadline, with a receipt that tells
//! whether it was sent.
//!
//! Asking "was it sent?" and then giving up would race with the sender. Here giving up is the
//! question: [`SendReceipt::withdraw`] and sending swap the same atomic flag, so exactly one of
//! them wins. A server cannot execute a request whose announced body never arrives. "Withdrawn"
//! therefore means that nothing was executed.
//!
//! A process can be stopped at any moment and continue minutes later, after another server has
//! proven the payment absent. Timers do not help: the connection's task may run before the timer
//! fires. So the letter checks the clock when the connection asks for its first bytes, and
//! withdraws itself after the deadline. hyper asks for these bytes in the step in which it takes
//! the request, before it writes anything. A late letter therefore leaves not even a head on the
//! wire. Requests without a body are not checked and may leave late; only searches are of this
//! kind, and they change nothing.
//!
//! Two gaps remain. A process stopped between the check and the write of the same step writes late.
//! Bytes held back by the kernel or the network arrive late.

use crate::deadline::Deadline;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

const WAITING: u8 = 0;
const HANDED_OVER: u8 = 1;
const WITHDRAWN: u8 = 2;

/// The body of one request.
pub struct Letter {
    content: Bytes,
    not_after: Deadline,
    flag: Arc<AtomicU8>,
}

/// The sender's half: withdraws the letter as long as the connection has not taken it.
pub struct SendReceipt(Arc<AtomicU8>);

/// The letter was withdrawn or sent before, or its deadline has passed.
#[derive(Debug, thiserror::Error)]
#[error("the request can no longer be sent: it was sent or withdrawn before, or its deadline has passed")]
pub struct LetterUnavailable;

impl Letter {
    /// A letter that may be sent until `not_after`, and its receipt.
    pub fn new(content: impl Into<Bytes>, not_after: Deadline) -> (Letter, SendReceipt) {
        let flag = Arc::new(AtomicU8::new(WAITING));
        let letter = Letter { content: content.into(), not_after, flag: Arc::clone(&flag) };
        (letter, SendReceipt(flag))
    }

    /// The deadline of the exchange.
    pub fn not_after(&self) -> Deadline {
        self.not_after
    }
}

impl SendReceipt {
    /// Withdraws the letter. Returns true if it was not sent; then it never will be.
    pub fn withdraw(&self) -> bool {
        withdraw(&self.0)
    }
}

impl Body for Letter {
    type Data = Bytes;
    type Error = LetterUnavailable;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, LetterUnavailable>>> {
        if self.content.is_empty() {
            return Poll::Ready(None);
        }
        if self.not_after.is_over() {
            withdraw(&self.flag);
            return Poll::Ready(Some(Err(LetterUnavailable)));
        }
        Poll::Ready(Some(match swap(&self.flag, HANDED_OVER) {
            Ok(_) => Ok(Frame::data(std::mem::take(&mut self.content))),
            Err(_) => Err(LetterUnavailable),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::try_from(self.content.len()).unwrap_or(u64::MAX))
    }
}

/// Returns true if the letter was not sent, also after an earlier withdrawal.
fn withdraw(flag: &AtomicU8) -> bool {
    swap(flag, WITHDRAWN) != Err(HANDED_OVER)
}

fn swap(flag: &AtomicU8, to: u8) -> Result<u8, u8> {
    flag.compare_exchange(WAITING, to, Ordering::AcqRel, Ordering::Acquire)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use std::time::Duration;

    fn in_time(content: &'static str) -> (Letter, SendReceipt) {
        Letter::new(content, Deadline::after(Duration::from_hours(1)))
    }

    #[tokio::test]
    async fn a_sent_letter_cannot_be_withdrawn() {
        let (letter, receipt) = in_time("amount=1");
        assert_eq!(letter.collect().await.unwrap().to_bytes(), "amount=1");
        assert!(!receipt.withdraw());
    }

    #[tokio::test]
    async fn a_withdrawn_letter_is_never_sent() {
        let (letter, receipt) = in_time("amount=1");
        assert!(receipt.withdraw());
        assert!(letter.collect().await.is_err());
    }

    #[tokio::test]
    async fn a_late_letter_withdraws_itself() {
        let (letter, receipt) = Letter::new("amount=1", Deadline::after(Duration::ZERO));
        assert!(letter.collect().await.is_err());
        assert!(receipt.withdraw(), "it never left");
    }

    #[test]
    fn the_announced_length_is_exact() {
        let (letter, _) = in_time("amount=1");
        assert_eq!(letter.size_hint().exact(), Some(8));
        assert!(!letter.is_end_stream());
    }
}
