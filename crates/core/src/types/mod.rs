//! Basic types of all modules: ids, money, time, digests, exact numbers and the bounds of the
//! system.

pub mod asset;
pub mod decimal;
pub mod digest;
pub mod flaw;
pub mod id;
pub mod json;
pub mod limits;
pub mod mask;
pub mod money;
pub mod peer;
pub mod position;
pub mod reference;
pub mod time;
pub mod ulid;
