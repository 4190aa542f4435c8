//! The body of an answer: whole bytes on the straight way, whatever the router made on the other.

use axum::body::Body as Routed;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use std::pin::Pin;
use std::task::{Context, Poll};

pub(super) enum Content {
    Whole(Full<Bytes>),
    Routed(Routed),
}

impl Body for Content {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match self.get_mut() {
            Content::Whole(bytes) => Pin::new(bytes).poll_frame(cx).map_err(|never| match never {}),
            Content::Routed(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Content::Whole(bytes) => bytes.is_end_stream(),
            Content::Routed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Content::Whole(bytes) => bytes.size_hint(),
            Content::Routed(body) => body.size_hint(),
        }
    }
}
