//! The provider: its faults, and the effects it really executed.

use crate::failure::{Failure, Result};
use counterfoil_testkit::http;
use serde::Deserialize;
use std::net::SocketAddr;
use std::time::Duration;

const LIMIT: Duration = Duration::from_mins(1);

/// Direction of an effect's money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum EffectKind {
    Charge,
    Authorize,
    Capture,
    Cancel,
    Refund,
    Payout,
}

/// An effect the provider executed.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Effect {
    pub(super) kind: EffectKind,
    pub(super) key: Option<String>,
    pub(super) payment: Option<String>,
    pub(super) amount: u64,
    /// With milliseconds.
    pub(super) at: String,
}

/// Executed effects, and the number of late deliveries still pending.
#[derive(Deserialize)]
pub(super) struct Effects {
    pub(super) data: Vec<Effect>,
    pub(super) late_pending: u64,
}

/// Fetches all executed effects.
pub(super) async fn effects(provider: SocketAddr) -> Result<Vec<Effect>> {
    Ok(history(provider).await?.data)
}

pub(super) async fn history(provider: SocketAddr) -> Result<Effects> {
    let doing = "reading the provider's effects";
    let answer =
        http::ask(provider, "GET", "/_sim/effects", "", LIMIT).await.map_err(Failure::while_(doing))?;
    serde_json::from_slice(&answer.body).map_err(Failure::while_(doing))
}

/// Sets the provider's faults, given as a JSON object.
pub(super) async fn set_faults(provider: SocketAddr, faults: &str) -> Result<()> {
    tell(provider, "PUT", faults).await
}

pub(super) async fn clear_faults(provider: SocketAddr) -> Result<()> {
    tell(provider, "DELETE", "").await
}

async fn tell(provider: SocketAddr, method: &str, body: &str) -> Result<()> {
    let doing = "setting the provider's faults";
    let answer =
        http::ask(provider, method, "/_sim/faults", body, LIMIT).await.map_err(Failure::while_(doing))?;
    if answer.status == 200 {
        Ok(())
    } else {
        Err(Failure::new(format!("{doing}: {}", String::from_utf8_lossy(&answer.body))))
    }
}
