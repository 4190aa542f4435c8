//! Routes for people and monitoring: the API's documentation, the error pages and the health
//! checks.

pub(crate) mod docs;
pub(crate) mod errors;
pub(crate) mod health;
mod markdown;
