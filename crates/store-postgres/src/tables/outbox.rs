//! Outbox rows (work at providers) and their counts.

use super::Kind::{Bool, Bytes, Int, Text};
use super::{Batch, Damage, RowReader, Stored, Table, fixed, moves};
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::outbox::{Flow, History, Outbox, ParkReason, Payment, Saga};
use counterfoil_core::saga::progress::{Direction, SagaProgress};
use counterfoil_core::types::id::{ChargeId, HoldId, PayoutId, SubjectId, TenantId};
use counterfoil_core::types::time::Time;
use counterfoil_store::{STUCK_AFTER, Tally};
use tokio_postgres::Row;

impl Stored for Outbox {
    const TABLE: Table = Table {
        name: "outbox",
        key: 2,
        columns: &[
            fixed("tenant", Int),
            fixed("id", Int),
            fixed("charge", Int),
            fixed("payout", Int),
            fixed("flow", Text),
            fixed("version", Int),
            moves("step", Int),
            moves("way", Text),
            moves("hold", Int),
            moves("claim", Bytes),
            fixed("profile", Text),
            fixed("endpoint", Text),
            moves("due_at", Int),
            moves("created_at", Int),
            moves("generation", Int),
            moves("idle_calls", Int),
            moves("unknown", Bool),
            moves("server_errors", Int),
            moves("first_sent_at", Int),
            moves("last_sent_at", Int),
            moves("parked", Text),
            moves("revision", Int),
        ],
        more: "",
    };

    fn put<'a>(&'a self, batch: &mut Batch<'a>) {
        let (saga, history) = (&self.saga, &self.history);
        batch.int(self.tenant.to_i64());
        batch.int(self.id.to_i64());
        let (charge, payout) = match self.payment {
            Payment::Charge(charge) => (Some(charge.to_i64()), None),
            Payment::Payout(payout) => (None, Some(payout.to_i64())),
        };
        batch.int(charge);
        batch.int(payout);
        batch.text(saga.flow.name());
        batch.int(i64::from(saga.version));
        batch.int(i64::from(saga.progress.step));
        batch.text(saga.progress.way.name());
        batch.int(self.hold.map(HoldId::to_i64));
        batch.bytes(self.claim.digest().as_bytes().as_slice());
        batch.text(&*self.provider.profile);
        batch.text(&*self.provider.endpoint);
        batch.int(self.due_at.ms());
        batch.int(self.created_at.ms());
        batch.int(i64::from(history.generation));
        batch.int(i64::from(history.idle_calls));
        batch.bool(history.unknown);
        batch.int(i64::from(history.server_errors));
        batch.int(history.first_sent_at.ms());
        batch.int(history.last_sent_at.ms());
        batch.text_if(self.parked.map(ParkReason::name));
        batch.number(self.revision);
    }

    fn take(reader: &mut RowReader<'_>) -> Result<Outbox, Damage> {
        Ok(Outbox {
            tenant: TenantId::from_i64(reader.int()?),
            id: SubjectId::from_i64(reader.int()?),
            payment: take_payment(reader)?,
            saga: Saga {
                flow: reader.word(Flow::parse)?,
                version: reader.number()?,
                progress: SagaProgress { step: reader.number()?, way: reader.word(Direction::parse)? },
            },
            hold: reader.raw::<Option<i64>>()?.map(HoldId::from_i64),
            claim: ClaimId::from_digest(reader.digest()?),
            provider: reader.provider()?,
            due_at: reader.time()?,
            created_at: reader.time()?,
            history: History {
                generation: reader.number()?,
                idle_calls: reader.number()?,
                unknown: reader.raw()?,
                server_errors: reader.number()?,
                first_sent_at: reader.time()?,
                last_sent_at: reader.time()?,
            },
            parked: reader.word_if(ParkReason::parse)?,
            revision: reader.number()?,
        })
    }
}

fn take_payment(reader: &mut RowReader<'_>) -> Result<Payment, Damage> {
    match (reader.raw::<Option<i64>>()?, reader.raw::<Option<i64>>()?) {
        (Some(charge), None) => Ok(Payment::Charge(ChargeId::from_i64(charge))),
        (None, Some(payout)) => Ok(Payment::Payout(PayoutId::from_i64(payout))),
        (Some(_), Some(_)) | (None, None) => Err(reader.damage("work is for a charge or for a payout")),
    }
}

/// Counts of work, answered from the partial indexes on `parked`.
pub(crate) const TALLY: &str = "SELECT (SELECT count(*) FROM outbox WHERE parked IS NULL), \
    (SELECT count(*) FROM outbox WHERE parked IS NOT NULL), \
    (SELECT count(*) FROM outbox WHERE parked IS NULL AND due_at < $1), \
    (SELECT min(due_at) FROM outbox WHERE parked IS NULL)";

/// Work due before this instant counts as stuck.
pub(crate) fn stuck_before(now: Time) -> i64 {
    now.minus(STUCK_AFTER).ms()
}

pub(crate) fn tally(row: &Row, now: Time) -> Result<Tally, Damage> {
    let mut reader = RowReader::new(row, "outbox");
    Ok(Tally {
        pending: reader.number()?,
        parked: reader.number()?,
        stuck: reader.number()?,
        lag_ms: reader.time_if()?.map_or(0, |due| now.since(due).ms()),
    })
}
