//! Claims and audit records.

use super::Kind::{Bytes, Int, Text};
use super::{Batch, Damage, RowReader, Stored, Table, fixed, moves};
use counterfoil_core::audit::{self, AuditRecord};
use counterfoil_core::idempotency::claim::{Claim, ClaimId, ClaimState, Custody, Lease, Resource, Settled};
use counterfoil_core::idempotency::fingerprint::Fingerprint;
use counterfoil_core::idempotency::reply::{Reply, ReplyMedia};
use counterfoil_core::idempotency::window::Windows;
use counterfoil_core::types::id::{Holder, SubjectId, TenantId};
use counterfoil_core::types::time::Time;
use std::sync::Arc;

impl Stored for Claim {
    const TABLE: Table = Table {
        name: "claims",
        key: 2,
        columns: &[
            fixed("tenant", Int),
            fixed("id", Bytes),
            moves("subject", Int),
            moves("makes", Text),
            moves("fingerprint", Bytes),
            moves("request", Bytes),
            moves("created_at", Int),
            moves("fence", Int),
            moves("revision", Int),
            moves("attempts", Int),
            moves("state", Text),
            moves("holder", Int),
            moves("lease_until", Int),
            moves("lease_ceiling", Int),
            moves("not_before", Int),
            moves("replay_until", Int),
            moves("tombstone_until", Int),
            moves("sweep_at", Int),
            moves("status", Int),
            moves("media", Text),
            moves("location", Text),
            moves("body", Bytes),
        ],
        more: "",
    };

    fn put<'a>(&'a self, batch: &mut Batch<'a>) {
        let cells = Cells::of(&self.state);
        batch.int(self.tenant.to_i64());
        batch.bytes(self.id.digest().as_bytes().as_slice());
        batch.int(self.subject.to_i64());
        batch.text(self.makes.name());
        batch.bytes(self.fingerprint.digest().as_bytes().as_slice());
        batch.bytes(self.request.to_bytes().to_vec());
        batch.int(self.created_at.ms());
        batch.number(self.fence);
        batch.number(self.revision);
        batch.int(i64::from(self.attempts));
        batch.text(self.state.name());
        batch.int(cells.lease.map(|lease| lease.holder.to_i64()));
        batch.int(cells.lease.map(|lease| lease.until.ms()));
        batch.int(cells.lease.map(|lease| lease.ceiling.ms()));
        batch.int(cells.not_before.map(Time::ms));
        batch.int(cells.settled.map(|settled| settled.windows.replay_until.ms()));
        batch.int(cells.tombstone_until.map(Time::ms));
        batch.sweep_at(self);
        batch.int(cells.settled.map(|settled| i64::from(settled.reply.status)));
        batch.text_if(cells.settled.map(|settled| settled.reply.media.name()));
        batch.text_if(cells.settled.and_then(|settled| settled.reply.location.as_deref()));
        batch.bytes_if(cells.settled.map(|settled| &*settled.reply.body));
    }

    fn take(reader: &mut RowReader<'_>) -> Result<Claim, Damage> {
        Ok(Claim {
            tenant: TenantId::from_i64(reader.int()?),
            id: ClaimId::from_digest(reader.digest()?),
            subject: SubjectId::from_i64(reader.int()?),
            makes: reader.word(Resource::parse)?,
            fingerprint: Fingerprint::from_digest(reader.digest()?),
            request: reader.ulid()?,
            created_at: reader.time()?,
            fence: reader.number()?,
            revision: reader.number()?,
            attempts: reader.number()?,
            state: take_state(reader)?,
        })
    }
}

/// Columns with values in some states only.
#[derive(Default)]
struct Cells<'a> {
    lease: Option<Lease>,
    not_before: Option<Time>,
    tombstone_until: Option<Time>,
    settled: Option<&'a Settled>,
}

