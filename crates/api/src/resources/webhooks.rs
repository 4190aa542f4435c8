//! `POST /v1/webhooks/{provider}`: events from a provider. An event is a hint, never a fact: it makes the engine ask the
//! provider.

use crate::answer::{self, Answered, store_unavailable};
use crate::openapi::shared::WebhookProblems;
use crate::request::{Call, body as request_body, query};
use axum::body::Body;
use counterfoil_core::outbox::Payment;
use counterfoil_core::types::flaw::Flaw;
use counterfoil_gateway::inbox::Unopened;
use counterfoil_wire::problem::{Code, Problem};
use http::HeaderMap;

/// Takes an event from the payment provider, signed by it.
///
/// What it says has happened is not believed: if it names a payment whose outcome is not known, the provider is asked
/// about it now instead of later. Sent twice or out of order it does no harm.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{provider}",
    tag = "Webhooks",
    params(
        ("provider" = String, Path, description = "The provider's name, as in `gateway.name` of a charge"),
        ("Stripe-Signature" = String, Header, description = "`t=SECONDS,v1=HEX`: the HMAC-SHA-256 of `SECONDS.BODY`"),
    ),
    request_body(content = String, content_type = "application/json", description = "The event, as it was signed"),
    responses(
        (status = 200, description = "It was taken, whether or not it was about anything here."),
        WebhookProblems,
    )
)]
pub(crate) async fn receive(call: Call, body: Body) -> Answered {
    let app = &call.app;
    let inbox = app.inboxes.iter().find(|inbox| inbox.provider() == call.parameter());
    let inbox = inbox.ok_or(Problem::new(Code::NotFound))?;
    query::must_be_empty(&call.uri)?;
    let signature = one(&call.headers, inbox.header()).map_err(refused)?;
    let bytes = request_body::read(body, app.settings.body_limit_bytes, call.deadline()).await?;
    let event = inbox.open(signature, &bytes, app.service.now()).map_err(refused)?;
    let named = event.payment.and_then(|text| Payment::open(app.service.references(), &text));
    if let Some(payment) = named {
        app.service.hint(payment).await.map_err(|_| store_unavailable())?;
    }
    // The same answer for every event: a sender must not learn which payments exist here.
    Ok(answer::json(&br#"{"received":true}"#[..]))
}

/// The one value of a header. Of two, nobody could say which was meant.
fn one<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a [u8]>, Unopened> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value.map(http::HeaderValue::as_bytes)),
        (_, Some(_)) => Err(Unopened::Malformed),
    }
}

fn refused(why: Unopened) -> Problem {
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
