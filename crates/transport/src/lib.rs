//! What every connector sends its requests with: pooled connections, one deadline per exchange, and a request body that
//! leaves at most once.
//!
//! It promises that no body leaves after its deadline, however long the process slept, and that `NotSent` is only said of a
//! request whose body never left. It follows no redirect and reads no proxy from the environment. It leaves out what is
//! sent and what an answer means.

mod address;
mod deadline;
mod letter;
mod pool;
mod transport;

pub use address::{Address, BadAddress, at};
pub use deadline::Deadline;
pub use letter::{Letter, SendReceipt};
pub use transport::{HttpAnswer, Transport, TransportConfigError, TransportFailure, TransportLimits};
