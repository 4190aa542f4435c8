//! Raw limits of this machine, to compare Counterfoil's figures with.
//!
//! Echo and proxy are servers for separate processes. [`crate::charge::run`] loads them like the
//! real server: the same requests, answers of the same size, and nothing stored. The fsync loop
//! measures one durable write.

pub mod echo;
pub mod fsync;
pub mod proxy;
mod serve;

pub use echo::{charge_answer, run_echo, serve_echo};
pub use fsync::FsyncReport;
pub use proxy::{Provider, serve_proxy};
pub use serve::serve;
