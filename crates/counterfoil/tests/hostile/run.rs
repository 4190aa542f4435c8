//! The whole run: every bad request gets its expected answer and leaves no trace.

use crate::bad::{BadRequest, Expected, Request};
use crate::table::{WRITES, Write};
use crate::world::{World, ask, filled};
use crate::{bodies, coverage, forms, heads, queries, routes, syntax, targets};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Concurrent clients.
const CLIENTS: usize = 4;
/// Memory that the largest bodies may add: per client 48 times a body of one mebibyte, for its
/// bytes, its tree and the allocator's slack.
const LARGE_MAX_KIB: u64 = 4 * 48 * 1_024;
/// Memory that all requests together may add on top. A leak of a kilobyte per request would exceed
/// it.
const GROWTH_MAX_KIB: u64 = 16 * 1_024;
const LARGE: usize = 64 * 1_024;
const REQUESTS_MIN: usize = 10_000;

fn corpus(world: &World) -> Vec<BadRequest> {
    let described = routes::described(world.server.port);
    let complaints = coverage::complaints(&described);
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
    let mut bad = Vec::new();
    bodies::make(world, &mut bad);
    syntax::make(world, &mut bad);
    forms::make(world, &mut bad);
    heads::make(world, &described, &mut bad);
    targets::make(world, &described, &mut bad);
    queries::make(world, &described, &mut bad);
    bad
}

/// Sends all requests concurrently and collects the wrong answers.
fn complaints(world: &World, bad: &[BadRequest]) -> Vec<String> {
    let (next, port) = (AtomicUsize::new(0), world.server.port);
    std::thread::scope(|scope| {
        let client = || {
            let mine = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
            mine.map_while(|index| bad.get(index)).filter_map(|one| one.complaint(port)).collect::<Vec<_>>()
        };
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    })
}

/// The keys of the bad requests, where one could have been stored.
fn keys(bad: &[BadRequest]) -> BTreeSet<String> {
    let headers = bad.iter().flat_map(|one| &one.request.headers);
    let named = headers.filter(|(name, _)| name.eq_ignore_ascii_case("Idempotency-Key"));
    named
        .filter_map(|(_, value)| String::from_utf8(value.clone()).ok())
        .filter(|key| key.starts_with("hostile-"))
        .collect()
}

/// A good request of a route, with its own object if the path names one.
fn good(world: &World, write: &Write, key: &str, number: usize) -> Request {
    let number = number.to_string();
    let fill = |text: &str| filled(text, &world.own, &number);
    let path = write.about.map_or(write.path.to_owned(), |(_, makes, body)| {
        let made = Request::new("POST", makes).by(&world.secret).json(&format!("make-{number}"), fill(body));
        write.path.replace("{id}", ask(world.server.port, &made)["id"].as_str().unwrap())
    });
    Request::new("POST", &path).by(&world.secret).json(key, fill(write.good))
}

/// Every key is still free: it has no record, and a good request under it is executed.
fn check_free(world: &World, keys: &BTreeSet<String>) {
    for (number, key) in keys.iter().enumerate() {
        let record = Request::new("GET", &format!("/v1/idempotency-keys/{key}")).by(&world.secret);
        assert_eq!(record.send(world.server.port).unwrap().status, 404, "{key} has a record");
        let route = key.split('-').nth(1).and_then(|route| route.parse::<usize>().ok());
        let Some(write) = route.and_then(|route| WRITES.get(route)) else { continue };
        let request = good(world, write, key, number);
        let answer = request.send(world.server.port).unwrap();
        let shown = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(
            (answer.status, answer.header("idempotent-replayed")),
            (write.status, None),
            "{key}: {shown}"
        );
        same_as_a_form(world, &request, &answer.body);
    }
}

/// The equivalent form counts as the same request and gets the stored answer.
fn same_as_a_form(world: &World, request: &Request, stored: &[u8]) {
    let body = serde_json::from_slice(&request.body).unwrap();
    let pairs = forms::pairs(&body);
    let form = forms::encoded(pairs.iter().map(|(name, text, _)| (name.as_str(), text.as_str())));
    let again = request.clone().instead("Content-Type", "application/x-www-form-urlencoded").body(form);
    let answer = again.send(world.server.port).unwrap();
    assert_eq!(
        answer.header("idempotent-replayed"),
        Some("true"),
        "{}",
        String::from_utf8_lossy(&answer.body)
    );
    assert_eq!(answer.body, stored);
}

/// Checks that the comparison notices differences.
fn notices_what_differs(world: &World, one: &BadRequest) {
    let port = world.server.port;
    assert_eq!(one.complaint(port), None);
    let others = [
        Expected { status: 418, ..one.expected.clone() },
        Expected { error: "other".to_owned(), ..one.expected.clone() },
        Expected { pointers: Some(vec!["/other".to_owned()]), ..one.expected.clone() },
        Expected { allow: Some(Vec::new()), ..one.expected.clone() },
    ];
    for expected in others {
        assert!(BadRequest { expected, ..one.clone() }.complaint(port).is_some());
    }
}

#[test]
fn every_bad_request_gets_its_exact_answer_and_leaves_no_trace() {
    let world = World::start();
    let bad = corpus(&world);
    assert!(bad.len() >= REQUESTS_MIN, "only {} requests", bad.len());
    notices_what_differs(&world, &bad[0]);
    let before = world.states();
    let idle = world.memory_peak_kib();
    let large: Vec<BadRequest> = bad.iter().filter(|one| one.request.body.len() > LARGE).cloned().collect();
    let mut wrong = complaints(&world, &large);
    let warm = world.memory_peak_kib();
    let begun = Instant::now();
    wrong.extend(complaints(&world, &bad));
    let took = begun.elapsed();
    let (large, growth) = (warm.saturating_sub(idle), world.memory_peak_kib().saturating_sub(warm));
    let shown = wrong.iter().take(40).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(wrong.is_empty(), "{} of {} requests\n{shown}", wrong.len(), bad.len());
    assert_eq!(world.states(), before, "something is left of the bad requests");
    let keys = keys(&bad);
    check_free(&world, &keys);
    assert!(large <= LARGE_MAX_KIB, "large bodies took {large} KiB");
    assert!(growth <= GROWTH_MAX_KIB, "the server's memory grew by {growth} KiB");
    let mut codes: BTreeMap<String, usize> = BTreeMap::new();
    for one in &bad {
        *codes.entry(format!("{} {}", one.expected.status, one.expected.error)).or_default() += 1;
    }
    let (requests, keys) = (bad.len(), keys.len());
    println!("{requests} requests in {took:.1?}: 0 × 5xx, 0 differing, {keys} keys still free");
    println!("memory: {idle} KiB idle, {large} KiB more for the largest bodies, {growth} KiB more for all");
    for (code, count) in codes {
        println!("{count:>8} × {code}");
    }
}
