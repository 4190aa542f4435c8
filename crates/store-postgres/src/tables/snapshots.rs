//! Snapshots of account totals, and the cursors of feed readers.

use super::Kind::{Int, Sum, Text};
use super::{Batch, Damage, RowReader, Stored, Table, fixed, moves};
use counterfoil_core::ledger::snapshot::{Cursor, FeedReader, Snapshot};
use counterfoil_core::ledger::totals::Totals;
use counterfoil_core::types::id::{AccountId, TenantId};
use counterfoil_core::types::position::Position;

impl Stored for Snapshot {
    const TABLE: Table = Table {
        name: "snapshots",
        key: 3,
        columns: &[
            fixed("tenant", Int),
            fixed("account", Int),
            fixed("position", Int),
            moves("at", Int),
            moves("debits", Sum),
            moves("credits", Sum),
            moves("debits_pending", Sum),
            moves("credits_pending", Sum),
            moves("entries", Int),
        ],
        more: "",
    };

    fn put<'a>(&'a self, batch: &mut Batch<'a>) {
        let totals = &self.totals;
        batch.int(self.tenant.to_i64());
        batch.int(self.account.to_i64());
        batch.number(self.position.0);
        batch.int(self.at.ms());
        batch.text(totals.debits.to_string());
        batch.text(totals.credits.to_string());
        batch.text(totals.debits_pending.to_string());
        batch.text(totals.credits_pending.to_string());
        batch.number(totals.entries);
    }

    fn take(reader: &mut RowReader<'_>) -> Result<Snapshot, Damage> {
        Ok(Snapshot {
            tenant: TenantId::from_i64(reader.int()?),
            account: AccountId::from_i64(reader.int()?),
            position: Position(reader.number()?),
            at: reader.time()?,
            totals: Totals {
                debits: reader.sum()?,
                credits: reader.sum()?,
                debits_pending: reader.sum()?,
                credits_pending: reader.sum()?,
                entries: reader.number()?,
            },
        })
    }
}

impl Stored for Cursor {
    const TABLE: Table = Table {
        name: "cursors",
        key: 1,
        columns: &[fixed("reader", Text), moves("position", Int), moves("at", Int), moves("revision", Int)],
        more: "",
    };

    fn put<'a>(&'a self, batch: &mut Batch<'a>) {
        batch.text(self.reader.name());
        batch.number(self.position.0);
        batch.int(self.at.ms());
        batch.number(self.revision);
    }

    fn take(reader: &mut RowReader<'_>) -> Result<Cursor, Damage> {
        Ok(Cursor {
            reader: reader.word(FeedReader::parse)?,
            position: Position(reader.number()?),
            at: reader.time()?,
            revision: reader.number()?,
        })
    }
}
