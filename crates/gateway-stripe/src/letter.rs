//! A request body that is handed over at most once, and a receipt that settles whether it was.
//!
//! A deadline and a connection run on different threads: asking "was it sent?" and then giving up leaves a moment
//! in which it is sent after all. Here giving up is itself the question: [`Receipt::withdraw`] and the hand-over
//! exchange one flag, so exactly one of them happens. A request without the body its head announces is not a
//! request, so "withdrawn" means that nothing was executed, whatever the connection had done before.

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
pub(crate) struct Letter {
    content: Bytes,
    flag: Arc<AtomicU8>,
}

/// The sender's half: can still withdraw the letter while nobody took it.
pub(crate) struct Receipt(Arc<AtomicU8>);

/// The letter was withdrawn, or taken before.
#[derive(Debug, thiserror::Error)]
#[error("the request is no longer there to be sent")]
pub(crate) struct Gone;

impl Letter {
    /// A letter and its receipt.
    pub(crate) fn new(content: impl Into<Bytes>) -> (Letter, Receipt) {
        let flag = Arc::new(AtomicU8::new(WAITING));
        let letter = Letter { content: content.into(), flag: Arc::clone(&flag) };
        (letter, Receipt(flag))
    }
}

impl Receipt {
    /// Takes the letter back. True if it had not left, and then it never will.
    pub(crate) fn withdraw(&self) -> bool {
        swap(&self.0, WITHDRAWN)
    }
}

impl Body for Letter {
    type Data = Bytes;
    type Error = Gone;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Gone>>> {
        if self.content.is_empty() {
            return Poll::Ready(None);
        }
        Poll::Ready(Some(if swap(&self.flag, HANDED_OVER) {
            Ok(Frame::data(std::mem::take(&mut self.content)))
        } else {
            Err(Gone)
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::try_from(self.content.len()).unwrap_or(u64::MAX))
    }
}

fn swap(flag: &AtomicU8, to: u8) -> bool {
    flag.compare_exchange(WAITING, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn a_letter_that_left_cannot_be_withdrawn() {
        let (letter, receipt) = Letter::new("amount=1");
        assert_eq!(letter.collect().await.unwrap().to_bytes(), "amount=1");
        assert!(!receipt.withdraw());
    }

    #[tokio::test]
    async fn a_withdrawn_letter_never_leaves() {
        let (letter, receipt) = Letter::new("amount=1");
        assert!(receipt.withdraw());
        assert!(letter.collect().await.is_err());
    }

    #[test]
    fn the_announced_length_is_the_length() {
        let (letter, _) = Letter::new("amount=1");
        assert_eq!(letter.size_hint().exact(), Some(8));
        assert!(!letter.is_end_stream());
    }
}
