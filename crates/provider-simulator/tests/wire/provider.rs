//! A provider on a loopback port with a manual clock, and a client for it.

use std::sync::Arc;

use bytes::Bytes;
use counterfoil_provider_simulator::{Faults, ManualClock, Options, Running};
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

/// 2026-01-01T00:00:00Z.
pub(crate) const START_MS: u64 = 1_767_225_600_000;

pub(crate) struct Provider {
    pub(crate) running: Running,
    pub(crate) clock: Arc<ManualClock>,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) replayed: bool,
    pub(crate) request_id: String,
    pub(crate) text: String,
}

/// The connection ended without an answer.
#[derive(Debug)]
pub(crate) struct Lost;

impl Provider {
    pub(crate) fn start() -> Provider {
        Provider::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Options)) -> Provider {
        let clock = Arc::new(ManualClock::at(START_MS));
        let mut options = Options { clock: clock.clone(), ..Options::default() };
        change(&mut options);
        // A retry inside the client would hide the behaviour under test.
        let client = Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build_http();
        Provider { running: Running::start(options).unwrap(), clock, client }
    }

    pub(crate) fn faults(&self, faults: Faults) {
        self.running.set_faults(faults).unwrap();
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Got, Lost> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.running.url()));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let response = self.client.request(request).await.map_err(|_| Lost)?;
        let (head, body) = response.into_parts();
        let text = body.collect().await.map_err(|_| Lost)?.to_bytes();
        Ok(Got {
            status: head.status.as_u16(),
            replayed: head.headers.get("idempotent-replayed").is_some_and(|value| value == "true"),
            request_id: head.headers["request-id"].to_str().unwrap().to_owned(),
            text: String::from_utf8(text.to_vec()).unwrap(),
        })
    }

    pub(crate) async fn post(&self, path: &str, key: &str, form: &str) -> Result<Got, Lost> {
        let headers = [
            ("authorization", "Bearer sk_test"),
            ("content-type", "application/x-www-form-urlencoded"),
            ("idempotency-key", key),
        ];
        self.send(Method::POST, path, &headers, form.to_owned()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Got {
        self.send(Method::GET, path, &[("authorization", "Bearer sk_test")], "").await.unwrap()
    }

    /// Charges 1250 for the payment `pay_1`.
    pub(crate) async fn charge(&self, key: &str) -> Result<Got, Lost> {
        self.post("/v1/payment_intents", key, &form("pm_card_visa", "automatic")).await
    }

    /// Authorizes 1250 for the payment `pay_1`; returns the intent's id.
    pub(crate) async fn authorize(&self, key: &str) -> String {
        self.post("/v1/payment_intents", key, &form("pm_card_visa", "manual")).await.unwrap().id()
    }

    pub(crate) async fn search(&self, payment: &str) -> Value {
        let query: String = form_urlencoded::byte_serialize(
            format!("metadata['counterfoil_payment']:'{payment}'").as_bytes(),
        )
        .collect();
        self.get(&format!("/v1/payment_intents/search?query={query}")).await.json()
    }

    /// Kinds and amounts of the executed effects.
    pub(crate) fn truth(&self) -> Vec<(&'static str, u64)> {
        self.running.effects().iter().map(|effect| (effect.kind.as_str(), effect.amount)).collect()
    }

    /// Waits until no late delivery is pending, for a bounded number of round trips.
    pub(crate) async fn late_deliveries_done(&self) {
        for _ in 0..10_000 {
            if self.running.simulator().late_pending() == 0 {
                return;
            }
            self.get("/_sim/faults").await;
        }
        panic!("late deliveries are still pending");
    }
}

pub(crate) fn form(payment_method: &str, capture_method: &str) -> String {
    format!(
        "amount=1250&currency=usd&payment_method={payment_method}&confirm=true&capture_method={capture_method}\
         &metadata[counterfoil_payment]=pay_1&metadata[counterfoil_step]=charge"
    )
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(crate) fn id(&self) -> String {
        self.json()["id"].as_str().unwrap_or_else(|| panic!("no id: {}", self.text)).to_owned()
    }

    /// Status, error type, code and param.
    pub(crate) fn error(&self) -> (u16, String, String, String) {
        let error = &self.json()["error"];
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{}", self.text);
        let field = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
        (self.status, field("type"), field("code"), field("param"))
    }
}

pub(crate) fn error(status: u16, kind: &str, code: &str, param: &str) -> (u16, String, String, String) {
    (status, kind.to_owned(), code.to_owned(), param.to_owned())
}
