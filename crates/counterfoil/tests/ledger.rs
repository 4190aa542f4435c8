//! The ledger on the real server: a race for the rest of a balance, on every store, through
//! crashes.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use support::*;

#[test]
fn a_race_for_a_balance_survives_kill_nine() {
    let bench = Bench::new(&[]);
    let first = bench.serve();
    let client = bench.client(&first);
    ledger::open(&client);
    let answered = AtomicUsize::new(0);
    let debits = std::thread::scope(|scope| {
        let race = scope.spawn(|| {
            ledger::race(std::slice::from_ref(&client), || {
                answered.fetch_add(1, Ordering::Relaxed);
            })
        });
        // Wait for the middle of the race, before the balance is spent; the racers retry until they
        // are answered.
        until("some debits are answered", || answered.load(Ordering::Relaxed) >= 30);
        first.kill();
        let before = answered.load(Ordering::Relaxed);
        assert!(before < ledger::RACERS * ledger::DEBITS_EACH, "the race was over before the crash");
        let second = bench.serve();
        let debits = race.join().unwrap();
        ledger::check(&client, &debits);
        ledger::replay(&client, &debits);
        second.kill();
        debits
    });
    let _third = bench.serve();
    ledger::check(&client, &debits);
    ledger::replay(&client, &debits);
    bench.verified();
}

#[test]
fn a_race_through_two_servers_on_one_database_ends_at_the_floor() {
    let database = database::empty();
    let bench = Bench::at(database.url(), &[]);
    let servers = [bench.serve(), bench.serve_on(free_port())];
    let [one, other] = [bench.client(&servers[0]), bench.client(&servers[1])];
    ledger::open(&one);
    let debits = ledger::race(&[one.clone(), other.clone()], || {});
    for client in [&one, &other] {
        ledger::check(client, &debits);
        ledger::replay(client, &debits);
    }
    bench.verified();
}
