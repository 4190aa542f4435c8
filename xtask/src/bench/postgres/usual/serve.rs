//! An HTTP server of the usual kind. It looks up the API key, writes the claim and the pending work
//! in a transaction, calls the provider, and writes the result with its ledger entries in
//! another.

use super::{OPENING, Order, Pool, SETTLING, Work};
use crate::bench::child::serving;
use crate::failure::{Failure, Result};
use bytes::Bytes;
use clap::Args;
use counterfoil_load::limits::{Provider, charge_answer, serve};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use serde_json::Value;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;

/// A server of the usual kind; `bench --store postgres` starts it.
#[derive(Args)]
pub(crate) struct Usual {
    #[arg(long)]
    listen: SocketAddr,
    #[arg(long)]
    provider: SocketAddr,
    /// A database with the usual tables.
    #[arg(long)]
    database: String,
}

struct Shop {
    pool: Pool,
    provider: Provider,
    last: AtomicI64,
}

impl Usual {
    pub(crate) fn run(self) -> Result<ExitCode> {
        serving(async move {
            let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let shop = Arc::new(Shop {
                pool: Pool::open(&self.database, usize::MAX).await.map_err(|failure| failed(&failure))?,
                provider: Provider::new(self.provider)?,
                last: AtomicI64::new(i64::try_from(since_epoch.as_micros()).unwrap_or(0)),
            });
            serve(TcpListener::bind(self.listen).await?, move |request| answer(Arc::clone(&shop), request))
                .await
        })
    }
}

fn failed(failure: &Failure) -> std::io::Error {
    std::io::Error::other(failure.to_string())
}

async fn answer(shop: Arc<Shop>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let Some(key) = request.headers().get("idempotency-key").cloned() else {
        return text_answer(StatusCode::BAD_REQUEST, "send an Idempotency-Key".to_owned());
    };
    let Some(bearer) = request.headers().get("authorization").cloned() else {
        return text_answer(StatusCode::UNAUTHORIZED, "send an API key".to_owned());
    };
    let Ok(body) = request.into_body().collect().await else {
        return text_answer(StatusCode::BAD_REQUEST, "the request body was cut".to_owned());
    };
    // A client that hangs up must not leave a transaction open in the pool.
    let charged = tokio::spawn(async move { shop.charge(&bearer, key, &body.to_bytes()).await });
    match charged.await {
        Ok(Ok(answer)) => answer,
        Ok(Err(failure)) => text_answer(StatusCode::INTERNAL_SERVER_ERROR, failure.to_string()),
        Err(error) => text_answer(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

fn text_answer(status: StatusCode, sentence: String) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(Bytes::from(sentence)));
    *answer.status_mut() = status;
    answer
}

impl Shop {
    async fn charge(
        &self,
        bearer: &HeaderValue,
        key: HeaderValue,
        request: &[u8],
    ) -> Result<Response<Full<Bytes>>> {
        let api_key = bearer.as_bytes().strip_prefix(b"Bearer ").unwrap_or_default();
        let Some(tenant) = self.pool.tenant(api_key).await? else {
            return Ok(text_answer(StatusCode::UNAUTHORIZED, "this is no API key".to_owned()));
        };
        let Ok(body) = serde_json::from_slice::<Value>(request) else {
            return Ok(text_answer(StatusCode::BAD_REQUEST, "the body is not JSON".to_owned()));
        };
        let metadata = body["metadata"].to_string();
        let Some(order) = order(&body, &metadata) else {
            return Ok(text_answer(StatusCode::BAD_REQUEST, "the order is not whole".to_owned()));
        };
        let text = key.to_str().map_err(Failure::while_("reading the key"))?.to_owned();
        let number = self.last.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let mut work = Work { number, tenant, key: &text, request, order, reference: "", answer: &[] };
        if !self.pool.commit(OPENING, &work).await? {
            return Ok(match self.pool.stored(&work).await? {
                Some(Some(body)) => charge_answer(StatusCode::CREATED, body.into()),
                Some(None) => {
                    text_answer(StatusCode::CONFLICT, "a request with this key is under way".to_owned())
                }
                None => {
                    text_answer(StatusCode::UNPROCESSABLE_ENTITY, "the key is of another request".to_owned())
                }
            });
        }
        let paid = self.provider.pay(key).await;
        let (status, reply) = paid.map_err(Failure::while_("calling the provider"))?;
        if !status.is_success() {
            return Ok(text_answer(StatusCode::BAD_GATEWAY, format!("the provider answered {status}")));
        }
        let reply: Value =
            serde_json::from_slice(&reply).map_err(Failure::while_("reading the provider's answer"))?;
        let answer = Bytes::from(rendered(number, &body, &reply));
        work.answer = &answer;
        work.reference = reply["id"].as_str().unwrap_or_default();
        if !self.pool.commit(SETTLING, &work).await? {
            return Ok(text_answer(
                StatusCode::CONFLICT,
                "another request has settled this charge".to_owned(),
            ));
        }
        Ok(charge_answer(StatusCode::CREATED, answer))
    }
}

/// Reads an order, if the body is a valid one.
fn order<'a>(body: &'a Value, metadata: &'a str) -> Option<Order<'a>> {
    Some(Order {
        amount: body["amount"].as_i64().filter(|amount| *amount > 0)?,
        currency: body["currency"].as_str()?,
        payment_method: body["payment_method"].as_str()?,
        description: body["description"].as_str(),
        metadata,
    })
}

/// As long as the product's answer.
fn rendered(number: i64, order: &Value, reply: &Value) -> String {
    format!(
        r#"{{"id":"ch_{number:026}","object":"charge","amount":{},"currency":{},"status":"succeeded","captured":true,"amount_refunded":0,"payment_method":{},"destination":"ac_01JCQ2W8Z5T7K3M9N4P6R8S0VX","gateway":{{"name":"stripe","reference":{}}},"failure":null,"description":{},"metadata":{},"created_at":"2026-01-01T00:00:00.000Z"}}"#,
        order["amount"],
        order["currency"],
        order["payment_method"],
        reply["id"],
        order["description"],
        order["metadata"]
    )
}
