//! The cost of a charge without a promise: one call to the provider for each request, nothing
//! stored.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;

use super::echo::charge_answer;
use super::serve::serve;
use crate::plan::is_key_byte;

/// The simulator takes any key; nobody should put load on a real provider.
const PROVIDER_KEY: &str = "Bearer sk_test_bench";
const KEY_BYTES_MAX: usize = 255;

/// A client of the provider that sends the same requests as the product.
pub struct Provider {
    client: Client<HttpConnector, Full<Bytes>>,
    uri: Uri,
}

/// Serves until the listener fails; the provider speaks plain HTTP at `provider`.
pub async fn serve_proxy(listener: TcpListener, provider: SocketAddr) -> io::Result<()> {
    let provider = Arc::new(Provider::new(provider)?);
    serve(listener, move |request| forward(Arc::clone(&provider), request)).await
}

async fn forward(provider: Arc<Provider>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let Some(key) = request.headers().get("idempotency-key").and_then(form_safe).cloned() else {
        return text_answer(
            StatusCode::BAD_REQUEST,
            "send an Idempotency-Key of letters, digits, '-' and '_'",
        );
    };
    if request.into_body().collect().await.is_err() {
        return text_answer(StatusCode::BAD_REQUEST, "the request body was cut");
    }
    match provider.pay(key).await {
        Ok((status, body)) if status.is_success() => charge_answer(StatusCode::CREATED, body),
        Ok((status, _)) => text_answer(StatusCode::BAD_GATEWAY, &format!("the provider answered {status}")),
        Err(error) => text_answer(StatusCode::BAD_GATEWAY, &format!("the provider did not answer: {error}")),
    }
}

impl Provider {
    /// Creates a client of the provider at `address`, over plain HTTP.
    pub fn new(address: SocketAddr) -> io::Result<Provider> {
        let uri = format!("http://{address}/v1/payment_intents").parse().map_err(io::Error::other)?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Ok(Provider { client: Client::builder(TokioExecutor::new()).build(connector), uri })
    }

    /// Pays under a key, which must need no escaping in a form. Returns status and body of the
    /// answer.
    pub async fn pay(
        &self,
        key: HeaderValue,
    ) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error + Send + Sync>> {
        let form = format!(
            "amount=1250&currency=usd&payment_method=pm_card_visa&confirm=true&capture_method=automatic\
             &metadata%5Bcounterfoil_payment%5D={}&metadata%5Bcounterfoil_step%5D=charge",
            key.to_str()?
        );
        let mut call = Request::new(Full::new(Bytes::from(form)));
        *call.method_mut() = http::Method::POST;
        *call.uri_mut() = self.uri.clone();
        let headers = call.headers_mut();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static(PROVIDER_KEY));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        headers.insert("idempotency-key", key);
        let answer = self.client.request(call).await?;
        let status = answer.status();
        Ok((status, answer.into_body().collect().await?.to_bytes()))
    }
}

/// The key, if it can be copied into a form without escaping.
fn form_safe(key: &HeaderValue) -> Option<&HeaderValue> {
    let bytes = key.as_bytes();
    let safe = (1..=KEY_BYTES_MAX).contains(&bytes.len()) && bytes.iter().copied().all(is_key_byte);
    safe.then_some(key)
}

fn text_answer(status: StatusCode, sentence: &str) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(Bytes::copy_from_slice(sentence.as_bytes())));
    *answer.status_mut() = status;
    answer
}

#[cfg(test)]
mod tests;
