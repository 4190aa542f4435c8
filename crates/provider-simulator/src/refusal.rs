//! Error answers in Stripe's format: the problem, and the correct form of the request.

use hyper::StatusCode;

/// A refused request. Nothing was executed for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    pub(crate) code: Option<&'static str>,
    pub(crate) param: Option<Box<str>>,
    pub(crate) message: Box<str>,
}

impl Refusal {
    /// 400, about the request as a whole.
    pub(crate) fn request(message: impl Into<Box<str>>) -> Self {
        Refusal::new(StatusCode::BAD_REQUEST, "invalid_request_error", None, message)
    }

    /// 400, about one parameter.
    pub(crate) fn param(param: &str, code: &'static str, message: impl Into<Box<str>>) -> Self {
        Refusal::request(message).with_code(code).with_param(param)
    }

    /// 400, the object's state does not allow this.
    pub(crate) fn state(code: &'static str, message: impl Into<Box<str>>) -> Self {
        Refusal::request(message).with_code(code)
    }

    /// 400, no currency of this provider.
    pub(crate) fn bad_currency() -> Self {
        let message = "Invalid currency. Send three lower-case letters, as in usd.";
        Refusal::param("currency", "parameter_invalid", message)
    }

    /// 404, no such intent.
    pub(crate) fn no_intent(id: &str, param: &str) -> Self {
        Refusal::no_object("payment_intent", id, param)
    }

    /// 404, no such object.
    pub(crate) fn no_object(kind: &str, id: &str, param: &str) -> Self {
        let message = format!("No such {kind}: '{id}'");
        Refusal::new(StatusCode::NOT_FOUND, "invalid_request_error", Some("resource_missing"), message)
            .with_param(param)
    }

    /// 404, no such route.
    pub(crate) fn no_route(method: &hyper::Method, path: &str) -> Self {
        let message = format!("Unrecognized request URL ({method}: {path}).");
        Refusal::new(StatusCode::NOT_FOUND, "invalid_request_error", None, message)
    }

    /// 401, no API key.
    pub(crate) fn no_api_key() -> Self {
        let message = "You did not provide an API key. Send it as 'Authorization: Bearer YOUR_SECRET_KEY'.";
        Refusal::new(StatusCode::UNAUTHORIZED, "invalid_request_error", None, message)
    }

    /// 413, the body is above the bound.
    pub(crate) fn body_too_large(bytes_max: usize) -> Self {
        let message = format!("The request body is larger than {bytes_max} bytes.");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", None, message)
    }

    /// 400, the key belongs to another request.
    pub(crate) fn key_reused(key: &str) -> Self {
        let message = format!(
            "Keys for idempotent requests can only be used with the same endpoint and parameters they were first \
             used with. Try using a key other than '{key}' if you meant to execute a different request."
        );
        Refusal::new(StatusCode::BAD_REQUEST, "idempotency_error", None, message)
    }

    /// 409, the first request with this key is not done.
    pub(crate) fn key_in_use(key: &str) -> Self {
        let message = format!(
            "There is currently another in-progress request using the idempotency key '{key}'. Retry later with the \
             same key."
        );
        Refusal::new(StatusCode::CONFLICT, "idempotency_error", Some("idempotency_key_in_use"), message)
    }

    /// 429, the simulator's memory bound is reached.
    pub(crate) fn full(effects_max: u32) -> Self {
        let message = format!(
            "The simulator holds {effects_max} effects or intents, its bound, and executed nothing. \
             DELETE /_sim/effects starts afresh."
        );
        Refusal::new(StatusCode::TOO_MANY_REQUESTS, "api_error", Some("rate_limit"), message)
    }

    /// 500, the effect could not be logged and so was not executed.
    pub(crate) fn log_failed(error: &std::io::Error) -> Self {
        let message = format!("The effect log could not be written, so nothing was executed: {error}.");
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "api_error", None, message)
    }

    fn new(
        status: StatusCode,
        kind: &'static str,
        code: Option<&'static str>,
        message: impl Into<Box<str>>,
    ) -> Self {
        Refusal { status, kind, code, param: None, message: message.into() }
    }

    fn with_code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    fn with_param(mut self, param: &str) -> Self {
        self.param = Some(param.into());
        self
    }
}
