//! The statement that seals a group: it writes what mostly comes together, takes positions, and keeps the group's commits.

use super::Log;
use crate::tables::{Part, Place, journal, sql};
use crate::wake;
use std::sync::LazyLock;

/// What the statement that seals a group does besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sealing {
    /// How it keeps the group's commits.
    pub(crate) log: Log,
    /// It writes these parts first.
    pub(crate) parts: &'static [Part],
    /// What is mostly empty in them is.
    pub(crate) thin: bool,
    /// It writes transactions and their entries.
    pub(crate) posts: bool,
    /// It sends words to who waits.
    pub(crate) tells: bool,
}

impl Sealing {
    pub(crate) fn all() -> impl Iterator<Item = Sealing> {
        [Log::ByGroup, Log::BySet].into_iter().flat_map(|log| {
            let parts = sql::TOGETHER.into_iter().flat_map(|parts| [(parts, false), (parts, true)]);
            parts.chain([(&[] as &[Part], false)]).flat_map(move |(parts, thin)| {
                let besides = [(false, false), (true, false), (false, true), (true, true)];
                besides.map(move |(posts, tells)| Sealing { log, parts, thin, posts, tells })
            })
        })
    }

    /// Takes positions for a group and writes its commits under them. The head's row is locked from here to the end of the
    /// transaction: position order is commit order. Entries need positions; their transactions come with them, so that the
    /// rule of their balance finds them whole. Words come last, so that one group at a time holds the locks they take: the
    /// server has room for only so many.
    pub(crate) fn sql(self) -> &'static str {
        // One of all.
        SEALS.iter().find(|(sealing, _)| *sealing == self).map_or("", |(_, sql)| sql.as_str())
    }
}

static SEALS: LazyLock<Vec<(Sealing, String)>> =
    LazyLock::new(|| Sealing::all().map(|sealing| (sealing, seal(sealing))).collect());

/// The head is taken only once all parts are written: the condition on it counts them.
///
/// Its row is there; to "insert" it is the way to change the row as it is once nobody else holds it. An `UPDATE` that had to
/// wait would find the row changed since its statement began, and prepare the whole statement a second time to look again,
/// with the head in hand that everybody waits for.
fn seal(sealing: Sealing) -> String {
    let (before, only_if, ids) = if sealing.parts.is_empty() {
        (String::new(), String::new(), 1)
    } else {
        let (done, meant, next) = sql::parts(sealing.parts, sealing.thin);
        (format!("{done}, "), format!(" WHERE {meant}"), next)
    };
    let [touched, sets, now, mut next] = [1, 2, 3, 4].map(|further| ids.saturating_add(further));
    let mut posting = String::new();
    if sealing.posts {
        let legs = next.saturating_add(Place::Transaction.table().columns.len());
        posting = format!(
            ", opened AS ({}), entered AS ({})",
            sql::insert(Place::Transaction, next),
            journal::insert_entries(legs)
        );
        next = legs.saturating_add(journal::ENTRY.len());
    }
    let telling = if sealing.tells { format!(", ({})", wake::tell(next)) } else { String::new() };
    let written = match sealing.log {
        Log::ByGroup => format!(
            "INSERT INTO commit_groups (position, at, sets, touched) \
             SELECT moved.base + ${sets}::bigint, moved.at, ${ids}::bigint[], ${touched}::bytea[] FROM moved"
        ),
        Log::BySet => format!(
            "INSERT INTO commits (position, set_id, at, touched) \
             SELECT moved.base + u.turn, u.set_id, moved.at, u.touched \
             FROM moved, (SELECT unnest(${ids}::bigint[]) AS set_id, unnest(${touched}::text[]) AS touched, \
                                 generate_series(1, ${sets}::bigint) AS turn) AS u"
        ),
    };
    format!(
        "WITH {before}moved AS ( \
            INSERT INTO head AS h (one, position, at) SELECT TRUE, ${sets}::bigint, ${now}::bigint{only_if} \
            ON CONFLICT (one) DO UPDATE SET position = h.position + excluded.position, \
                at = greatest(h.at, now_ms(), excluded.at) \
            RETURNING position - ${sets}::bigint AS base, at \
        ), written AS ({written} \
        ){posting} SELECT base, at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, \
        pg_current_xact_id()::xid::text, \
        current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on'{telling} FROM moved"
    )
}
