//! The HTTP face: routes, the order in which a request is checked, answers, metrics, the accept loop.
//!
//! Promises: every answer has a `Request-Id`, every error is a problem of the closed list, nothing a client sent
//! reaches a log or a metric, and every dimension of a request is bounded before it is read. Leaves out: what
//! anything means. The engine is reached through [`counterfoil_engine::service::Service`] alone.

mod accounts;
mod answer;
mod app;
mod assets;
mod auth;
mod body;
mod charges;
mod conversions;
mod dead_letters;
mod describe;
mod exchange;
mod health;
mod intake;
mod keys;
mod limits;
mod metrics;
mod pages;
mod path;
mod payouts;
mod query;
mod refunds;
mod route;
mod routes;
mod serve;
mod timeline;
mod transactions;
mod transfers;
mod webhooks;

pub use app::{ApiSettings, App, RequestLog};
pub use metrics::Metrics;
pub use routes::router;
pub use serve::{Drained, serve};
