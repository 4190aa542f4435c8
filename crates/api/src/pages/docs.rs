//! `GET /docs`, a page that renders `/openapi.json`. A nonce allows the inline script and style.
//! The content security policy allows nothing else: the page loads from and sends to this server
//! only.

use crate::answer::{self, Answered};
use crate::request::Call;
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY};

const PAGE: &str = include_str!("docs.html");
const CONTENT_TYPE_OPTIONS: HeaderName = HeaderName::from_static("x-content-type-options");

/// The API's documentation, for people.
#[utoipa::path(get, path = "/docs", tag = "Operation", responses((status = 200, description = "A page.", content_type = "text/html")))]
pub(crate) async fn docs(call: Call) -> Answered {
    // 80 bits of the request's id are random, enough for a nonce.
    let nonce = call.exchange.id.to_string();
    let mut answer = answer::ok("text/html; charset=utf-8", PAGE.replace("{{nonce}}", &nonce));
    harden(
        answer.headers_mut(),
        &format!(
            "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
    );
    Ok(answer)
}

/// Adds the security headers of a page.
pub(super) fn harden(headers: &mut HeaderMap, policy: &str) {
    if let Ok(policy) = HeaderValue::from_str(policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}
