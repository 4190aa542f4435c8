//! Dead letters of all tenants, for an operator on this machine. They are read from a server or
//! from a stopped store, and resolved through an engine.

use super::{AdminReply, DeadLetterRow, malformed};
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::idempotency::fingerprint::{self, Fingerprint};
use counterfoil_core::idempotency::key::IdempotencyKey;
use counterfoil_core::idempotency::request::Request;
use counterfoil_core::outbox::Payment;
use counterfoil_core::payments::PaymentSubject;
use counterfoil_core::types::digest::MacKey;
use counterfoil_core::types::id::{SubjectId, TenantId};
use counterfoil_core::types::json::Json;
use counterfoil_core::types::reference::{ReferenceKind, References};
use counterfoil_engine::Register;
use counterfoil_engine::service::{DeadLetter, Service, Submitted, TenantView};
use counterfoil_store::{ReadError, Row, RowKey, Scan, Store};
use counterfoil_wire::dead_letter;
use std::borrow::Cow;

/// Largest list of dead letters; more than a person works off before looking again.
const LETTERS_MAX: usize = 500;

/// A source of dead letters.
pub(super) trait DeadLetterReader {
    fn references(&self) -> Cow<'_, References>;
    fn tenants(&self) -> impl Future<Output = Result<Vec<TenantView>, ReadError>> + Send;
    fn of(
        &self,
        tenant: TenantId,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<DeadLetter>, ReadError>> + Send;
    fn one(
        &self,
        tenant: TenantId,
        id: SubjectId,
    ) -> impl Future<Output = Result<Option<DeadLetter>, ReadError>> + Send;
}

/// Reads from a running engine.
pub(super) struct EngineReader<'a>(pub(super) &'a dyn Service);

impl DeadLetterReader for EngineReader<'_> {
    fn references(&self) -> Cow<'_, References> {
        Cow::Borrowed(self.0.references())
    }

    async fn tenants(&self) -> Result<Vec<TenantView>, ReadError> {
        self.0.tenants().await
    }

    async fn of(&self, tenant: TenantId, limit: usize) -> Result<Vec<DeadLetter>, ReadError> {
        self.0.dead_letters(tenant, None, limit).await
    }

    async fn one(&self, tenant: TenantId, id: SubjectId) -> Result<Option<DeadLetter>, ReadError> {
        self.0.dead_letter(tenant, id).await
    }
}

/// Reads from a store without an engine.
pub(super) struct StoreReader<'a, S>(&'a Register<'a, S>);

impl<'a, S: Store> StoreReader<'a, S> {
    pub(super) const fn of(register: &'a Register<'a, S>) -> StoreReader<'a, S> {
        StoreReader(register)
    }

    async fn read(&self, key: RowKey) -> Result<Option<DeadLetter>, ReadError> {
        let store = self.0.store;
        let Some(Some(Row::Outbox(outbox))) = store.read(vec![key]).await?.into_iter().next() else {
            return Ok(None);
        };
        let payment = match outbox.payment {
            Payment::Charge(charge) => RowKey::Charge(outbox.tenant, charge),
            Payment::Payout(payout) => RowKey::Payout(outbox.tenant, payout),
        };
        let operation = RowKey::Operation(outbox.tenant, outbox.id.into());
        let mut rows = store.read(vec![payment, operation]).await?.into_iter();
        let subject = match (rows.next().flatten(), rows.next().flatten()) {
            (Some(Row::Charge(charge)), Some(Row::Operation(operation))) => {
                PaymentSubject::Charge(charge, Some(operation))
            }
            (Some(Row::Charge(charge)), _) => PaymentSubject::Charge(charge, None),
            (Some(Row::Payout(payout)), _) => PaymentSubject::Payout(payout),
            _ => return Ok(None),
        };
        Ok(outbox.parked.is_some().then_some(DeadLetter { outbox, subject }))
    }
}

impl<S: Store> DeadLetterReader for StoreReader<'_, S> {
    fn references(&self) -> Cow<'_, References> {
        Cow::Owned(References::new(MacKey::new(self.0.store.secret().reveal())))
    }

    async fn tenants(&self) -> Result<Vec<TenantView>, ReadError> {
        self.0.tenants().await
    }

    async fn of(&self, tenant: TenantId, limit: usize) -> Result<Vec<DeadLetter>, ReadError> {
        let rows = self.0.store.scan(Scan::ParkedOf { tenant, before: None, limit }).await?;
        let mut letters = Vec::with_capacity(rows.len());
        for row in rows {
            letters.extend(self.read(row.key()).await?);
        }
        Ok(letters)
    }

    async fn one(&self, tenant: TenantId, id: SubjectId) -> Result<Option<DeadLetter>, ReadError> {
        self.read(RowKey::Outbox(tenant, id)).await
    }
}

/// Lists the dead letters of all tenants.
pub(super) async fn list(from: &impl DeadLetterReader) -> AdminReply {
    match try_list(from).await {
        Ok(reply) => reply,
        Err(error) => AdminReply::Refused { why: error.to_string() },
    }
}

