//! The closed list of errors: code, status, title, and a sentence that says what to do next. Each
//! error has a page in `docs/errors/`, served at `/errors/CODE`.

macro_rules! codes {
    ($($name:ident = $code:literal, $status:literal, $title:literal, $detail:literal;)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $(
                #[doc = $title]
                $name,
            )+
        }

        impl Code {
            /// All codes, in the order of the documentation.
            pub const ALL: &'static [Code] = &[$(Code::$name,)+];

            /// The stable word for clients to branch on.
            pub const fn name(self) -> &'static str {
                match self { $(Code::$name => $code,)+ }
            }

            pub const fn status(self) -> u16 {
                match self { $(Code::$name => $status,)+ }
            }

            /// A short description.
            pub const fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)+ }
            }

            /// A sentence with the cause and the remedy.
            pub const fn detail(self) -> &'static str {
                match self { $(Code::$name => $detail,)+ }
            }

            /// The page that explains the error, as Markdown.
            pub const fn page(self) -> &'static str {
                match self {
                    $(Code::$name => include_str!(concat!("../../../../docs/errors/", $code, ".md")),)+
                }
            }
        }
    };
}

codes! {
    IdempotencyKeyRequired = "idempotency_key_required", 400, "Idempotency key required",
        "Send an Idempotency-Key header with a value that is unique to this payment, and the same value on every retry of it.";
    IdempotencyKeyInvalid = "idempotency_key_invalid", 400, "Idempotency key invalid",
        "Send one Idempotency-Key header of 1 to 255 visible ASCII characters.";
    InvalidRequest = "invalid_request", 400, "Invalid request",
        "Correct what `errors` names and send the request again; nothing was stored, so the key is still free.";
    IdempotencyKeyFingerprintMismatch = "idempotency_key_fingerprint_mismatch", 422, "Idempotency key used for another request",
        "This key belongs to a different request. Send the first request unchanged to get its answer, or use a new key for a new payment.";
    IdempotencyKeyInUse = "idempotency_key_in_use", 409, "Idempotency key in use",
        "The first request with this key is still running. Send the same request with the same key again after the pause named in Retry-After; do not use a new key.";
    IdempotencyKeyExpired = "idempotency_key_expired", 410, "Idempotency key expired",
        "The answer to this key is no longer kept. Look the payment up before you decide to make another one under a new key.";
    CardDeclined = "card_declined", 402, "Card declined",
        "The card's issuer declined the payment and nothing was charged. Ask for another means of payment and send a new request with a new key.";
    InsufficientFunds = "insufficient_funds", 400, "Insufficient funds",
        "The account's balance is too low for this request. Add funds or lower the amount, and use a new key.";
    CapExceeded = "cap_exceeded", 400, "Account cap exceeded",
        "The request would lift the account above its cap. Lower the amount or use another account, and use a new key.";
    AccountExists = "account_exists", 409, "Account code taken",
        "Another account of your tenant has this code. Look it up with GET /v1/accounts/{code}, or choose another code and use a new key.";
    AssetExists = "asset_exists", 409, "Asset code taken",
        "The code belongs to a currency or to an asset your tenant has defined already. Use that one, or choose another code and use a new key.";
    AlreadyReversed = "already_reversed", 409, "Transaction already reversed",
        "The transaction was undone before, and nothing was moved now. Read GET /v1/transactions/{id}: `reversed_by` names what undid it.";
    NotReversible = "not_reversible", 409, "Transaction not reversible",
        "A transaction of this kind is not undone. Post or void a hold, refund a charge, and post a new transaction to correct a reversal.";
    HoldEnded = "hold_ended", 409, "Hold has ended",
        "The transfer is not held any more: it was posted or voided before, or its deadline has passed. Read GET /v1/transfers/{id} to see what became of it.";
    ChargeStateConflict = "charge_state_conflict", 409, "Charge does not allow it",
        "The charge's state does not allow this, and nothing was done. Read GET /v1/charges/{id} to see where it stands.";
    DeadLetterUnresolved = "dead_letter_unresolved", 409, "Dead letter not resolved",
        "The dead letter could not be resolved so and stays as it was. Read GET /v1/dead-letters/{id} and choose another resolution, with a new key.";
    OutcomePending = "outcome_pending", 503, "Outcome not known yet",
        "The payment provider has not confirmed what happened. Send the same request with the same key again after the pause named in Retry-After; do not use a new key, the payment may have been made.";
    StoreUnavailable = "store_unavailable", 503, "Store unavailable",
        "The server could not reach its store, so nothing was done and the provider was not called. Send the same request with the same key again after the pause named in Retry-After.";
    PaymentInProgress = "payment_in_progress", 409, "Payment in progress",
        "Another operation on this payment is under way. Nothing was stored: send the same request with the same key again after the pause named in Retry-After.";
    RateLimited = "rate_limited", 429, "Too many requests",
        "Your tenant sends more requests than its limit allows. Wait as long as Retry-After says, then send the same request with the same key.";
    BodyTooLarge = "body_too_large", 413, "Body too large",
        "The body is larger than the server accepts. Send a smaller one, or several: a charge needs less than a kilobyte.";
    UnsupportedMediaType = "unsupported_media_type", 415, "Unsupported media type",
        "Send the body as application/json in UTF-8, or as application/x-www-form-urlencoded, and say so in Content-Type.";
    Unauthorized = "unauthorized", 401, "No valid API key",
        "Send one Authorization header with the value `Bearer sk_…` and a key that is not revoked.";
    InvalidSignature = "invalid_signature", 400, "Signature not valid",
        "The delivery is not signed by the provider with a secret that is set here, or not lately; nothing was done. Compare the endpoint's signing secret at the provider with `gateway.webhook_secrets`, and the clocks.";
    Forbidden = "forbidden", 403, "API key lacks the scope",
        "This API key may not do that. Use a key with the scope the route needs: read to look, write to move money, admin for operators.";
    NotFound = "not_found", 404, "Not found",
        "There is no such thing here for your tenant. Check the path and the id.";
    MethodNotAllowed = "method_not_allowed", 405, "Method not allowed",
        "This path does not take that method. Use one of those named in the Allow header.";
    GatewayRejected = "gateway_rejected", 400, "Provider rejected the request",
        "The payment provider does not accept this request and nothing was charged. Check payment_method and currency, and send a new request with a new key.";
    GatewayUnauthorized = "gateway_unauthorized", 502, "Provider refused the server's credentials",
        "The payment provider does not accept this server's credentials and nothing was charged. Tell the operator; once it is repaired, use a new key.";
    GatewayUnavailable = "gateway_unavailable", 503, "Provider unavailable",
        "The payment provider could not be reached and certainly nothing was charged. Try again later with a new key.";
    MarkedFailed = "marked_failed", 502, "Marked as failed",
        "The outcome was not known; an operator has found that it did not happen. If it is still wanted, ask again with a new key.";
    PayoutFailed = "payout_failed", 402, "Payout failed",
        "The payment provider could not pay to the bank account and nothing was paid out; the money is available again. Look at `decline_code`, correct the bank account at the provider, and use a new key.";
    MalformedRequest = "malformed_request", 400, "Malformed HTTP request",
        "The bytes are not a request this server can read. Send HTTP/1.1 with well-formed headers.";
    HeadersTooLarge = "headers_too_large", 431, "Headers too large",
        "Send at most 64 headers and 16 KiB of them.";
    UriTooLong = "uri_too_long", 414, "URI too long",
        "Shorten the path and query; no route needs more than a few hundred bytes.";
    RequestTimeout = "request_timeout", 408, "Request took too long to arrive",
        "The body did not arrive in time, so nothing was done. Send the same request with the same key again.";
    ShuttingDown = "shutting_down", 503, "Server shutting down",
        "This server is stopping and takes no new work; nothing was done. Send the same request with the same key again, to another server or after the pause named in Retry-After.";
    InternalError = "internal_error", 500, "Internal error",
        "The server made a mistake. Send the same request with the same key again; if it stays, tell the operator the request id.";
}
