//! HTTP transport of the connectors: pooled connections, one deadline per exchange, and a request
//! body that is sent at most once.
//!
//! No body is sent after its deadline, however long the process slept. `NotSent` is only reported
//! for a request whose body was never sent. The transport follows no redirects and reads no proxy
//! settings from the environment. Request contents and the meaning of answers belong to the
//! connectors.

mod address;
mod deadline;
mod letter;
mod pool;
mod transport;

pub use address::{Address, AddressError, uri_at};
pub use deadline::Deadline;
pub use letter::{Letter, SendReceipt};
pub use transport::{HttpAnswer, Transport, TransportConfigError, TransportFailure, TransportLimits};
