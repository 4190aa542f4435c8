//! Pages for people: the API's description, and what each error means. They need nothing from the internet.

pub(crate) mod docs;
pub(crate) mod errors;
pub(crate) mod markdown;
pub(crate) mod openapi;
