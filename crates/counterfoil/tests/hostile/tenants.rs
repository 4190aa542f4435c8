//! Tenants and scopes, route by route. Objects of other tenants are answered byte for byte like
//! absent objects, and an API key can only act within its scopes. The routes come from the served
//! description.

use crate::bad::{Answer, Request};
use crate::bodies::Target;
use crate::coverage::{is_an_operators, object_of};
use crate::routes::{self, Route};
use crate::table::{Kind, Object, WRITES};
use crate::world::{World, ask, damaged};
use serde_json::Value;

/// An answer without the parts that differ between requests or new objects. `name`, chosen by the
/// client, is replaced by `other`.
fn said(answer: &Answer, name: &str, other: &str) -> (u16, Vec<(String, String)>, Value) {
    let varying = ["request-id", "date", "idempotency-expires", "location", "content-length"];
    let kept = answer.headers.iter().filter(|(name, _)| !varying.contains(&name.as_str())).cloned().collect();
    let text = String::from_utf8(answer.body.clone()).unwrap().replace(name, other);
    let mut body: Value = serde_json::from_str(&text).unwrap();
    mask(&mut body);
    (answer.status, kept, body)
}

/// Masks times, and ids of requests and new objects.
fn mask(value: &mut Value) {
    match value {
        Value::String(text) => {
            let is_id = text.len() == 29 && text.as_bytes()[2] == b'_';
            let is_time = text.len() == 24 && text.as_bytes()[10] == b'T' && text.ends_with('Z');
            if is_id || is_time || text.starts_with("req_") {
                "*".clone_into(text);
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(mask),
        Value::Object(members) => members.values_mut().for_each(mask),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A comparison: the same request about an object of another tenant, and about an absent object.
struct Pair {
    rule: String,
    names: (String, String),
    foreign: Request,
    absent: Request,
}

impl Pair {
    /// Describes a difference. The second object must never have existed, or the comparison proves
    /// nothing.
    fn difference(&self, port: u16) -> Option<String> {
        let (foreign, absent) = (self.foreign.send(port).unwrap(), self.absent.send(port).unwrap());
        let (name, other) = (&self.names.0, &self.names.1);
        let (foreign, absent) = (said(&foreign, name, other), said(&absent, name, other));
        let told = foreign != absent || foreign.0 >= 500;
        told.then(|| format!("{}\n  another's: {foreign:?}\n  absent:    {absent:?}", self.rule))
    }
}

/// An id that never existed, in the form of an existing one.
fn absent(id: &str) -> String {
    let ids = damaged(id);
    ids.into_iter().rfind(|other| other.len() == id.len() && other != id && !other.ends_with('z')).unwrap()
}

fn pairs(world: &World, routes: &[Route]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for route in routes.iter().filter(|route| route.secured) {
        if let Some(object) = object_of(&route.path) {
            let mut names = vec![(world.id(object).to_owned(), absent(world.id(object)))];
            if object == Object::Account {
                names.push(("only-acme".to_owned(), "only-none".to_owned()));
            }
            for (foreign, absent) in names {
                let request =
                    |id: &str, key: &str| by_other(world, route, &route.path.replace("{id}", id), key);
                pairs.push(Pair {
                    rule: format!("{} {} with {foreign}", route.method, route.path),
                    foreign: request(&foreign, "foreign"),
                    absent: request(&absent, "absent"),
                    names: (foreign, absent),
                });
            }
        }
        if route.query.iter().any(|name| name == "starting_after") {
            let own = object_of(&route.path).map_or("", |object| world.others[&object].as_str());
            for id in world.own.values() {
                let path = |id: &str| format!("{}?starting_after={id}", route.path.replace("{id}", own));
                pairs.push(Pair {
                    rule: format!("GET {} after {id}", route.path),
                    foreign: by_other(world, route, &path(id), ""),
                    absent: by_other(world, route, &path(&absent(id)), ""),
                    names: (id.clone(), absent(id)),
                });
            }
        }
    }
    let key = |key: &str| Request::new("GET", &format!("/v1/idempotency-keys/{key}")).by(&world.other);
    let names = ("only-acme".to_owned(), "only-none".to_owned());
    pairs.push(Pair { rule: "a key".to_owned(), foreign: key(&names.0), absent: key(&names.1), names });
    pairs
}

/// A request by the other tenant, with a good body if the route writes.
fn by_other(world: &World, route: &Route, path: &str, key: &str) -> Request {
    let request = Request::new(&route.method, path).by(&world.other);
    match WRITES.iter().find(|write| route.method == "POST" && write.path == route.path) {
        Some(write) => request.json(&format!("{key}-{}", path.replace('/', ".")), write.good),
        None => request,
    }
}

/// Every object reference in the good bodies.
fn bodies(world: &World) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for target in Target::all(world) {
        for hole in target.holes() {
            let names = match hole.field.kind {
                Kind::Account | Kind::Name => vec![
                    (world.id(Object::Account).to_owned(), absent(world.id(Object::Account))),
                    ("only-acme".to_owned(), "only-none".to_owned()),
                ],
                Kind::Id(object) => vec![(world.id(object).to_owned(), absent(world.id(object)))],
                Kind::Asset => vec![("ONLY_ACME".to_owned(), "ONLY_NONE".to_owned())],
                // Names for new objects must not reveal the names of other tenants either.
                Kind::Code => vec![(world.id(Object::Account).to_owned(), absent(world.id(Object::Account)))],
                _ => continue,
            };
            for (index, (foreign, absent)) in names.into_iter().enumerate() {
                let request = |id: &str, what: &str| {
                    let body = target.with(&hole.place, &format!("\"{id}\""));
                    let body = body.replace(
                        world.id(Object::Account),
                        if id == world.id(Object::Account) { id } else { &world.others[&Object::Account] },
                    );
                    let key = format!("{what}-{index}-{}{}", target.write.path, hole.place);
                    Request::new("POST", target.write.path).by(&world.other).json(&key, body)
                };
                for (faults, more) in [
                    ("", "{"),
                    (" and an unknown field", "{\"zzz\":1,"),
                    (" and no amount", "{\"amount\":0,\"no\":1,"),
                ] {
                    // With further faults in the request, the reference must not be checked earlier
                    // or later either.
                    let request = |id: &str, what: &str| {
                        let mut request = request(id, &format!("{what}{}", faults.len()));
                        let body = String::from_utf8(request.body).unwrap();
                        request.body = body
                            .replacen("\"amount\":", "\"amount_\":", usize::from(more.contains("amount")))
                            .replacen('{', more, 1)
                            .into();
                        request
                    };
                    pairs.push(Pair {
                        rule: format!("POST {} with {foreign} at {}{faults}", target.write.path, hole.place),
                        foreign: request(&foreign, "foreign"),
                        absent: request(&absent, "absent"),
                        names: (foreign.clone(), absent.clone()),
                    });
                }
            }
        }
    }
    pairs
}

#[test]
fn another_tenants_objects_look_absent() {
    let world = World::start();
    let only = |path: &str, body: &str| Request::new("POST", path).by(&world.secret).json("only-acme", body);
    ask(world.server.port, &only("/v1/accounts", r#"{"code":"only-acme","asset":"usd"}"#));
    let asset = r#"{"code":"ONLY_ACME","exponent":2}"#;
    ask(world.server.port, &Request::new("POST", "/v1/assets").by(&world.secret).json("only-asset", asset));
    let before = world.state(&world.secret, &world.own);
    let routes = routes::described(world.server.port);
    let pairs: Vec<Pair> = pairs(&world, &routes).into_iter().chain(bodies(&world)).collect();
    for write in WRITES {
        let names = write.about.is_some()
            || Target::all(&world).iter().any(|target| {
                let objects = |kind| {
                    matches!(kind, Kind::Account | Kind::Name | Kind::Id(_) | Kind::Code | Kind::Asset)
                };
                target.write.path == write.path && target.holes().iter().any(|hole| objects(hole.field.kind))
            });
        let rule = format!("POST {} with ", write.path);
        let compared = pairs.iter().any(|pair| pair.rule.starts_with(&rule));
        assert_eq!(compared, names, "POST {}", write.path);
    }
    let different: Vec<String> = pairs.iter().filter_map(|pair| pair.difference(world.server.port)).collect();
    assert!(different.is_empty(), "{} of {}\n{}", different.len(), pairs.len(), different.join("\n"));
    assert_eq!(world.state(&world.secret, &world.own), before, "another tenant changed something");
    println!(
        "{} requests about another tenant's objects, each answered as for one that never was",
        pairs.len()
    );
}

#[test]
fn an_api_key_can_do_exactly_what_its_scopes_allow() {
    let world = World::start();
    let before = world.state(&world.secret, &world.own);
    let mut wrong = Vec::new();
    let mut tried = 0;
    for route in routes::described(world.server.port).iter().filter(|route| route.secured) {
        let needed = if is_an_operators(&route.path) {
            "admin"
        } else if route.method == "GET" {
            "read"
        } else {
            "write"
        };
        for (scope, secret) in &world.narrow {
            for target in [crate::targets::filled(route, &world), route.path.replace(['{', '}'], "")] {
                // A body that no route accepts, so that an allowed request is refused for it and
                // changes nothing.
                let asked = Request::new(&route.method, &target).by(secret);
                let asked = if route.method == "POST" { asked.json("scopes", "[]") } else { asked };
                let found = asked.send(world.server.port).unwrap().found();
                let refused = (found.status, found.error.as_str()) == (403, "forbidden");
                tried += 1;
                if refused == (*scope == needed) || found.status == 401 {
                    wrong.push(format!("{} {target} by a key for {scope}: {found:?}", route.method));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {tried}\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(world.state(&world.secret, &world.own), before);
    println!("{tried} requests by keys of one scope, each allowed or refused by it");
}
