//! The statement that seals a group: writes frequent parts, takes positions, and logs the commits.

use super::sql::{self, Part};
use super::{TableId, journal};
use crate::wake;
use std::sync::LazyLock;

/// The optional parts of the sealing statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sealing {
    /// Parts that are written before positions are taken.
    pub(crate) parts: &'static [Part],
    /// Whether transactions and their entries are written.
    pub(crate) posts: bool,
    /// Whether waiting processes are notified of settled claims.
    pub(crate) notifies: bool,
}

impl Sealing {
    pub(crate) fn all() -> impl Iterator<Item = Sealing> {
        sql::COMBINED.into_iter().chain([&[] as &[Part]]).flat_map(|parts| {
            let options = [(false, false), (true, false), (false, true), (true, true)];
            options.map(|(posts, notifies)| Sealing { parts, posts, notifies })
        })
    }

    /// Takes positions for a group and logs its commits under them.
    ///
    /// The row of `head` is locked from here to the end of the transaction, so position order is
    /// commit order. Entries need positions. Headers are inserted with the entries, so that the
    /// balance rule sees whole transactions. Notifications come last, so that advisory locks are
    /// held by a single group at a time: the server's lock table is small.
    pub(crate) fn sql(self) -> &'static str {
        SEALS.iter().find(|(sealing, _)| *sealing == self).map_or("", |(_, sql)| sql.as_str())
    }
}

static SEALS: LazyLock<Vec<(Sealing, String)>> =
    LazyLock::new(|| Sealing::all().map(|sealing| (sealing, build(sealing))).collect());

/// The condition on `head` counts the rows of all parts, so `head` is only taken once all parts are
/// written.
///
/// `head` always has a row; the upsert updates the row once the lock is free. A plain `UPDATE`
/// after a wait would find a row newer than the snapshot and evaluate the whole statement again
/// (EvalPlanQual), while holding the lock of `head` and blocking all other groups.
fn build(sealing: Sealing) -> String {
    let (before, condition, ids) = if sealing.parts.is_empty() {
        (String::new(), String::new(), 1)
    } else {
        let parts = sql::combine(sealing.parts);
        (format!("{}, ", parts.ctes), format!(" WHERE {}", parts.all_written), parts.next_parameter)
    };
    let [touched, sets, now, mut next] = [1, 2, 3, 4].map(|further| ids.saturating_add(further));
    let mut posting = String::new();
    if sealing.posts {
        let legs = next.saturating_add(TableId::Transaction.table().columns.len());
        posting = format!(
            ", opened AS ({}), entered AS ({})",
            sql::insert(TableId::Transaction, next),
            journal::insert_entries(legs)
        );
        next = legs.saturating_add(journal::ENTRY.len());
    }
    let notifying = if sealing.notifies { format!(", ({})", wake::notify_sql(next)) } else { String::new() };
    format!(
        "WITH {before}moved AS ( \
            INSERT INTO head AS h (one, position, at) SELECT TRUE, ${sets}::bigint, ${now}::bigint{condition} \
            ON CONFLICT (one) DO UPDATE SET position = h.position + excluded.position, \
                at = greatest(h.at, now_ms(), excluded.at) \
            RETURNING position - ${sets}::bigint AS base, at \
        ), logged AS ( \
            INSERT INTO commit_groups (position, at, sets, touched) \
            SELECT moved.base + ${sets}::bigint, moved.at, ${ids}::bigint[], ${touched}::bytea[] FROM moved \
        ){posting} SELECT base, at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, \
        pg_current_xact_id()::xid::text, \
        current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on'{notifying} FROM moved"
    )
}
