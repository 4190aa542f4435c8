//! Cells of the measurement: route, number of clients, batch size and accounts.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Clients that send single transfers in cells with targets.
pub(super) const CROWD: usize = 64;
/// Clients that send batches.
pub(super) const BULK_CLIENTS: usize = 8;
/// Transfers per request.
pub(super) const BATCHES: [usize; 4] = [1, 10, 100, 1_000];
/// Shard counts of the shared account.
pub(super) const SHARDS: [u16; 3] = [1, 16, 256];

/// The route of a transfer into the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Route {
    /// End to end: a client's request to the server's answer.
    Http,
    /// The engine's interface, in a separate process.
    Engine,
}

/// The accounts to debit and credit. The other side is never guarded, so that all cells write
/// alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Accounts {
    /// A thousand unguarded pairs: no balance blocks a write.
    Distinct,
    /// A thousand pairs with a floor for the debited accounts.
    Guarded,
    /// All transfers debit one unguarded account.
    Hot,
    /// All transfers debit one account with a floor.
    HotDebited { shards: u16 },
    /// All transfers credit one account with a floor.
    HotCredited { shards: u16 },
}

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Cell {
    pub(super) way: Route,
    pub(super) batch: usize,
    pub(super) clients: usize,
    pub(super) accounts: Accounts,
}

impl Cell {
    /// The cell with the usual number of clients for this batch size.
    pub(super) fn usual(way: Route, batch: usize, accounts: Accounts) -> Cell {
        Cell { way, batch, clients: if batch == 1 { CROWD } else { BULK_CLIENTS }, accounts }
    }
}

/// All cells. `connections` adds numbers of clients that send single transfers over HTTP.
pub(super) fn cells(connections: &[usize]) -> BTreeSet<Cell> {
    let mut cells = BTreeSet::new();
    for way in [Route::Http, Route::Engine] {
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
            cells.insert(Cell { clients, ..Cell::usual(Route::Http, 1, accounts) });
        }
    }
    cells
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Route::Http => "HTTP",
            Route::Engine => "engine",
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

/// The number of shards as text.
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
        for way in [Route::Http, Route::Engine] {
            for batch in BATCHES {
                let of = |accounts| cells.contains(&Cell::usual(way, batch, accounts));
                assert!(of(Accounts::Distinct) && of(Accounts::Guarded) && of(Accounts::Hot));
                assert!(SHARDS.iter().all(|&shards| of(Accounts::HotDebited { shards })));
            }
        }
        let alone = Cell { clients: 1, ..Cell::usual(Route::Http, 1, Accounts::Guarded) };
        assert!(cells.contains(&alone));
    }
}
