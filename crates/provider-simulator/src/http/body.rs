//! Response bodies: one piece of bytes, or the list of effects in pieces.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use crate::effects::List;

/// The part after the head.
pub(crate) enum Body {
    /// A complete body; `None` after sending.
    Whole(Option<Bytes>),
    /// Rendered while it is sent.
    Effects(Box<List>),
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = match &mut *self {
            Body::Whole(bytes) => bytes.take(),
            Body::Effects(list) => list.next_chunk(),
        };
        Poll::Ready(chunk.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Whole(bytes) => bytes.is_none(),
            Body::Effects(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => SizeHint::with_exact(
                bytes.as_ref().map_or(0, |bytes| u64::try_from(bytes.len()).unwrap_or(u64::MAX)),
            ),
            Body::Effects(_) => SizeHint::default(),
        }
    }
}
