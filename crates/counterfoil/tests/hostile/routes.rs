//! The routes described by `/openapi.json`.

use crate::bad::Request;
use crate::world::ask;
use serde_json::Value;

/// A path with one method.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Whether the route needs an API key.
    pub(crate) secured: bool,
    /// The names of the query parameters.
    pub(crate) query: Vec<String>,
    /// The name of the path parameter.
    pub(crate) parameter: Option<String>,
    /// The schema of the body, with references resolved.
    pub(crate) schema: Option<Value>,
}

pub(crate) fn described(port: u16) -> Vec<Route> {
    let description = ask(port, &Request::new("GET", "/openapi.json"));
    let mut routes = Vec::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let names = |place: &str| {
                let all = operation["parameters"].as_array().into_iter().flatten();
                let named =
                    all.filter(|one| one["in"] == place).map(|one| one["name"].as_str().unwrap().to_owned());
                named.collect::<Vec<_>>()
            };
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            routes.push(Route {
                method: method.to_uppercase(),
                path: path.clone(),
                secured: operation["security"].is_array(),
                query: names("query"),
                parameter: names("path").pop(),
                schema: (!schema.is_null()).then(|| resolved(schema, &description)),
            });
        }
    }
    routes
}

/// Replaces every reference in a schema by its target.
fn resolved(schema: &Value, description: &Value) -> Value {
    match schema {
        Value::Object(members) => match members.get("$ref").and_then(Value::as_str) {
            Some(reference) => {
                resolved(description.pointer(reference.trim_start_matches('#')).unwrap(), description)
            }
            None => {
                members.iter().map(|(name, value)| (name.clone(), resolved(value, description))).collect()
            }
        },
        Value::Array(elements) => elements.iter().map(|element| resolved(element, description)).collect(),
        other => other.clone(),
    }
}
