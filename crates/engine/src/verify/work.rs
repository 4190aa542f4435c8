//! Work: every outbox row against its payment, and every reservation of a payment against the work
//! that will end it.

use super::report::VerifyReport;
use super::rows::Rows;
use counterfoil_core::ledger::hold::{Hold, HoldState};
use counterfoil_core::outbox::{Flow, Outbox, Payment};
use counterfoil_core::payments::charge::{Charge, ChargeOrder, ChargeStatus};
use counterfoil_core::types::id::{HoldId, TenantId};
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_core::types::reference::{ReferenceKind, References};
use counterfoil_store::{ReadError, Row, RowKey, Scan, Store};
use std::collections::HashSet;

/// Outbox rows per snapshot.
const CHUNK: usize = 128;

/// Checks all work.
pub(super) async fn check<S: Store>(
    store: &S,
    references: &References,
    report: &mut VerifyReport,
) -> Result<(), ReadError> {
    // Listed before the work: a hold that is still reserved afterwards was so all along, and its
    // work was listed.
    let reserved = reserved(store).await?;
    let (mut named, mut after) = (HashSet::new(), None);
    loop {
        let page: Vec<Outbox> = store
            .scan(Scan::Outbox { after, limit: SCAN_MAX })
            .await?
            .into_iter()
            .filter_map(|row| if let Row::Outbox(outbox) = row { Some(outbox) } else { None })
            .collect();
        let Some(last) = page.last() else { break };
        after = Some((last.tenant, last.id));
        for chunk in page.chunks(CHUNK) {
            let rows = Rows::read(store, chunk.iter().flat_map(keys).collect()).await?;
            for listed in chunk {
                let shared = listed.hold.is_some_and(|hold| !named.insert(hold));
                if let Some(outbox) = rows.outbox(listed.id) {
                    check_row(outbox, &rows, shared, references, report);
                }
            }
        }
    }
    check_reserved(store, &reserved, &named, references, report).await
}

/// Keys of the rows an outbox row is checked against.
fn keys(outbox: &Outbox) -> Vec<RowKey> {
    let tenant = outbox.tenant;
    let mut keys = vec![RowKey::Outbox(tenant, outbox.id)];
    keys.push(match outbox.payment {
        Payment::Charge(charge) => RowKey::Charge(tenant, charge),
        Payment::Payout(payout) => RowKey::Payout(tenant, payout),
    });
    if !makes_its_payment(outbox) {
        keys.push(RowKey::Operation(tenant, outbox.id.into()));
    }
    keys.extend(outbox.hold.map(|hold| RowKey::Hold(tenant, hold)));
    keys
}

fn makes_its_payment(outbox: &Outbox) -> bool {
    outbox.id == outbox.payment.subject()
}

fn check_row(outbox: &Outbox, rows: &Rows, shared: bool, references: &References, report: &mut VerifyReport) {
    let name = outbox.payment.reference(references);
    let flow = outbox.saga.flow.name();
    let (charge, payout) = match outbox.payment {
        Payment::Charge(charge) => (rows.charge(charge), None),
        Payment::Payout(payout) => (None, rows.payout(payout)),
    };
    let fits = match (charge, payout) {
        (Some(charge), _) => Some(belongs(outbox, charge)),
        // The payout's own check covers the rest.
        (None, Some(payout)) => Some(outbox.id == payout.id.into()),
        (None, None) => None,
    };
    let broken = match fits {
        None => Some(format!("{name} has work and is not there")),
        Some(fits) => (!fits).then(|| format!("{name} has a {flow} to do that does not fit it")),
    };
    report.note("work_has_payment", broken);
    // The operation's own check covers the rest.
    if !makes_its_payment(outbox) && rows.operation(outbox.id.into()).is_none() {
        report.note("operation_has_work", Some(format!("{name} has a {flow} to do without an operation")));
    }
    let wallet = charge.and_then(|charge| charge.order.wallet);
    let right = match (outbox.saga.flow, outbox.hold) {
        (Flow::Charge | Flow::Authorize | Flow::Capture | Flow::Void, None) => return,
        (Flow::Charge | Flow::Authorize | Flow::Capture | Flow::Void, Some(_))
        | (Flow::Split | Flow::Refund | Flow::Payout, None) => false,
        (Flow::Split, Some(id)) => rows.hold(id).is_some_and(|hold| {
            is_reserved(hold)
                && wallet.is_some_and(|wallet| (wallet.account, wallet.amount) == (hold.from, hold.amount))
        }),
        (Flow::Refund | Flow::Payout, Some(id)) => rows.hold(id).is_some_and(is_reserved),
    };
    let broken =
        (!right || shared).then(|| format!("{name} has a {flow} to do and its money is not reserved"));
    report.note("holds_of_payments_have_work", broken);
}

/// Whether the work is for this charge and its provider.
fn belongs(outbox: &Outbox, charge: &Charge) -> bool {
    let fits = !makes_its_payment(outbox)
        || (outbox.saga.flow == flow_of(&charge.order)
            && outbox.parked.is_some() == (charge.status == ChargeStatus::Parked));
    charge.provider == outbox.provider && fits && charge.tenant == outbox.tenant
}

/// The saga that creates a charge of that order.
const fn flow_of(order: &ChargeOrder) -> Flow {
    match (order.wallet, order.capture) {
        (Some(_), _) => Flow::Split,
        (None, true) => Flow::Charge,
        (None, false) => Flow::Authorize,
    }
}

fn is_reserved(hold: &Hold) -> bool {
    hold.is_a_payments() && hold.state == HoldState::Pending
}

/// The open holds of payments.
async fn reserved<S: Store>(store: &S) -> Result<Vec<(TenantId, HoldId)>, ReadError> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = store.scan(Scan::Holds { after, limit: SCAN_MAX }).await?;
        let last = after;
        for row in page {
            if let Row::Hold(hold) = row {
                after = Some((hold.tenant, hold.id));
                all.extend(after.filter(|_| is_reserved(&hold)));
            }
        }
        if after == last {
            return Ok(all);
        }
    }
}

/// Checks that every hold without work has ended meanwhile.
async fn check_reserved<S: Store>(
    store: &S,
    reserved: &[(TenantId, HoldId)],
    named: &HashSet<HoldId>,
    references: &References,
    report: &mut VerifyReport,
) -> Result<(), ReadError> {
    for chunk in reserved.chunks(SCAN_MAX) {
        let keys = chunk.iter().map(|(tenant, id)| RowKey::Hold(*tenant, *id));
        let rows = Rows::read(store, keys.collect()).await?;
        for (_, id) in chunk {
            let left = !named.contains(id) && rows.hold(*id).is_some_and(is_reserved);
            let name = || references.seal(ReferenceKind::Transfer, id.to_i64());
            let broken = left.then(|| format!("{} is reserved and no work will end it", name()));
            report.note("holds_of_payments_have_work", broken);
        }
    }
    Ok(())
}
