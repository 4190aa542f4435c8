//! Events. Only `data.object.metadata.counterfoil_payment` is read: type, amounts and status come
//! from asking the provider.

use counterfoil_core::types::json::Json;
use counterfoil_gateway::inbox::{ProviderEvent, Unopened};

const PATH: [&str; 4] = ["data", "object", "metadata", "counterfoil_payment"];

/// Reads a verified body. An object without a payment of ours is still an event.
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
    fn a_body_that_is_not_an_object_is_no_event() {
        for body in
            ["", "null", "[]", "\"ch_1\"", "{", r#"{"data":1}{"#, r#"{"data":{},"data":{}}"#, "\u{feff}{}"]
        {
            assert_eq!(named(body), Err(Unopened::Unreadable), "{body}");
        }
    }

    #[test]
    fn an_event_about_another_object_names_no_payment() {
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
    fn our_reference_is_in_the_objects_metadata() {
        let body = r#"{"id":"evt_1","object":"event","api_version":"2024-06-20","created":1700000000,"type":"payment_intent.succeeded",
            "data":{"object":{"id":"pi_1","amount":1250,"metadata":{"order":"7","counterfoil_payment":"ch_1"}}}}"#;
        assert_eq!(named(body), Ok(Some("ch_1".into())));
    }
}
