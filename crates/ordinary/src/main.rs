//! A client, a proxy and a provider as most teams write them, with axum and reqwest. The targets
//! about a proxy refer to this proxy.
//!
//! `cargo xtask bench` builds them with cargo's defaults (the profile `ordinary`, the system's
//! allocator) and puts the product between the same client and provider. A request costs all three
//! about 0.1 ms of CPU, more than twice as much as our leanest proxy (`counterfoil_load`).

#![expect(clippy::disallowed_methods, reason = "measurements need the real clock and real tasks")]

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::serve::ListenerExt;
use axum::{Form, Json, Router};
use clap::Parser;
use counterfoil_load::child::{Aim, Answers, Driven, WARMUP};
use counterfoil_load::cpu::cpu_of_self;
use reqwest::Client;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

const KEY: &str = "idempotency-key";
const CHARGES: &str = "/v1/charges";
const INTENTS: &str = "/v1/payment_intents";
/// Idle connections kept for reuse.
const IDLE_MAX: usize = 1_024;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// A client, a proxy or a provider of the ordinary kind; `cargo xtask bench` starts them.
#[derive(Parser)]
enum Role {
    /// Executes every payment at once and stores nothing.
    Provider {
        #[arg(long)]
        listen: SocketAddr,
    },
    /// Calls the provider for each request and stores nothing.
    Proxy {
        #[arg(long)]
        listen: SocketAddr,
        #[arg(long)]
        provider: SocketAddr,
    },
    /// Charges, one request at a time on each connection.
    Load(Aim),
}

#[tokio::main]
async fn main() -> Result<()> {
    match Role::parse() {
        Role::Provider { listen } => provide(listen).await?,
        Role::Proxy { listen, provider } => forward(listen, provider).await?,
        Role::Load(aim) => println!("{}", serde_json::to_string(&drive(aim).await?)?),
    }
    Ok(())
}

async fn provide(listen: SocketAddr) -> io::Result<()> {
    serve(listen, Router::new().route(INTENTS, post(executed)).with_state(Arc::default())).await
}

async fn executed(
    State(count): State<Arc<AtomicU64>>,
    Form(form): Form<HashMap<String, String>>,
) -> (StatusCode, Json<Value>) {
    let number = count.fetch_add(1, Ordering::Relaxed);
    let Some(amount) = form.get("amount").and_then(|amount| amount.parse::<i64>().ok()) else {
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": { "type": "invalid_request_error" } })));
    };
    let metadata: HashMap<&str, &String> = form
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix("metadata[")?.strip_suffix(']')?, value)))
        .collect();
    let intent = json!({
        "id": format!("pi_{number:024}"),
        "object": "payment_intent",
        "status": "succeeded",
        "amount": amount,
        "amount_received": amount,
        "currency": form.get("currency"),
        "latest_charge": format!("ch_{number:024}"),
        "livemode": false,
        "metadata": metadata,
    });
    (StatusCode::OK, Json(intent))
}

/// The provider's URL and the client that calls it.
struct ProviderCall {
    client: Client,
    url: String,
}

async fn forward(listen: SocketAddr, provider: SocketAddr) -> io::Result<()> {
    let way = ProviderCall {
        client: client().map_err(io::Error::other)?,
        url: format!("http://{provider}{INTENTS}"),
    };
    serve(listen, Router::new().route(CHARGES, post(charged)).with_state(Arc::new(way))).await
}

async fn charged(
    State(way): State<Arc<ProviderCall>>,
    headers: HeaderMap,
    Json(order): Json<Value>,
) -> (StatusCode, Json<Value>) {
    let key = headers.get(KEY).and_then(|key| key.to_str().ok()).unwrap_or_default();
    match way.pay(key, &order).await {
        Ok(intent) => (StatusCode::CREATED, Json(intent)),
        Err(error) => (StatusCode::BAD_GATEWAY, Json(json!({ "error": error.to_string() }))),
    }
}

impl ProviderCall {
    async fn pay(&self, key: &str, order: &Value) -> reqwest::Result<Value> {
        let text = |name: &str| order.get(name).and_then(Value::as_str).unwrap_or_default();
        let amount = order.get("amount").map(Value::to_string).unwrap_or_default();
        let form = [
            ("amount", amount.as_str()),
            ("currency", text("currency")),
            ("payment_method", text("payment_method")),
            ("confirm", "true"),
            ("capture_method", "automatic"),
            ("metadata[payment]", key),
        ];
        let call = self.client.post(&self.url).bearer_auth("sk_test_bench").header(KEY, key).form(&form);
        call.send().await?.error_for_status()?.json().await
    }
}

/// Charges with new keys.
async fn drive(aim: Aim) -> Result<Driven> {
    let client = client()?;
    let url = format!("http://{}{CHARGES}", aim.address);
    let cpu = cpu_of_self()?;
    let start = Instant::now() + WARMUP;
    let end = start + Duration::from_millis(aim.milliseconds);
    let mut running = JoinSet::new();
    for connection in 0..aim.connections {
        let prefix = format!("{}-{connection}", aim.prefix);
        let buyer = Buyer { client: client.clone(), url: url.clone(), api_key: aim.api_key.clone(), prefix };
        running.spawn(buyer.buy(start, end));
    }
    let answers = running.join_all().await.into_iter().collect::<Result<Vec<Answers>>>()?;
    Ok(Driven::by(answers, start, cpu_of_self()?.saturating_sub(cpu))?)
}

/// A connection of the load.
struct Buyer {
    client: Client,
    url: String,
    api_key: String,
    prefix: String,
}

impl Buyer {
    async fn buy(self, start: Instant, end: Instant) -> Result<Answers> {
        let order = json!({ "amount": 1_250, "currency": "usd", "payment_method": "pm_card_visa" });
        let mut answers = Answers::default();
        for number in 0_u64.. {
            let begun = Instant::now();
            if begun >= end {
                break;
            }
            let key = format!("{}-{number}", self.prefix);
            let asked = self.client.post(&self.url).bearer_auth(&self.api_key).header(KEY, key).json(&order);
            let answer = asked.send().await?;
            let status = answer.status();
            answer.bytes().await?;
            if status != StatusCode::CREATED {
                return Err(format!("a charge was answered with {status}").into());
            }
            answers.count(begun, start);
        }
        Ok(answers)
    }
}

fn client() -> reqwest::Result<Client> {
    Client::builder().no_proxy().pool_max_idle_per_host(IDLE_MAX).build()
}

async fn serve(listen: SocketAddr, router: Router) -> io::Result<()> {
    let listener = TcpListener::bind(listen).await?.tap_io(|stream| {
        // A failure only costs speed.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await
}
