//! A small HTTP/1.1 client: one request at a time on a kept-alive connection, answers read in
//! place.
//!
//! Pipelining, chunked answers, redirects and TLS are not supported; the load never needs them.

mod answer;
mod connection;

pub use answer::Malformed;
pub(crate) use answer::{Answer, Head};
pub(crate) use connection::{Connection, Failure};
