//! Timelines: the audit records of a payment and their order.

use counterfoil_core::audit::{AuditKind, AuditRecord};
use counterfoil_core::types::id::{SubjectId, TenantId};
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_store::{ReadError, Row, Scan, Store};

/// All audit records of a payment, which may fill several pages.
pub(super) async fn of<S: Store>(
    store: &S,
    tenant: TenantId,
    subject: SubjectId,
) -> Result<Vec<AuditRecord>, ReadError> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let before = all.len();
        let page = store.scan(Scan::Timeline { tenant, subject, after, limit: SCAN_MAX }).await?;
        let records =
            page.into_iter().filter_map(|row| if let Row::Audit(record) = row { Some(record) } else { None });
        all.extend(records);
        if all.len().saturating_sub(before) < SCAN_MAX {
            return Ok(all);
        }
        after = all.last().map(|record: &AuditRecord| record.id);
    }
}

/// The disorder in the timeline of a payment that is still being made (`open`) or has reached
/// `status`.
pub(super) fn disorder(records: &[AuditRecord], open: bool, status: &str) -> Option<String> {
    let begins = records.first().is_some_and(|first| first.kind == AuditKind::Claimed);
    // Records after the settlement belong to concurrent operations, with separate claims.
    let end = records.iter().position(|record| record.kind == AuditKind::Settled);
    // Refused requests have their own claims as well.
    let making = records.iter().take(end.map_or(records.len(), |at| at.saturating_add(1)));
    let fences: Vec<u64> =
        making.filter(|record| record.kind != AuditKind::Refused).map(|record| record.fence).collect();
    let falls = fences.iter().zip(fences.iter().skip(1)).any(|(earlier, later)| later < earlier);
    if !begins {
        Some("has no beginning".to_owned())
    } else if falls {
        Some("has a fence that falls".to_owned())
    } else if !open && end.is_none() {
        // An open payment may have been settled between the two reads.
        Some(format!("is {status} and was never settled"))
    } else {
        None
    }
}