impl Cells<'_> {
    fn of(state: &ClaimState) -> Cells<'_> {
        match state {
            ClaimState::InFlight(lease) | ClaimState::Uncertain(Custody::Held(lease)) => {
                Cells { lease: Some(*lease), ..Cells::default() }
            }
            ClaimState::FailedRetry { not_before }
            | ClaimState::Uncertain(Custody::Waiting { not_before }) => {
                Cells { not_before: Some(*not_before), ..Cells::default() }
            }
            ClaimState::Completed(settled) | ClaimState::FailedTerminal(settled) => Cells {
                tombstone_until: Some(settled.windows.tombstone_until),
                settled: Some(settled),
                ..Cells::default()
            },
            ClaimState::Expired { tombstone_until } => {
                Cells { tombstone_until: Some(*tombstone_until), ..Cells::default() }
            }
        }
    }
}

fn take_state(reader: &mut RowReader<'_>) -> Result<ClaimState, Damage> {
    let name: &str = reader.raw()?;
    let (holder, until, ceiling) = (reader.raw::<Option<i64>>()?, reader.time_if()?, reader.time_if()?);
    let lease = match (holder, until, ceiling) {
        (Some(holder), Some(until), Some(ceiling)) => {
            Some(Lease { holder: Holder::from_i64(holder), until, ceiling })
        }
        (None, None, None) => None,
        _ => return Err(reader.damage("the lease is incomplete")),
    };
    let not_before = reader.time_if()?;
    let (replay_until, tombstone_until, _sweep_at) =
        (reader.time_if()?, reader.time_if()?, reader.time_if()?);
    let status: Option<i64> = reader.raw()?;
    let media = reader.word_if(ReplyMedia::parse)?;
    let location: Option<Arc<str>> = reader.raw::<Option<&str>>()?.map(Into::into);
    let body: Option<&[u8]> = reader.raw()?;
    let settled = || -> Option<Settled> {
        Some(Settled {
            reply: Reply {
                status: u16::try_from(status?).ok()?,
                media: media?,
                location: location.clone(),
                body: body?.to_vec().into(),
            },
            windows: Windows { replay_until: replay_until?, tombstone_until: tombstone_until? },
        })
    };
    let state = match (name, lease, not_before) {
        ("in_flight", Some(lease), _) => Some(ClaimState::InFlight(lease)),
        ("failed_retry", None, Some(not_before)) => Some(ClaimState::FailedRetry { not_before }),
        ("uncertain", Some(lease), None) => Some(ClaimState::Uncertain(Custody::Held(lease))),
        ("uncertain", None, Some(not_before)) => Some(ClaimState::Uncertain(Custody::Waiting { not_before })),
        ("completed", ..) => settled().map(ClaimState::Completed),
        ("failed_terminal", ..) => settled().map(ClaimState::FailedTerminal),
        ("expired", ..) => tombstone_until.map(|tombstone_until| ClaimState::Expired { tombstone_until }),
        _ => None,
    };
    state.ok_or_else(|| reader.damage("the state and its columns do not fit"))
}

impl Stored for AuditRecord {
    const TABLE: Table = Table {
        name: "audit_log",
        key: 3,
        columns: &[
            fixed("tenant", Int),
            fixed("subject", Int),
            fixed("id", Bytes),
            fixed("at", Int),
            fixed("fence", Int),
            fixed("kind", Text),
            fixed("detail", Text),
        ],
        more: "",
    };

    fn put<'a>(&'a self, batch: &mut Batch<'a>) {
        batch.int(self.tenant.to_i64());
        batch.int(self.subject.to_i64());
        batch.bytes(self.id.to_bytes().to_vec());
        batch.int(self.at.ms());
        batch.number(self.fence);
        batch.text(self.kind.name());
        batch.text(&self.detail);
    }

    fn take(reader: &mut RowReader<'_>) -> Result<AuditRecord, Damage> {
        Ok(AuditRecord {
            tenant: TenantId::from_i64(reader.int()?),
            subject: SubjectId::from_i64(reader.int()?),
            id: reader.ulid()?,
            at: reader.time()?,
            fence: reader.number()?,
            kind: reader.word(audit::AuditKind::parse)?,
            detail: reader.raw()?,
        })
    }
}
