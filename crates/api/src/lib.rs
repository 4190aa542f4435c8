//! The HTTP interface: routes, request checks, answers, metrics and the accept loop.
//!
//! Promises: every answer has a `Request-Id`; every error is a problem from the closed list;
//! nothing a client sent reaches a log or a metric; every dimension of a request is bounded before
//! it is read. The crate decides nothing about payments or the ledger: it reaches the engine only
//! through [`counterfoil_engine::service::Service`].

mod answer;
mod app;
mod metrics;
mod openapi;
mod pages;
mod request;
mod resources;
mod routes;
mod server;

pub use app::{ApiSettings, App, RequestLog};
pub use metrics::Metrics;
pub use routes::router;
pub use server::{Drained, serve};