async fn try_list(from: &impl DeadLetterReader) -> Result<AdminReply, ReadError> {
    let mut letters = Vec::new();
    for (tenant, _) in from.tenants().await? {
        // One more than fits, to tell whether there are more.
        let room = LETTERS_MAX.saturating_add(1).saturating_sub(letters.len());
        if room == 0 {
            break;
        }
        let references = from.references();
        let found = from.of(tenant.id, room).await?;
        letters.extend(found.iter().map(|letter| row_of(tenant.name.as_str(), letter, &references)));
    }
    let more = letters.len() > LETTERS_MAX;
    letters.truncate(LETTERS_MAX);
    Ok(AdminReply::Letters { letters, more })
}

/// Shows a dead letter of any tenant.
pub(super) async fn show(from: &impl DeadLetterReader, id: &str) -> AdminReply {
    match find(from, id).await {
        Ok(Some((tenant, letter))) => {
            let letters = vec![row_of(tenant.0.name.as_str(), &letter, &from.references())];
            AdminReply::Letters { letters, more: false }
        }
        Ok(None) => absent(id),
        Err(error) => AdminReply::Refused { why: error.to_string() },
    }
}

async fn find(from: &impl DeadLetterReader, id: &str) -> Result<Option<(TenantView, DeadLetter)>, ReadError> {
    let Some(number) = from.references().open(ReferenceKind::DeadLetter, id) else { return Ok(None) };
    for tenant in from.tenants().await? {
        if let Some(letter) = from.one(tenant.0.id, SubjectId::from_i64(number)).await? {
            return Ok(Some((tenant, letter)));
        }
    }
    Ok(None)
}

fn row_of(tenant: &str, letter: &DeadLetter, references: &References) -> DeadLetterRow {
    let mut text = Vec::with_capacity(1_024);
    dead_letter::write(&mut text, letter, references);
    DeadLetterRow { tenant: tenant.to_owned(), letter: serde_json::from_slice(&text).unwrap_or_default() }
}

fn absent(id: &str) -> AdminReply {
    AdminReply::Refused {
        why: format!("there is no dead letter {id}; `counterfoil dead-letters list` shows all of them"),
    }
}

/// An operator's decision.
pub(super) struct Decision {
    pub(super) id: String,
    pub(super) resolution: String,
    pub(super) reason: Option<String>,
    pub(super) key: String,
}

/// Resolves a dead letter like the same request over HTTP.
pub(super) async fn resolve(service: &dyn Service, decision: Decision) -> AdminReply {
    let Decision { id, resolution, reason, key } = decision;
    let body = serde_json::json!({ "resolution": resolution, "reason": reason });
    let (Ok(body), Ok(key)) =
        (Json::parse(body.to_string().as_bytes()), IdempotencyKey::from_text(key.as_bytes()))
    else {
        return malformed();
    };
    let resolution = match dead_letter::read_resolve(&body) {
        Ok(resolution) => resolution,
        Err(flaws) => {
            let said: Vec<String> = flaws.into_iter().map(|flaw| flaw.message).collect();
            return AdminReply::Refused { why: said.join("; ") };
        }
    };
    let (tenant, letter) = match find(&EngineReader(service), &id).await {
        Ok(Some((tenant, letter))) => (tenant.0.id, letter),
        Ok(None) => return absent(&id),
        Err(error) => return AdminReply::Refused { why: error.to_string() },
    };
    let request = Request {
        tenant,
        claim: ClaimId::new(tenant, &key),
        fingerprint: Fingerprint::of(fingerprint::FingerprintInput {
            tenant,
            method: "POST",
            path: &format!("/v1/dead-letters/{id}/resolve"),
            query: &[],
            body: &body,
        }),
        id: service.request_id(),
    };
    reply_of(service.resolve(request, letter.outbox.id, resolution).await, &id)
}

fn reply_of(submitted: Submitted, id: &str) -> AdminReply {
    let why = match submitted {
        Submitted::Answer { settled, .. } => {
            let body: serde_json::Value = serde_json::from_slice(&settled.reply.body).unwrap_or_default();
            if settled.reply.status == 200 {
                return AdminReply::Resolved { resolved: body };
            }
            body.get("detail").and_then(serde_json::Value::as_str).unwrap_or("it was refused").to_owned()
        }
        Submitted::NotFound => return absent(id),
        Submitted::Invalid(flaws) => {
            flaws.into_iter().map(|flaw| flaw.message).collect::<Vec<_>>().join("; ")
        }
        Submitted::InProgress
        | Submitted::InUse
        | Submitted::Mismatch
        | Submitted::Expired { .. }
        | Submitted::Pending { .. } => {
            format!(
                "another operator is working on it; `counterfoil dead-letters show {id}` shows whether it is still there"
            )
        }
        Submitted::StoreUnavailable => {
            "the store could not be written; nothing was done, try again".to_owned()
        }
        Submitted::Draining => "the server is shutting down; try again when it is back".to_owned(),
    };
    AdminReply::Refused { why }
}
