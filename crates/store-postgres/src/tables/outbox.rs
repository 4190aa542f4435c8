//! Work to be done, and how it is counted.

use super::Kind::{Bool, Bytes, Int, Text};
use super::{Batch, Damage, Line, Stored, Table, fixed, moves};
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::outbox::{Flow, History, Outbox, ParkReason, Payment, Saga};
use counterfoil_core::saga::progress::{Direction, SagaProgress};
use counterfoil_core::types::id::{ChargeId, HoldId, PayoutId, SubjectId, TenantId};
use counterfoil_core::types::time::{Span, Time};
use counterfoil_store::Tally;
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

    fn take(line: &mut Line<'_>) -> Result<Outbox, Damage> {
        Ok(Outbox {
            tenant: TenantId::from_i64(line.int()?),
            id: SubjectId::from_i64(line.int()?),
            payment: take_payment(line)?,
            saga: Saga {
                flow: line.word(Flow::parse)?,
                version: line.number()?,
                progress: SagaProgress { step: line.number()?, way: line.word(Direction::parse)? },
            },
            hold: line.raw::<Option<i64>>()?.map(HoldId::from_i64),
            claim: ClaimId::from_digest(line.digest()?),
            provider: line.provider()?,
            due_at: line.time()?,
            created_at: line.time()?,
            history: History {
                generation: line.number()?,
                idle_calls: line.number()?,
                unknown: line.raw()?,
                server_errors: line.number()?,
                first_sent_at: line.time()?,
                last_sent_at: line.time()?,
            },
            parked: line.word_if(ParkReason::parse)?,
            revision: line.number()?,
        })
    }
}

fn take_payment(line: &mut Line<'_>) -> Result<Payment, Damage> {
    match (line.raw::<Option<i64>>()?, line.raw::<Option<i64>>()?) {
        (Some(charge), None) => Ok(Payment::Charge(ChargeId::from_i64(charge))),
        (None, Some(payout)) => Ok(Payment::Payout(PayoutId::from_i64(payout))),
        (Some(_), Some(_)) | (None, None) => Err(line.damage("work is for a charge or for a payout")),
    }
}

/// How late work must be to count as stuck.
const STUCK_AFTER: Span = Span::from_ms(60_000);

/// Answered from the two indexes.
pub(crate) const TALLY: &str = "SELECT (SELECT count(*) FROM outbox WHERE parked IS NULL), \
    (SELECT count(*) FROM outbox WHERE parked IS NOT NULL), \
    (SELECT count(*) FROM outbox WHERE parked IS NULL AND due_at < $1), \
    (SELECT min(due_at) FROM outbox WHERE parked IS NULL)";

/// What due before this instant counts as stuck.
pub(crate) fn stuck_before(now: Time) -> i64 {
    now.minus(STUCK_AFTER).ms()
}

pub(crate) fn tally(row: &Row, now: Time) -> Result<Tally, Damage> {
    let mut line = Line::new(row, "outbox");
    Ok(Tally {
        pending: line.number()?,
        parked: line.number()?,
        stuck: line.number()?,
        lag_ms: line.time_if()?.map_or(0, |due| now.since(due).ms()),
    })
}
