//! The clock: moved wall clocks, restarts and reboots.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::types::time::Time;
use counterfoil_store::Store;
use counterfoil_store_embedded::{EmbeddedStore, Options, TimeSource};
use std::path::Path;
use std::sync::{Arc, Mutex};
use support::one_charge;

const HOUR: i64 = 3_600_000;
const NOON: i64 = 1_760_000_000_000;

/// A machine whose clocks a test sets.
#[derive(Clone)]
struct Machine(Arc<Mutex<Clocks>>);

struct Clocks {
    wall: i64,
    boottime: i64,
    boot: Option<String>,
}

impl TimeSource for Machine {
    fn wall_ms(&self) -> i64 {
        self.0.lock().unwrap().wall
    }
    fn boottime_ms(&self) -> i64 {
        self.0.lock().unwrap().boottime
    }
    fn boot_id(&self) -> Option<String> {
        self.0.lock().unwrap().boot.clone()
    }
}

impl Machine {
    fn new() -> Machine {
        let boot = Some("first".to_owned());
        Machine(Arc::new(Mutex::new(Clocks { wall: NOON, boottime: 5_000, boot })))
    }

    fn open(&self, dir: &Path) -> EmbeddedStore {
        EmbeddedStore::open(dir, Options { time: Arc::new(self.clone()), ..Options::default() }).unwrap()
    }

    fn pass(&self, ms: i64) {
        let mut clocks = self.0.lock().unwrap();
        clocks.wall += ms;
        clocks.boottime += ms;
    }

    fn move_wall(&self, ms: i64) {
        self.0.lock().unwrap().wall += ms;
    }

    fn reboot(&self, boot: Option<&str>) {
        let mut clocks = self.0.lock().unwrap();
        clocks.boottime = 100;
        clocks.boot = boot.map(str::to_owned);
    }
}

fn at(ms: i64) -> Time {
    Time::from_ms(NOON + ms)
}

#[test]
fn a_moved_wall_clock_moves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let machine = Machine::new();
    let store = machine.open(dir.path());
    assert_eq!(store.now(), at(0));
    for moved in [30 * HOUR, -60 * HOUR, 30 * HOUR] {
        machine.move_wall(moved);
        machine.pass(10);
    }
    assert_eq!(store.now(), at(30));
}

#[test]
fn a_restart_goes_on_by_the_boot_clock_whatever_the_wall_clock_says() {
    for moved in [30 * HOUR, -30 * HOUR] {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::new();
        drop(machine.open(dir.path()));
        machine.pass(HOUR);
        machine.move_wall(moved);
        let store = machine.open(dir.path());
        assert_eq!(store.now(), at(HOUR), "moved by {moved}");
        drop(store);
        machine.pass(5);
        assert_eq!(machine.open(dir.path()).now(), at(HOUR + 5), "moved by {moved}, again");
    }
}

#[tokio::test]
async fn after_a_reboot_the_wall_clock_counts_unless_it_is_behind_the_last_commit() {
    for (moved, expected) in [(2 * HOUR, 3 * HOUR), (-30 * HOUR, HOUR)] {
        for boot in [Some("second"), None] {
            let dir = tempfile::tempdir().unwrap();
            let machine = Machine::new();
            let store = machine.open(dir.path());
            machine.pass(HOUR);
            assert_eq!(store.commit(one_charge(&store, 1)).await.unwrap().at, at(HOUR));
            drop(store);
            machine.move_wall(moved);
            machine.reboot(boot);
            let store = machine.open(dir.path());
            assert_eq!(store.now(), at(expected), "moved by {moved}, boot {boot:?}");
            machine.pass(7);
            assert_eq!(store.now(), at(expected + 7));
        }
    }
}

#[test]
fn a_boot_clock_behind_its_past_counts_as_another_boot() {
    let dir = tempfile::tempdir().unwrap();
    let machine = Machine::new();
    drop(machine.open(dir.path()));
    machine.move_wall(HOUR);
    machine.reboot(Some("first"));
    assert_eq!(machine.open(dir.path()).now(), at(HOUR));
}

#[test]
fn time_stands_still_rather_than_going_back() {
    let dir = tempfile::tempdir().unwrap();
    let machine = Machine::new();
    let store = machine.open(dir.path());
    machine.pass(1_000);
    assert_eq!(store.now(), at(1_000));
    machine.pass(-900);
    assert_eq!(store.now(), at(1_000));
    machine.pass(901);
    assert_eq!(store.now(), at(1_001));
}

#[test]
fn the_kernels_clocks_advance() {
    let dir = tempfile::tempdir().unwrap();
    let store = support::open(dir.path());
    let first = store.now();
    assert!(first > at(0), "{first:?}");
    while store.now() == first {
        std::thread::yield_now();
    }
    assert!(store.now() > first);
}
