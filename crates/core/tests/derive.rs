//! Derived keys: their ingredients, and the rule that importers on both sides of a bucket's edge
//! end at one key.

#![allow(clippy::unwrap_used, reason = "a failed setup step must stop the test")]

use counterfoil_core::idempotency::derive::{
    BadStable, Bucket, STABLE_FIELDS_MAX, Search, Stable, Step, Underivable, Width,
};
use counterfoil_core::idempotency::key::IdempotencyKey;
use counterfoil_core::types::json::{Json, Object};
use counterfoil_core::types::time::{Span, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashSet};

const DAY: Bucket = Bucket::Number(20_000);

fn object(text: &str) -> Object {
    match Json::parse(text.as_bytes()).unwrap() {
        Json::Object(object) => object,
        other => panic!("{other:?} is no object"),
    }
}

fn key(route: &str, fields: &[&str], command: &str, bucket: Bucket) -> String {
    let stable = Stable::declare(route, fields.iter().copied()).unwrap();
    stable.identify(&object(command)).unwrap().key(bucket)
}

#[test]
fn unsuitable_stable_fields_are_refused() {
    let declare = |fields: &[&str]| Stable::declare("charges", fields.iter().copied()).unwrap_err();
    assert_eq!(declare(&[]), BadStable::None);
    assert_eq!(declare(&["a"; STABLE_FIELDS_MAX + 1]), BadStable::TooMany);
    for empty in ["", ".", "a.", ".a", "a..b"] {
        assert_eq!(declare(&["order_id", empty]), BadStable::EmptyName, "{empty:?}");
    }
    assert_eq!(declare(&["b", "a", "b"]), BadStable::Twice("b".into()));
    for amount in ["amount", "wallet.amount"] {
        assert_eq!(declare(&["order_id", amount]), BadStable::Amount(amount.into()));
    }
    let message = declare(&["amount"]).to_string();
    assert!(message.contains("belongs to the fingerprint") && message.contains("leave it out"), "{message}");
}

#[test]
fn the_most_stable_fields_are_declared_in_sorted_order() {
    let mut names: Vec<String> = (0..STABLE_FIELDS_MAX).map(|number| format!("f{number}")).collect();
    let stable = Stable::declare("charges", names.iter().rev().map(String::as_str)).unwrap();
    names.sort();
    assert_eq!(stable.fields().collect::<Vec<_>>(), names);
}

