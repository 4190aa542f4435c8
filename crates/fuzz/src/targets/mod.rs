mod answer;
mod config;
mod decimal;
mod form;
mod json;
mod key;
mod metadata;
mod naive;
mod names;
mod peer;
mod prepared_server;
mod record;
mod reference;
mod request;
mod time;
mod webhook;

use crate::target::Target;

pub const TARGETS: [Target; 14] = [
    key::TARGET,
    json::TARGET,
    decimal::TARGET,
    form::TARGET,
    request::TARGET,
    reference::TARGET,
    time::TARGET,
    names::TARGET,
    answer::TARGET,
    peer::TARGET,
    webhook::TARGET,
    metadata::TARGET,
    record::TARGET,
    config::TARGET,
];
