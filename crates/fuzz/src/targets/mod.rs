//! Every target. Signatures of webhooks get theirs here once there are webhooks.

mod answer;
mod config;
mod decimal;
mod form;
mod json;
mod key;
mod metadata;
mod naive;
mod names;
mod record;
mod reference;
mod request;
mod time;

use crate::target::Target;

/// All of them.
pub const TARGETS: [Target; 12] = [
    key::TARGET,
    json::TARGET,
    decimal::TARGET,
    form::TARGET,
    request::TARGET,
    reference::TARGET,
    time::TARGET,
    names::TARGET,
    answer::TARGET,
    metadata::TARGET,
    record::TARGET,
    config::TARGET,
];