#[test]
fn commands_without_stable_values_have_no_key() {
    let stable = Stable::declare("charges", ["order.id"]).unwrap();
    let refused = |command: &str| stable.identify(&object(command)).unwrap_err();
    let field = || "order.id".to_owned();
    for absent in
        [r"{}", r#"{"order":7}"#, r#"{"order":{}}"#, r#"{"order":{"id":null}}"#, r#"{"order.id":1}"#]
    {
        assert_eq!(refused(absent), Underivable::Absent(field()), "{absent}");
    }
    assert_eq!(refused(r#"{"order":{"id":""}}"#), Underivable::Empty(field()));
    for deep in [r#"{"order":{"id":[]}}"#, r#"{"order":{"id":{"x":1}}}"#] {
        assert_eq!(refused(deep), Underivable::NotScalar(field()), "{deep}");
    }
    assert!(refused("{}").to_string().contains("`order.id` is missing"));
}

/// Other releases derive the same keys: a change here executes old commands again.
#[test]
fn golden_keys() {
    let command = r#"{"order_id":"o-1","customer":42,"amount":1250,"new":true}"#;
    for (route, fields, bucket, expected) in [
        (
            "charges",
            &["order_id"][..],
            Bucket::Forever,
            "dk_e6schwvktj33yp086ka8tbvvqkm4r9qn073vw1404jkm4em5ssbg",
        ),
        ("charges", &["order_id"], DAY, "dk_h9vx48vwg0534wgjf8w9pss3jwsnrh3hcf2zr5atvf8mwz4fhfqg"),
        (
            "charges",
            &["order_id", "customer", "new"],
            DAY,
            "dk_rg6waftb5m6kwsbpndqrmdjbnh4cfabjsq15nq4nah31mf2btsy0",
        ),
        (
            "refunds",
            &["order_id"],
            Bucket::Number(-1),
            "dk_vrh5hryb4vaxwnv7ykdvw5f5sbg5e1m5qych0z26bcwrzq2zt05g",
        ),
    ] {
        assert_eq!(key(route, fields, command, bucket), expected);
    }
}

#[test]
fn spellings_of_one_command_have_one_key() {
    let first = key("charges", &["order_id", "n"], r#"{"order_id":"o-1","n":10,"amount":1}"#, DAY);
    for (fields, command) in [
        (["n", "order_id"], r#"{"n":10,"order_id":"o-1","amount":1}"#),
        (["order_id", "n"], r#"{"order_id":"\u006f-1","n":1e1,"amount":2,"currency":"EUR"}"#),
        (["order_id", "n"], r#"{"order_id":"o-1","n":10.00}"#),
    ] {
        assert_eq!(key("charges", &fields, command, DAY), first, "{command}");
    }
}

#[test]
fn different_commands_have_different_keys() {
    let one = |route: &str, fields: &[&str], command: &str, bucket| key(route, fields, command, bucket);
    let number = |text: &str| one("charges", &["id"], &format!(r#"{{"id":{text}}}"#), DAY);
    let keys = [
        number("1"),
        number("2"),
        number("\"1\""),
        number("true"),
        number("9007199254740992"),
        number("9007199254740993"),
        one("charges", &["id"], r#"{"id":1}"#, Bucket::Forever),
        one("charges", &["id"], r#"{"id":1}"#, Bucket::Number(0)),
        one("charges", &["id"], r#"{"id":1}"#, Bucket::Number(20_001)),
        one("transfers", &["id"], r#"{"id":1}"#, DAY),
        one("charges", &["no"], r#"{"no":1}"#, DAY),
        one("charges", &["id", "no"], r#"{"id":1,"no":1}"#, DAY),
        one("charges", &["a.id"], r#"{"a":{"id":1}}"#, DAY),
    ];
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
}

#[test]
fn a_bucket_begins_with_its_edge_and_ends_before_the_next() {
    let day = Width::new(Span::from_ms(86_400_000)).unwrap();
    for (ms, number) in
        [(0, 0), (86_399_999, 0), (86_400_000, 1), (-1, -1), (-86_400_000, -1), (-86_400_001, -2)]
    {
        assert_eq!(day.number(Time::from_ms(ms)), number, "{ms}");
    }
    assert_eq!(Width::new(Span::ZERO), None);
    assert_eq!(Width::new(Span::from_ms(u64::MAX)), None);
}

proptest! {
    #[test]
    fn every_derived_key_is_a_valid_key(text in ".+", bucket: i64) {
        let mut command = Object::new();
        command.insert("id".into(), Json::String(text)).unwrap();
        let identity = Stable::declare("charges", ["id"]).unwrap().identify(&command).unwrap();
        let key = identity.key(Bucket::Number(bucket));
        prop_assert_eq!(key.len(), 55);
        let parsed = IdempotencyKey::parse(key.as_bytes()).unwrap();
        prop_assert_eq!(parsed.as_str(), &key);
    }
}

/// The use of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Use {
    Closing,
    Command,
}

/// The state of all importers of one command and of their server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    keys: BTreeMap<Bucket, Use>,
    importers: Vec<Importer>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Importer {
    search: Search,
    /// The bucket of the importer's answer.
    ended: Option<Bucket>,
    /// Abandoned requests in flight.
    late: Vec<Step>,
}

impl World {
    fn new(buckets: &[i64]) -> World {
        let at = |number: &i64| Importer {
            search: Search::from(Bucket::Number(*number)),
            ended: None,
            late: vec![],
        };
        World { keys: BTreeMap::new(), importers: buckets.iter().map(at).collect() }
    }

    /// A request arrives. Returns the use of the key. `closes` is off for the mutant that looks
    /// without closing.
    fn arrive(&mut self, step: Step, closes: bool) -> Use {
        match step {
            Step::Close(bucket) if !closes => self.keys.get(&bucket).copied().unwrap_or(Use::Closing),
            Step::Close(bucket) => *self.keys.entry(bucket).or_insert(Use::Closing),
            Step::Send(bucket) => *self.keys.entry(bucket).or_insert(Use::Command),
        }
    }

    /// Every world after one event: a request is answered, is abandoned, or arrives late.
    fn after_one(&self, closes: bool) -> Vec<World> {
        let mut worlds = Vec::new();
        for (index, importer) in self.importers.iter().enumerate() {
            for at in 0..importer.late.len() {
                let mut next = self.clone();
                let step = next.importers[index].late.remove(at);
                next.arrive(step, closes);
                worlds.push(next);
            }
            if importer.ended.is_some() {
                continue;
            }
            let step = importer.search.step();
            if importer.late.len() < 2 {
                let mut next = self.clone();
                next.importers[index].late.push(step);
                worlds.push(next);
            }
            let mut next = self.clone();
            let found = next.arrive(step, closes);
            let moved = match (step, found) {
                (Step::Send(bucket), Use::Command) => {
                    next.importers[index].ended = Some(bucket);
                    Some(importer.search)
                }
                (Step::Close(_), Use::Closing) => importer.search.closed(),
                (Step::Close(_), Use::Command) | (Step::Send(_), Use::Closing) => {
                    importer.search.used_by_another()
                }
            };
            // Contents never differ here, so no search between neighbouring buckets may fail.
            next.importers[index].search = moved.unwrap_or_else(|| panic!("lost: {self:?}"));
            worlds.push(next);
        }
        worlds
    }

    fn executed(&self) -> usize {
        self.keys.values().filter(|found| **found == Use::Command).count()
    }
}

/// Walks all reachable worlds. Returns the largest number of executions and the number of worlds.
fn walk(buckets: &[i64], closes: bool) -> (usize, usize) {
    let (mut open, mut seen) = (vec![World::new(buckets)], HashSet::new());
    let mut most = 0;
    while let Some(world) = open.pop() {
        if !seen.insert(world.clone()) {
            continue;
        }
        most = most.max(world.executed());
        open.extend(world.after_one(closes));
    }
    (most, seen.len())
}

#[test]
fn importers_in_neighbouring_buckets_execute_once_in_every_interleaving() {
    for buckets in [&[0, 0][..], &[0, 1], &[0, 0, 1], &[0, 1, 1]] {
        let (most, worlds) = walk(buckets, true);
        assert_eq!(most, 1, "{buckets:?}");
        assert!(worlds > 100, "{buckets:?} has {worlds} worlds");
    }
}

#[test]
fn looking_without_closing_would_execute_twice() {
    assert_eq!(walk(&[0, 1], false).0, 2);
}

#[test]
fn two_buckets_later_it_is_another_command() {
    let mut world = World::new(&[0]);
    let search = |world: &mut World, own: i64| {
        world.importers = World::new(&[own]).importers;
        while world.importers[0].ended.is_none() {
            *world = world.after_one(true).pop().unwrap();
        }
        world.importers[0].ended.unwrap()
    };
    assert_eq!([0, 0, 1, -1].map(|own| search(&mut world, own)), [Bucket::Number(0); 4]);
    assert_eq!(world.executed(), 1);
    assert_eq!(search(&mut world, 2), Bucket::Number(2));
    assert_eq!(world.executed(), 2);
}

#[test]
fn without_buckets_there_is_one_key_and_no_search() {
    let search = Search::from(Bucket::Forever);
    assert_eq!(search.step(), Step::Send(Bucket::Forever));
    assert_eq!((search.closed(), search.used_by_another()), (None, None));
}

#[test]
fn a_command_with_other_contents_is_never_sent_under_a_second_key() {
    // Found in the previous bucket, with other contents.
    let found = Search::from(Bucket::Number(5)).used_by_another().unwrap();
    assert_eq!((found.step(), found.used_by_another()), (Step::Send(Bucket::Number(4)), None));
    // The importer's own key is used, and not by a closing.
    let recheck = Search::from(Bucket::Number(5)).closed().unwrap().used_by_another().unwrap();
    assert_eq!((recheck.step(), recheck.used_by_another()), (Step::Close(Bucket::Number(5)), None));
}
