//! A request body that is handed over at most once and never after its deadline, and a receipt that settles whether
//! it was.
//!
//! Asking "was it sent?" and then giving up would leave a moment in which it is sent after all. Here giving up is itself the
//! question: [`SendReceipt::withdraw`] and the hand-over exchange one flag, so exactly one of them happens, whoever moves the
//! connection. A request without the body its head announces is not a request, so "withdrawn" means that nothing was executed,
//! whatever the connection had done before.
//!
//! A process can be stopped at any moment and go on minutes later, when somebody else has proven the payment absent.
//! Timers do not help: who is woken for his connection may run before he is told the time. So the letter
//! looks at the clock itself when the connection asks for its first bytes, and withdraws itself if it is too late.
//! hyper asks in the same step in which it takes the request, before it has written any of it: a letter that refuses
//! leaves not even a head behind. A request without a body does not ask and may leave late; searches are such
//! requests, and they change nothing.
//!
//! What is left: a process stopped between that look and the write that follows it in the same step writes late, and
//! what the kernel or the network hold back once it is written arrives late.

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

/// The sender's half: can still withdraw the letter while nobody took it.
pub struct SendReceipt(Arc<AtomicU8>);

/// The letter was withdrawn, taken before, or is too late.
#[derive(Debug, thiserror::Error)]
#[error("the request is no longer there to be sent: it was sent or given up before, or its deadline is over")]
pub struct Gone;

impl Letter {
    /// A letter that may leave until `not_after`, and its receipt.
    pub fn new(content: impl Into<Bytes>, not_after: Deadline) -> (Letter, SendReceipt) {
        let flag = Arc::new(AtomicU8::new(WAITING));
        let letter = Letter { content: content.into(), not_after, flag: Arc::clone(&flag) };
        (letter, SendReceipt(flag))
    }

    /// The end of the exchange it is sent in.
    pub fn not_after(&self) -> Deadline {
        self.not_after
    }
}

impl SendReceipt {
    /// Takes the letter back. True if it had not left, and then it never will.
    pub fn withdraw(&self) -> bool {
        withdraw(&self.0)
    }
}

impl Body for Letter {
    type Data = Bytes;
    type Error = Gone;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Gone>>> {
        if self.content.is_empty() {
            return Poll::Ready(None);
        }
        if self.not_after.is_over() {
            withdraw(&self.flag);
            return Poll::Ready(Some(Err(Gone)));
        }
        Poll::Ready(Some(match swap(&self.flag, HANDED_OVER) {
            Ok(_) => Ok(Frame::data(std::mem::take(&mut self.content))),
            Err(_) => Err(Gone),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::try_from(self.content.len()).unwrap_or(u64::MAX))
    }
}

/// True if the letter has not left; whoever withdrew it first.
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
    async fn a_letter_that_left_cannot_be_withdrawn() {
        let (letter, receipt) = in_time("amount=1");
        assert_eq!(letter.collect().await.unwrap().to_bytes(), "amount=1");
        assert!(!receipt.withdraw());
    }

    #[tokio::test]
    async fn a_withdrawn_letter_never_leaves() {
        let (letter, receipt) = in_time("amount=1");
        assert!(receipt.withdraw());
        assert!(letter.collect().await.is_err());
    }

    #[tokio::test]
    async fn a_letter_that_is_too_late_withdraws_itself() {
        let (letter, receipt) = Letter::new("amount=1", Deadline::after(Duration::ZERO));
        assert!(letter.collect().await.is_err());
        assert!(receipt.withdraw(), "it never left");
    }

    #[test]
    fn the_announced_length_is_the_length() {
        let (letter, _) = in_time("amount=1");
        assert_eq!(letter.size_hint().exact(), Some(8));
        assert!(!letter.is_end_stream());
    }
}
