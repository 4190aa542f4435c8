//! Reading requests: the API key, the idempotency key and a bounded body.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::HeaderMap;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName};

use super::Cut;
use crate::refusal::Refusal;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Stripe's bound.
const KEY_CHARS_MAX: usize = 255;
/// Far above the largest form the connector sends.
const BODY_BYTES_MAX: usize = 65_536;

/// Accepts any API key, but not none.
pub(crate) fn check_api_key(headers: &HeaderMap) -> Result<(), Refusal> {
    headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, key)| scheme.eq_ignore_ascii_case("bearer") && !key.trim().is_empty())
        .map(|_| ())
        .ok_or_else(Refusal::no_api_key)
}

/// The request's idempotency key, if present.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<Arc<str>>, Refusal> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(key) if (1..=KEY_CHARS_MAX).contains(&key.len()) && values.next().is_none() => {
            Ok(Some(Arc::from(key)))
        }
        Ok(_) | Err(_) => Err(Refusal::request(format!(
            "Idempotency-Key must be sent once, with 1 to {KEY_CHARS_MAX} visible ASCII characters."
        ))),
    }
}

/// Refuses a body with another content type than a form.
pub(crate) fn check_form_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let is_form = headers.get(CONTENT_TYPE).is_none_or(|value| {
        const FORM: &[u8] = b"application/x-www-form-urlencoded";
        value.as_bytes().get(..FORM.len()).is_some_and(|start| start.eq_ignore_ascii_case(FORM))
    });
    if is_form {
        Ok(())
    } else {
        Err(Refusal::request("Send the body as application/x-www-form-urlencoded."))
    }
}

/// Reads the whole body. A client that disconnects in the middle has sent no request.
pub(crate) async fn body(body: Incoming) -> Result<Result<Bytes, Refusal>, Cut> {
    match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(collected) => Ok(Ok(collected.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => Ok(Err(Refusal::body_too_large(BODY_BYTES_MAX))),
        Err(_) => Err(Cut),
    }
}
