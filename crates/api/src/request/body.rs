//! The body of a request: media type, and bytes up to a limit.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use counterfoil_wire::problem::{Code, Problem};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout_at};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Media {
    Json,
    Form,
}

/// The media type of the body. A request without a body needs no type.
pub(crate) fn media(headers: &HeaderMap, is_empty: bool) -> Result<Media, Problem> {
    let refused = || Problem::new(Code::UnsupportedMediaType);
    if headers.get_all(CONTENT_ENCODING).iter().any(|coding| coding != "identity") {
        return Err(refused().detail("Send the body without a Content-Encoding."));
    }
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let value = match (values.next(), values.next()) {
        (None, _) if is_empty => return Ok(Media::Json),
        (Some(value), None) => value.to_str().map_err(|_| refused())?,
        (Some(_) | None, _) => return Err(refused()),
    };
    // The common spelling needs no parsing.
    if value == "application/json" {
        return Ok(Media::Json);
    }
    let mut parts = value.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    let utf8 = parts.filter(|part| !part.is_empty()).all(is_utf8);
    if utf8 && essence.eq_ignore_ascii_case("application/json") {
        Ok(Media::Json)
    } else if utf8 && essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        Ok(Media::Form)
    } else {
        Err(refused())
    }
}

fn is_utf8(parameter: &str) -> bool {
    parameter.split_once('=').is_some_and(|(name, value)| {
        let value = value.trim();
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
        name.trim().eq_ignore_ascii_case("charset") && value.eq_ignore_ascii_case("utf-8")
    })
}

/// Reads the whole body, at most `limit` bytes, before `deadline`.
pub(crate) async fn read(body: Body, limit: usize, deadline: Instant) -> Result<Bytes, Problem> {
    // An announced length is checked before a byte is read.
    if body.size_hint().lower() > u64::try_from(limit).unwrap_or(u64::MAX) {
        return Err(too_large(limit));
    }
    match timeout_at(deadline, collect(body, limit)).await {
        Ok(read) => read,
        Err(_) => Err(Problem::new(Code::RequestTimeout)),
    }
}

/// Collects the frames. Most bodies are a single frame, which is not copied.
async fn collect(mut body: Body, limit: usize) -> Result<Bytes, Problem> {
    let mut whole = Bytes::new();
    let mut joined = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return Err(Problem::new(Code::MalformedRequest)
                .detail("The body ended early or its chunks are malformed. Send it whole."));
        };
        // Trailers are ignored.
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + joined.len() + data.len() > limit {
            return Err(too_large(limit));
        }
        if whole.is_empty() && joined.is_empty() {
            whole = data;
        } else {
            joined.extend_from_slice(&std::mem::take(&mut whole));
            joined.extend_from_slice(&data);
        }
    }
    Ok(if joined.is_empty() { whole } else { joined.freeze() })
}

fn too_large(limit: usize) -> Problem {
    Problem::new(Code::BodyTooLarge).detail(format!(
        "The body is larger than {limit} bytes. Send a smaller one, or several: a charge needs less than a kilobyte."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn of(value: &str) -> Option<Media> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_str(value).unwrap());
        media(&headers, false).ok()
    }

    #[test]
    fn json_and_forms_are_accepted() {
        for json in
            ["application/json", "Application/JSON; Charset=UTF-8", "application/json;charset=\"utf-8\";"]
        {
            assert_eq!(of(json), Some(Media::Json), "{json}");
        }
        for form in ["application/x-www-form-urlencoded", "application/x-www-form-urlencoded; charset=utf-8"]
        {
            assert_eq!(of(form), Some(Media::Form), "{form}");
        }
        for other in [
            "",
            "text/plain",
            "application/json; charset=latin1",
            "application/json; q",
            "application/json; charset=\"\"utf-8\"\"",
            "application/jsonp",
            "json",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn a_body_needs_exactly_one_media_type() {
        let mut headers = HeaderMap::new();
        assert!(media(&headers, true).is_ok() && media(&headers, false).is_err());
        headers.append(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.append(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        assert!(media(&headers, false).is_err());
        let mut zipped = HeaderMap::new();
        zipped.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        zipped.insert(CONTENT_ENCODING, HeaderValue::from_static("identity"));
        assert!(media(&zipped, false).is_ok());
        zipped.append(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        assert!(media(&zipped, false).is_err());
    }
}
