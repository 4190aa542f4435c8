//! Bad queries: limits and cursors out of bounds, unknown names, malformed escapes.

use crate::bad::{BadRequest, Expected, Request};
use crate::coverage::is_an_operators;
use crate::coverage::object_of;
use crate::routes::Route;
use crate::table::WRITES;
use crate::targets;
use crate::world::World;

/// Queries that no route accepts. An empty name is a name.
const UNKNOWN: [&str; 20] = [
    "expand=data",
    "ending_before=x",
    "Limit=1",
    "LIMIT=1",
    "limt=1",
    "offset=0",
    "page=1",
    "cursor=x",
    "startingAfter=x",
    "a",
    "a=",
    "=",
    "=1",
    "[]=1",
    "limit[]=1",
    "limit[gt]=1",
    "starting_after[0]=x",
    "api_key=x",
    "a=1&b=2",
    "%00=1",
];
const ESCAPES: [&str; 8] = ["%", "%4", "%zz", "%ff", "a=%", "a=%zz", "a=%ff", "a=%c0%af"];
const LIMITS: [&str; 22] = [
    "",
    "0",
    "-0",
    "-1",
    "101",
    "1000",
    "%2B1",
    "+1",
    "1.0",
    "1e1",
    "0x10",
    "1_0",
    "abc",
    "NaN",
    "null",
    "%20",
    "1%20",
    "%00",
    "1%00",
    "99999999999999999999",
    "%D9%A1",
    "1,2",
];
const TIMES: [&str; 20] = [
    "",
    "-1",
    "%2B1",
    "1.0",
    "1e3",
    "now",
    "null",
    "18446744073709551616",
    "2026-01-31",
    "2026-01-31T12:00:00",
    "2026-13-01T00:00:00Z",
    "2026-02-30T00:00:00Z",
    "2026-01-31T25:00:00Z",
    "2026-01-31%2012:00:00Z",
    "%00",
    "0x10",
    "%D9%A1",
    "Z",
    "2026-01-31T12:00:00Zx",
    "1%202",
];

pub(crate) fn make(world: &World, routes: &[Route], bad: &mut Vec<BadRequest>) {
    // A query is not part of the body, so the error points to the whole request.
    let top = |count: usize| Expected::invalid(&vec![""; count]);
    for route in routes.iter().filter(|route| route.secured) {
        let takes = |name: &str| route.query.iter().any(|known| known == name);
        if route.method == "POST" && is_an_operators(&route.path) {
            continue;
        }
        let path = targets::filled(route, world);
        let mut push = |query: &str, count| bad.push(ask(route, &path, query, world, top(count)));
        for query in UNKNOWN {
            push(query, query.split('&').count());
        }
        for query in ESCAPES {
            push(query, 1);
            push(&format!("limit=1&{query}"), 1);
        }
        push(&(0..40).map(|n| format!("n{n}=1")).collect::<Vec<_>>().join("&"), 32);
        let second = if takes("limit") { 1 } else { 2 };
        push("limit=1&unknown=1", second);
        for (name, values) in [("limit", &LIMITS[..]), ("at", &TIMES)] {
            for value in values {
                // Other routes refuse the name, regardless of the value.
                push(&format!("{name}={value}"), 1);
            }
            push(&format!("{name}=1&{name}=1"), 1);
        }
        for cursor in cursors(route, world) {
            push(&format!("starting_after={cursor}"), 1);
        }
        push("starting_after=%zz", 1);
    }
}

/// Invalid cursors of this list.
fn cursors(route: &Route, world: &World) -> Vec<String> {
    let mut cursors: Vec<String> =
        ["", "x", "%00", "%2e%2e", "0", "-1", "null", "a", "e", "en_", "%D9%A1"].map(str::to_owned).to_vec();
    cursors.extend(world.own.values().cloned());
    cursors.extend(world.others.values().cloned());
    // The tenant's own objects are valid cursors of its lists.
    let own = object_of(&format!("{}/{{id}}", route.path)).map(|object| world.id(object).to_owned());
    cursors.retain(|cursor| Some(cursor) != own.as_ref());
    cursors
}

fn ask(route: &Route, path: &str, query: &str, world: &World, expected: Expected) -> BadRequest {
    let request = Request::new(&route.method, &format!("{path}?{query}")).by(&world.secret);
    let write = WRITES.iter().find(|write| route.method == "POST" && write.path == route.path);
    let request = match write {
        Some(write) => request.json(&write.key("query"), world.filled(write.good)),
        None => request,
    };
    BadRequest::new(format!("{} {}?{query}", route.method, route.path), request, expected)
}
