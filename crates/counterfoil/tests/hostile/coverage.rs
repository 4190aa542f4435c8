//! Checks that the tables cover the served description: every new route, field or parameter needs
//! its damage.

use crate::routes::Route;
use crate::table::{Field, Kind, Object, Presence, WRITES};
use serde_json::Value;
use std::collections::BTreeSet;

/// Routes without API key and input.
const OPEN: [&str; 6] = ["/docs", "/errors", "/healthz", "/metrics", "/openapi.json", "/readyz"];
/// Objects named by the paths of routes.
const OBJECTS: [(&str, Object); 6] = [
    ("/v1/charges/{id}", Object::Charge),
    ("/v1/accounts/{id}", Object::Account),
    ("/v1/transfers/{id}", Object::Transfer),
    ("/v1/transactions/{id}", Object::Transaction),
    ("/v1/refunds/{id}", Object::Refund),
    ("/v1/payouts/{id}", Object::Payout),
];
/// Prefixes of operator routes. Their objects need a misbehaving provider;
/// `api/tests/api/payments.rs` sends hostile input through the same reader.
pub(crate) const OPERATORS: [&str; 1] = ["/v1/dead-letters"];
/// Provider routes, which have signatures instead of API keys; `tests/webhooks.rs` sends their
/// hostile input.
const PROVIDERS: [&str; 1] = ["/v1/webhooks/{provider}"];
/// Nested objects whose damage is tested in `wire`.
const ELSEWHERE: [(&str, &str); 1] = [("POST /v1/charges", "wallet")];
/// Query parameters with damage in `queries.rs`.
const PARAMETERS: [&str; 3] = ["limit", "starting_after", "at"];

/// The tenant's object in a route's path, if any.
pub(crate) fn object_of(path: &str) -> Option<Object> {
    OBJECTS.iter().find(|(start, _)| path.starts_with(start)).map(|(_, object)| *object)
}

pub(crate) fn is_an_operators(path: &str) -> bool {
    OPERATORS.iter().any(|start| path.starts_with(start))
}

/// The gaps of the tables.
pub(crate) fn complaints(routes: &[Route]) -> Vec<String> {
    let mut complaints = Vec::new();
    let elsewhere = |path: &str| is_an_operators(path) || PROVIDERS.contains(&path);
    for route in routes.iter().filter(|route| !elsewhere(&route.path)) {
        let name = format!("{} {}", route.method, route.path);
        match (route.method.as_str(), WRITES.iter().find(|write| write.path == route.path)) {
            ("GET", _) => reads(route, &mut complaints),
            ("POST", Some(write)) => {
                match &route.schema {
                    Some(schema) => fields(&name, write.fields, schema, &mut complaints),
                    None if write.fields.is_empty() => {}
                    None => {
                        complaints
                            .push(format!("{name} has fields in the table but none in its description"));
                    }
                }
                let about = write.about.map(|(object, ..)| object);
                if object_of(&route.path) != about || !route.secured {
                    complaints
                        .push(format!("{name} names {:?}, the table says {about:?}", object_of(&route.path)));
                }
            }
            _ => complaints.push(format!("{name} has no entry in the table of hostile input")),
        }
    }
    for write in WRITES {
        if !routes.iter().any(|route| route.method == "POST" && route.path == write.path) {
            complaints.push(format!("POST {} is in the table but not described", write.path));
        }
    }
    complaints
}

fn reads(route: &Route, complaints: &mut Vec<String>) {
    let name = format!("GET {}", route.path);
    for parameter in route.query.iter().filter(|name| !PARAMETERS.contains(&name.as_str())) {
        complaints.push(format!("{name}: the parameter {parameter} has no damage in queries.rs"));
    }
    let known = match route.parameter.as_deref() {
        None => true,
        Some("id") => object_of(&route.path).is_some(),
        Some("key") => route.path == "/v1/idempotency-keys/{key}",
        Some("code") => route.path == "/errors/{code}",
        Some(_) => false,
    };
    if !known {
        complaints.push(format!("{name}: what its path names has no damage in targets.rs"));
    }
    let open = OPEN.contains(&route.path.as_str()) || route.path == "/errors/{code}";
    if open == route.secured {
        complaints.push(format!("{name}: secured {}, open {open}", route.secured));
    }
}

/// Compares the table with the fields of a schema; both must have the same.
fn fields(name: &str, fields: &[Field], schema: &Value, complaints: &mut Vec<String>) {
    let here = |field: &&str| !ELSEWHERE.contains(&(name, field));
    let properties = schema["properties"].as_object().into_iter().flatten();
    let described: BTreeSet<&str> = properties.map(|(name, _)| name.as_str()).filter(here).collect();
    let known: BTreeSet<&str> = fields.iter().map(|field| field.name).collect();
    if described != known {
        complaints.push(format!("{name}: described are {described:?}, the table has {known:?}"));
    }
    let required: BTreeSet<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).filter(here).collect();
    let must: BTreeSet<&str> =
        fields.iter().filter(|field| field.presence == Presence::Required).map(|field| field.name).collect();
    if required != must {
        complaints.push(format!("{name}: required are {required:?}, the table has {must:?}"));
    }
    if schema["additionalProperties"] != false {
        complaints.push(format!("{name}: the description does not say that unknown fields are refused"));
    }
    for field in fields {
        if let Kind::List(_, _, inner) = field.kind {
            let items = &schema["properties"][field.name]["items"];
            self::fields(&format!("{name} {}", field.name), inner, items, complaints);
        }
    }
}

#[test]
fn gaps_of_the_tables_are_found() {
    let route = |method: &str, path: &str| Route {
        method: method.to_owned(),
        path: path.to_owned(),
        secured: true,
        query: Vec::new(),
        parameter: None,
        schema: None,
    };
    let described =
        |schema: Value| Route { schema: Some(schema), ..route("POST", "/v1/accounts/{id}/shards") };
    let about =
        |routes: &[Route], words: &str| complaints(routes).iter().any(|complaint| complaint.contains(words));
    assert!(about(&[route("POST", "/v1/disputes")], "POST /v1/disputes has no entry"));
    assert!(about(&[route("DELETE", "/v1/charges")], "DELETE /v1/charges has no entry"));
    assert!(about(
        &[Route { query: vec!["expand".to_owned()], ..route("GET", "/v1/charges") }],
        "parameter expand"
    ));
    assert!(about(
        &[Route { parameter: Some("id".to_owned()), ..route("GET", "/v1/disputes/{id}") }],
        "path names"
    ));
    assert!(about(
        &[described(serde_json::json!({"properties": {"shards": {}, "more": {}}, "required": ["shards"]}))],
        "described are"
    ));
    assert!(about(&[described(serde_json::json!({"properties": {"shards": {}}}))], "required are"));
    let fits = serde_json::json!({"properties": {"shards": {}}, "required": ["shards"], "additionalProperties": false});
    assert!(!about(&[described(fits)], "shards: "));
}
