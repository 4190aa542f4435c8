//! What is measured: on which way, by how many clients, how many transfers in a request, on which accounts.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Clients that send single transfers, where targets speak of them.
pub(super) const CROWD: usize = 64;
/// Clients that send many transfers in one request.
pub(super) const BULK_CLIENTS: usize = 8;
/// Transfers in one request.
pub(super) const BATCHES: [usize; 4] = [1, 10, 100, 1_000];
/// Spreads of the one account.
pub(super) const SHARDS: [u16; 3] = [1, 16, 256];

/// How a transfer gets to the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Way {
    /// End to end: a client's request to the server's answer.
    Http,
    /// Through the engine's door, in its own process.
    Engine,
}

/// Who is debited and who is credited. The other side always has no guard, so that all of them write alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Accounts {
    /// A thousand pairs without a guard: no balance stands in the way of writes.
    Distinct,
    /// A thousand pairs, the debited ones with a floor.
    Guarded,
    /// One account without a guard is debited by all.
    Hot,
    /// One account with a floor is debited by all.
    HotDebited {
        /// Its spread.
        shards: u16,
    },
    /// One account with a floor is credited by all.
    HotCredited {
        /// Its spread.
        shards: u16,
    },
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Cell {
    pub(super) way: Way,
    pub(super) batch: usize,
    pub(super) clients: usize,
    pub(super) accounts: Accounts,
}

impl Cell {
    /// With as many clients as usual for the batch.
    pub(super) fn usual(way: Way, batch: usize, accounts: Accounts) -> Cell {
        Cell { way, batch, clients: if batch == 1 { CROWD } else { BULK_CLIENTS }, accounts }
    }
}

/// All of them. `connections`: how many clients send single transfers over HTTP, besides the usual number.
pub(super) fn cells(connections: &[usize]) -> BTreeSet<Cell> {
    let mut cells = BTreeSet::new();
    for way in [Way::Http, Way::Engine] {
        for batch in BATCHES {
            cells.extend(
                [Accounts::Distinct, Accounts::Guarded, Accounts::Hot]
                    .into_iter()
                    .chain(SHARDS.map(|shards| Accounts::HotDebited { shards }))
                    .map(|accounts| Cell::usual(way, batch, accounts)),
            );
        }
        cells.extend(SHARDS.map(|shards| Cell::usual(way, 1, Accounts::HotCredited { shards })));
    }
    for &clients in connections {
        for accounts in [Accounts::Distinct, Accounts::Guarded] {
            cells.insert(Cell { clients, ..Cell::usual(Way::Http, 1, accounts) });
        }
    }
    cells
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Http => "HTTP",
            Way::Engine => "engine",
        })
    }
}

impl fmt::Display for Accounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Accounts::Distinct => f.write_str("distinct"),
            Accounts::Guarded => f.write_str("distinct guarded"),
            Accounts::Hot => f.write_str("one, no guard"),
            Accounts::HotDebited { shards } => write!(f, "one debited, {}", spread(*shards)),
            Accounts::HotCredited { shards } => write!(f, "one credited, {}", spread(*shards)),
        }
    }
}

/// A spread in words.
pub(super) fn spread(shards: u16) -> String {
    format!("{shards} shard{}", if shards == 1 { "" } else { "s" })
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} clients, {} in a request, {}", self.way, self.clients, self.batch, self.accounts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_batch_is_measured_on_both_ways_and_on_distinct_and_hot_accounts() {
        let cells = cells(&[1, CROWD]);
        for way in [Way::Http, Way::Engine] {
            for batch in BATCHES {
                let of = |accounts| cells.contains(&Cell::usual(way, batch, accounts));
                assert!(of(Accounts::Distinct) && of(Accounts::Guarded) && of(Accounts::Hot));
                assert!(SHARDS.iter().all(|&shards| of(Accounts::HotDebited { shards })));
            }
        }
        let alone = Cell { clients: 1, ..Cell::usual(Way::Http, 1, Accounts::Guarded) };
        assert!(cells.contains(&alone));
    }
}
