//! `POST /v1/webhooks/{provider}`: events from a provider. An event is a hint, never a fact: it
//! makes the engine ask the provider.

use crate::answer::{self, Answered, store_unavailable};
use crate::openapi::shared::WebhookProblems;
use crate::request::{Call, body as request_body, query};
use axum::body::Body;
use counterfoil_core::outbox::Payment;
use counterfoil_core::types::flaw::Flaw;
use counterfoil_gateway::inbox::Unopened;
use counterfoil_wire::problem::{Code, Problem};
use http::HeaderMap;

/// Accepts a signed event from a payment provider.
///
/// The event's content is not trusted. If the event names a payment whose outcome is unknown, the
/// server asks the provider about that payment now. Repeated and reordered events do no harm.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{provider}",
    tag = "Webhooks",
    params(
        ("provider" = String, Path, description = "The provider's name, as in `gateway.name` of a charge"),
        ("Stripe-Signature" = String, Header, description = "The signature of the provider `stripe`: `t=SECONDS,v1=HEX`, the HMAC-SHA-256 of `SECONDS.BODY`. Other providers sign in a header of their own."),
    ),
    request_body(content = String, content_type = "application/json", description = "The event, byte for byte as it was signed"),
    responses(
        (status = 200, description = "The event was accepted, whether or not it concerns a payment of this server."),
        WebhookProblems,
    )
)]
pub(crate) async fn receive(call: Call, body: Body) -> Answered {
    let app = &call.app;
    let inbox = app.inboxes.iter().find(|inbox| inbox.provider() == call.parameter());
    let inbox = inbox.ok_or(Problem::new(Code::NotFound))?;
    query::must_be_empty(&call.uri)?;
    let signature = single_value(&call.headers, inbox.header()).map_err(refuse)?;
    let bytes = request_body::read(body, app.settings.body_limit_bytes, call.deadline()).await?;
    let event = inbox.open(signature, &bytes, app.service.now()).map_err(refuse)?;
    let named = event.payment.and_then(|text| Payment::open(app.service.references(), &text));
    if let Some(payment) = named {
        app.service.hint(payment).await.map_err(|_| store_unavailable())?;
    }
    // The same answer for every event: a sender must not learn which payments exist here.
    Ok(answer::json(&br#"{"received":true}"#[..]))
}

/// The single value of a header. Two values are refused, because either could be the forged one.
fn single_value<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a [u8]>, Unopened> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value.map(http::HeaderValue::as_bytes)),
        (_, Some(_)) => Err(Unopened::Malformed),
    }
}

fn refuse(why: Unopened) -> Problem {
    match why {
        Unopened::Unreadable => {
            query::invalid(vec![Flaw::new("", format!("{why}; send the event as it is"))])
        }
        Unopened::Missing
        | Unopened::Malformed
        | Unopened::NoMatch
        | Unopened::TooOld
        | Unopened::FromTheFuture => Problem::new(Code::InvalidSignature).detail(format!(
            "The delivery was not taken: {why}. Compare the endpoint's signing secret at the provider with \
             `gateway.webhook_secrets`, and the clocks."
        )),
    }
}
