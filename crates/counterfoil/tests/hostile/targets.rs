//! Bad paths and methods: wrong methods, unknown routes, tricks with dots, slashes and escapes, ids
//! of nothing.

use crate::bad::{BadRequest, Expected, Request};
use crate::coverage::object_of;
use crate::forms::escaped;
use crate::routes::Route;
use crate::table::{Object, WRITES};
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};

/// The path of a route with an object of the tenant in it.
pub(crate) fn filled(route: &Route, world: &World) -> String {
    // No dead letter exists here, so an operator's route gets an unknown id.
    let id = object_of(&route.path).map_or("dl_00000000000000000000000000", |object| world.id(object));
    let names = [("{id}", id), ("{key}", "charge"), ("{code}", "not_found"), ("{provider}", "stripe")];
    names.iter().fold(route.path.clone(), |path, (name, value)| path.replace(name, value))
}

const METHODS: [&str; 12] =
    ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get", "post", "Post", "X-Y"];
/// Suffixes that no path has.
const ENDS: [&str; 22] = [
    "/",
    "//",
    "/.",
    "/..",
    "/./",
    "/../",
    "%2f",
    "%2F..",
    "%00",
    "%0a",
    "%0d%0aHost:%20x",
    "%c0%af",
    "%e0%80%af",
    "%ff",
    "%",
    "%zz",
    ".json",
    "~",
    "%20",
    "/x/y",
    "/*",
    "%252f",
];
/// Prefixes that no path has.
const STARTS: [&str; 14] = [
    "/", "/.", "/..", "/x", "/v1", "/V1", "/v2", "/api", "/%2e", "/%2e%2e", "/.%2e", "/;", "/%2f", "/%76%31",
];

pub(crate) fn make(world: &World, routes: &[Route], bad: &mut Vec<BadRequest>) {
    let mut methods: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for route in routes {
        methods.entry(&route.path).or_default().insert(&route.method);
    }
    for (path, known) in &methods {
        let route = routes.iter().find(|route| route.path == *path).unwrap();
        let target = filled(route, world);
        for method in METHODS.iter().filter(|method| !known.contains(*method)) {
            let request = Request::new(method, &target).by(&world.secret);
            bad.push(BadRequest::new(format!("{method} {path}"), request, Expected::not_allowed(known)));
        }
    }
    let get = |what: String, target: String| {
        BadRequest::new(what, Request::new("GET", &target).by(&world.secret), Expected::absent())
    };
    for route in routes {
        let target = filled(route, world);
        for start in STARTS {
            bad.push(get(format!("{start} before {}", route.path), format!("{start}{target}")));
        }
        // A key may have any visible character, and a provider's name is only checked with a
        // delivery.
        if !matches!(route.parameter.as_deref(), Some("key" | "provider")) {
            for end in ENDS {
                bad.push(get(format!("{end} after {}", route.path), format!("{target}{end}")));
            }
        }
        ids(route, world, bad);
    }
    for path in [
        "/",
        "/v1",
        "/v1/",
        "/v1/charge",
        "/v1/charges/x/y",
        "/v1/accounts/x/y/z",
        "/v1/refund",
        "/admin",
        "/.env",
        "/.git/config",
        "/etc/passwd",
        "/v1/charges/x/timeline/y",
        "/v1/transactions/bulk/x",
        "/v1/idempotency-keys",
        "/v1/idempotency-keys/a/b",
        "/favicon.ico",
        "/robots.txt",
        "/index.html",
        "/V1/CHARGES",
        "/v1/Charges",
        "/v1/%63harges",
        "/v1/charges%3fx=1",
        "/v1/charges;x=1",
        "/v1//charges",
        "/v1/./charges",
        "/v1/../v1/charges",
        "/v1/%2e%2e/v1/charges",
        "/v1\\charges",
        "/healthz/",
        "/healthz/x",
        "/Healthz",
        "/errors/",
        "/errors/x",
        "/errors/..%2f..%2fCargo.toml",
        "/errors/not_found.md",
        "/errors/NOT_FOUND",
        "/errors/%6eot_found",
        "/docs/",
        "/docs/index.html",
        "/_sim/effects",
        "/console/x",
        "/openapi.yaml",
        "/openapi.json/",
        "/metrics/x",
    ] {
        bad.push(get(format!("GET {path}"), path.to_owned()));
        let request = Request::new("GET", path);
        bad.push(BadRequest::new(format!("GET {path} by nobody"), request, Expected::absent()));
    }
    for key in ["%00", "%20", "a%20b", "%7f", "%c3%a9", "%ff", "%", "%4", "%zz", "é", &"k".repeat(256)] {
        let request = Request::new("GET", &format!("/v1/idempotency-keys/{key}")).by(&world.secret);
        bad.push(BadRequest::new(
            format!("GET the key {key}"),
            request,
            Expected::new(400, "idempotency_key_invalid"),
        ));
    }
    for key in ["nothing", "..", "%2e%2e", "%2f", "%22a%22", "a;b", "a=b", "+", "%2b", &"k".repeat(255)] {
        bad.push(get(format!("GET the key {key}"), format!("/v1/idempotency-keys/{key}")));
    }
}

/// Unknown ids in the path of a route about one object.
fn ids(route: &Route, world: &World, bad: &mut Vec<BadRequest>) {
    let Some(object) = object_of(&route.path) else { return };
    for id in world
        .not_ids(object)
        .into_iter()
        // `a` is the code of an account of the tenant.
        .filter(|id| !(id.is_empty() || object == Object::Account && id == "a"))
    {
        let target = route.path.replace("{id}", &escaped(&id));
        let request = Request::new(&route.method, &target).by(&world.secret);
        let request = match WRITES.iter().find(|write| write.path == route.path) {
            Some(write) if route.method == "POST" => request.json(&write.key("ids"), write.good),
            _ => request,
        };
        bad.push(BadRequest::new(
            format!("{} {} with {id:?}", route.method, route.path),
            request,
            Expected::absent(),
        ));
    }
}
