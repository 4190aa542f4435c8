//! An event, as far as it is read: `data.object.metadata.counterfoil_payment`. Its type, its amounts and its status are the
//! provider's to tell when it is asked.

use counterfoil_core::types::json::Json;
use counterfoil_gateway::inbox::{ProviderEvent, Unopened};

const PATH: [&str; 4] = ["data", "object", "metadata", "counterfoil_payment"];

/// Reads a body that is known to be the provider's. An object that names no payment of ours is an event all the same.
pub(super) fn read(body: &[u8]) -> Result<ProviderEvent, Unopened> {
    let event = Json::parse(body).ok().filter(|json| matches!(json, Json::Object(_)));
    let event = event.ok_or(Unopened::Unreadable)?;
    let named = PATH.iter().try_fold(&event, |place, name| match place {
        Json::Object(object) => object.get(name),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => None,
    });
    let payment = match named {
        Some(Json::String(text)) => Some(text.clone()),
        Some(Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_)) | None => None,
    };
    Ok(ProviderEvent { payment })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(body: &str) -> Result<Option<String>, Unopened> {
        read(body.as_bytes()).map(|event| event.payment)
    }

    #[test]
    fn what_is_no_object_is_no_event() {
        for body in
            ["", "null", "[]", "\"ch_1\"", "{", r#"{"data":1}{"#, r#"{"data":{},"data":{}}"#, "\u{feff}{}"]
        {
            assert_eq!(named(body), Err(Unopened::Unreadable), "{body}");
        }
    }

    #[test]
    fn an_event_about_something_else_names_nothing() {
        for body in [
            "{}",
            r#"{"data":null}"#,
            r#"{"data":[]}"#,
            r#"{"data":{"object":"ch_1"}}"#,
            r#"{"data":{"object":{"metadata":null}}}"#,
            r#"{"data":{"object":{"metadata":{}}}}"#,
            r#"{"data":{"object":{"metadata":{"counterfoil_payment":1}}}}"#,
            r#"{"metadata":{"counterfoil_payment":"ch_1"}}"#,
            r#"{"data":{"previous_attributes":{"metadata":{"counterfoil_payment":"ch_1"}}}}"#,
        ] {
            assert_eq!(named(body), Ok(None), "{body}");
        }
    }

    #[test]
    fn our_reference_stands_in_the_objects_metadata() {
        let body = r#"{"id":"evt_1","object":"event","api_version":"2024-06-20","created":1700000000,"type":"payment_intent.succeeded",
            "data":{"object":{"id":"pi_1","amount":1250,"metadata":{"order":"7","counterfoil_payment":"ch_1"}}}}"#;
        assert_eq!(named(body), Ok(Some("ch_1".into())));
    }
}
