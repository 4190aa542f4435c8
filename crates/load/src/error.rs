//! Errors that prevent a run. Single failed requests are figures of the report instead.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::client::Malformed;

/// Each message says what is wrong and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The load generator does not support the URL.
    #[error("cannot use the URL {url:?}: {reason}")]
    Url {
        url: String,
        /// Advice for the user.
        reason: &'static str,
    },
    /// The plan exceeds a bound.
    #[error("the plan cannot run: {0}")]
    Plan(&'static str),
    /// The host has no address.
    #[error("cannot find an address for {host}: {source}; check the name in the URL")]
    Resolve {
        /// Host and port.
        host: String,
        source: std::io::Error,
    },
    /// Nothing accepts connections there.
    #[error("cannot connect to {addr}: {source}; is the server running, and listening on this address?")]
    Connect { addr: SocketAddr, source: std::io::Error },
    /// The connection broke before the measurement began.
    #[error(
        "the connection to {addr} broke before the measurement began: {source}; look at the server's log"
    )]
    Broken { addr: SocketAddr, source: std::io::Error },
    /// The first request was refused in a way that every further one would be.
    #[error("the first request was refused with status {status}: {body}; check the URL and the API key")]
    Refused {
        status: u16,
        /// The beginning of the answer's body.
        body: String,
    },
    /// The client cannot read the server's answer.
    #[error("cannot read the server's answer: {0}")]
    Malformed(#[from] Malformed),
    /// A request that should be new was answered as a replay.
    #[error(
        "the key {key} was used before this run; choose another key prefix, or the figures count replays"
    )]
    KeyUsedBefore { key: String },
    /// The load needs replays, but no request succeeded that could be replayed.
    #[error("no request succeeded that could be replayed (last status {status}); look at the server's log")]
    NothingToReplay {
        /// Status of the last attempt.
        status: u16,
    },
    /// The run went through, but not one request succeeded.
    #[error("none of {requests} requests succeeded ({detail}); look at the server's log")]
    NothingSucceeded {
        /// Requests sent while measuring.
        requests: u64,
        /// Counts of their outcomes.
        detail: String,
    },
    /// A file needed for measuring could not be written.
    #[error("cannot measure fsync with {path}: {source}; choose a directory that can be written")]
    File { path: PathBuf, source: std::io::Error },
    /// A task of the run ended early: a bug of the load generator.
    #[error("a connection's task stopped: {0}; this is a bug of the load generator, please report it")]
    Stopped(#[from] tokio::task::JoinError),
}
