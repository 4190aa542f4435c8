//! What this machine can do without Counterfoil, to compare its figures with.
//!
//! Echo and proxy are servers for processes of their own, loaded with [`crate::charge::run`] like the real
//! server: the same requests, answers of the same size, and nothing stored. The fsync loop is what one durable
//! write costs.

pub mod echo;
pub mod fsync;
pub mod proxy;
mod serve;

pub use echo::{charge_answer, run_echo, serve_echo};
pub use fsync::FsyncReport;
pub use proxy::{Provider, serve_proxy};
pub use serve::serve;
