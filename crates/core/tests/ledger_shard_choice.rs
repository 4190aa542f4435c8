//! The choice of a shard for a write that fits several.

use counterfoil_core::ledger::balance::{Balance, Delta};
use counterfoil_core::ledger::shard::{ShardPlan, plan};
use counterfoil_core::types::id::{AccountId, TenantId};

const NOTHING: Delta = Delta { posted: 0, outgoing: 0, incoming: 0, floor: 0, cap: 0 };

fn plain(shard: u8) -> Balance {
    let account = AccountId::from_i64(1);
    let (floor, cap) = (Some(0), Some(1_000));
    let tenant = TenantId::from_i64(2);
    Balance { tenant, account, shard, posted: 500, outgoing: 0, incoming: 0, floor, cap, revision: 1 }
}

fn posted(posted: i64) -> Delta {
    Delta { posted, ..NOTHING }
}

/// The shards of a pair differ in the requested resource and in another; only the first counts.
#[test]
fn a_shard_is_chosen_by_the_requested_resource_alone() {
    let chosen = |one: Balance, other: Balance, delta| match plan(&[other, one], delta, 9) {
        Ok(ShardPlan::Apply(parts)) => parts.iter().map(|part| part.shard).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let (release, expect) = (Delta { outgoing: -50, ..NOTHING }, Delta { incoming: -50, ..NOTHING });
    for (what, one, other, delta) in [
        ("funds", plain(0), Balance { posted: 450, outgoing: 40, ..plain(1) }, posted(-10)),
        ("funds", plain(0), Balance { posted: 450, incoming: 200, ..plain(1) }, posted(-10)),
        ("room", plain(0), Balance { posted: 550, incoming: 90, ..plain(1) }, posted(10)),
        ("room", plain(0), Balance { posted: 520, outgoing: 90, ..plain(1) }, posted(10)),
        ("holds", Balance { outgoing: 60, ..plain(0) }, Balance { outgoing: 50, ..plain(1) }, release),
        ("expected", Balance { incoming: 60, ..plain(0) }, Balance { incoming: 50, ..plain(1) }, expect),
        (
            "holds that are posted",
            Balance { outgoing: 60, posted: 60, ..plain(0) },
            Balance { outgoing: 50, ..plain(1) },
            Delta { posted: -50, ..release },
        ),
        (
            "expected that is posted",
            Balance { incoming: 60, posted: 940, ..plain(0) },
            Balance { incoming: 50, ..plain(1) },
            Delta { posted: 50, ..expect },
        ),
    ] {
        assert_eq!(chosen(one, other, delta), [0], "{what}");
        let swapped = (Balance { shard: 1, ..one }, Balance { shard: 0, ..other });
        assert_eq!(chosen(swapped.1, swapped.0, delta), [1], "{what}, in the other order");
    }
}
