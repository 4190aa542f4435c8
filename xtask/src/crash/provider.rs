//! The provider's side of the story: its faults, and the effects it really executed.

use crate::failure::{Failure, Result};
use crate::http;
use serde::Deserialize;
use std::net::SocketAddr;
use std::time::Duration;

const LIMIT: Duration = Duration::from_mins(1);

/// An effect the provider executed.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Effect {
    pub(super) key: Option<String>,
    pub(super) payment: Option<String>,
    pub(super) amount: u64,
}

#[derive(Deserialize)]
struct Effects {
    data: Vec<Effect>,
}

/// Everything that was executed.
pub(super) async fn effects(provider: SocketAddr) -> Result<Vec<Effect>> {
    let doing = "reading the provider's effects";
    let answer =
        http::ask(provider, "GET", "/_sim/effects", "", LIMIT).await.map_err(Failure::while_(doing))?;
    let effects: Effects = serde_json::from_slice(&answer.body).map_err(Failure::while_(doing))?;
    Ok(effects.data)
}

/// Puts faults in force, as a JSON object.
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
