//! A client, a proxy and a provider as they are written every day, with axum and reqwest: what the goals about a proxy were set
//! with. A request costs all three about 0.1 ms of CPU, more than twice what it costs the leanest that we could write
//! (`counterfoil_load`). Who charges through the product has such a client and such a provider.

use super::child::{Aim, Driven, WARMUP, as_the_server_runs, told};
use super::tally::Tally;
use crate::failure::{Failure, Result};
use crate::process::cpu_of_self;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::serve::ListenerExt;
use axum::{Form, Json, Router};
use clap::{Args, Subcommand};
use reqwest::Client;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

const KEY: &str = "idempotency-key";
const CHARGES: &str = "/v1/charges";
const INTENTS: &str = "/v1/payment_intents";
/// Connections that wait to be used again.
const IDLE_MAX: usize = 1_024;

/// What runs in a process of its own; `bench` starts it.
#[derive(Args)]
pub(crate) struct Ordinary {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Executes every payment at once, and remembers none.
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
    /// Charges, each connection one after the other.
    Load(Aim),
}

impl Ordinary {
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self.role {
            Role::Provider { listen } => as_the_server_runs(provide(listen)),
            Role::Proxy { listen, provider } => as_the_server_runs(forward(listen, provider)),
            Role::Load(aim) => {
                let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
                told(&runtime.map_err(Failure::while_("starting the runtime"))?.block_on(drive(aim))?)
            }
        }
    }
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

/// The provider, and how it is called.
struct Way {
    client: Client,
    url: String,
}

async fn forward(listen: SocketAddr, provider: SocketAddr) -> io::Result<()> {
    let way = Way { client: client().map_err(io::Error::other)?, url: format!("http://{provider}{INTENTS}") };
    serve(listen, Router::new().route(CHARGES, post(charged)).with_state(Arc::new(way))).await
}

async fn charged(
    State(way): State<Arc<Way>>,
    headers: HeaderMap,
    Json(order): Json<Value>,
) -> (StatusCode, Json<Value>) {
    let key = headers.get(KEY).and_then(|key| key.to_str().ok()).unwrap_or_default();
    match way.pay(key, &order).await {
        Ok(intent) => (StatusCode::CREATED, Json(intent)),
        Err(error) => (StatusCode::BAD_GATEWAY, Json(json!({ "error": error.to_string() }))),
    }
}

impl Way {
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
    let client = client().map_err(Failure::while_("making a client"))?;
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
    Tally::of_all(running, start, cpu).await
}

/// One connection of the load.
struct Buyer {
    client: Client,
    url: String,
    api_key: String,
    prefix: String,
}

impl Buyer {
    async fn buy(self, start: Instant, end: Instant) -> Result<Tally> {
        let order = json!({ "amount": 1_250, "currency": "usd", "payment_method": "pm_card_visa" });
        let mut tally = Tally::default();
        for number in 0_u64.. {
            let begun = Instant::now();
            if begun >= end {
                break;
            }
            let key = format!("{}-{number}", self.prefix);
            let asked = self.client.post(&self.url).bearer_auth(&self.api_key).header(KEY, key).json(&order);
            let answer = asked.send().await.map_err(Failure::while_("charging"))?;
            let status = answer.status();
            answer.bytes().await.map_err(Failure::while_("reading the answer to a charge"))?;
            if status != StatusCode::CREATED {
                return Err(Failure::new(format!("a charge was answered with {status}")));
            }
            tally.count(begun, start);
        }
        Ok(tally)
    }
}

fn client() -> reqwest::Result<Client> {
    Client::builder().no_proxy().pool_max_idle_per_host(IDLE_MAX).build()
}

async fn serve(listen: SocketAddr, router: Router) -> io::Result<()> {
    let listener = TcpListener::bind(listen).await?.tap_io(|stream| {
        // Slower, not wrong, without.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await
}
