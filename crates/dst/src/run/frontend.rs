//! The frontend of a process, as clients see it, with the planted bugs of frontends.

use super::cluster::SimEngine;
use crate::bank::Bug;
use crate::client::{ClientRequest, Response, request, request_id};
use crate::script::Ask;
use bytes::Bytes;
use counterfoil_core::idempotency::claim::{ClaimId, Settled};
use counterfoil_core::idempotency::fingerprint::Fingerprint;
use counterfoil_core::idempotency::reply::{Reply, ReplyMedia};
use counterfoil_core::idempotency::request::Request;
use counterfoil_core::idempotency::window::Windows;
use counterfoil_core::ledger::account::AccountCode;
use counterfoil_core::outbox::Payment;
use counterfoil_core::payments::ledger::AccountSelector;
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::TenantId;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_engine::service::{DeadLetter, Resolution, Service, Submitted};
use counterfoil_store::{Position, Upto};

/// The object of a read.
#[derive(Clone, Debug)]
pub(super) enum Look {
    /// A balance, by the account's code.
    Balance(String),
    /// A charge or a payout, as a tenant sees it.
    Payment { id: Payment, owner: i64, asking: i64 },
}

/// Passes a write to the engine.
pub(super) async fn submit(
    engine: &SimEngine,
    asked: ClientRequest,
    ask: Ask,
    bug: Option<Bug>,
) -> Submitted {
    let asked = twisted(asked, ask, bug);
    let submitted = match asked {
        ClientRequest::Charge(command) => engine.submit(*command).await,
        ClientRequest::Operate(command) => engine.operate(*command).await,
        ClientRequest::Payout(command) => engine.pay_out(*command).await,
        ClientRequest::Ledger(request, command) => engine.execute(request, *command).await,
        ClientRequest::Bulk(request, items) => engine.bulk(request, items).await,
    };
    distorted(submitted, engine.now(), bug).await
}

pub(super) async fn look(engine: &SimEngine, look: Look, bug: Option<Bug>) -> Response {
    match look {
        Look::Balance(code) => {
            let Ok(code) = AccountCode::parse(&code) else { return Response::Unreadable };
            let Ok(Some(account)) = engine.account(TenantId::from_i64(1), AccountSelector::Code(code)).await
            else {
                return Response::Unreadable;
            };
            let id = account.id;
            let upto = if bug == Some(Bug::BalanceOld) { Upto::Position(Position(14)) } else { Upto::Now };
            match engine.balance(account, upto).await {
                Ok(view) => Response::Balance(id, view),
                Err(_) => Response::Unreadable,
            }
        }
        Look::Payment { id, owner, asking } => {
            let believed = TenantId::from_i64(if bug == Some(Bug::TenantIgnored) { owner } else { asking });
            let shown = match id {
                Payment::Charge(id) => engine.charge(believed, id).await.map(|shown| shown.is_some()),
                Payment::Payout(id) => engine.payout(believed, id).await.map(|shown| shown.is_some()),
            };
            match shown {
                Ok(shown) => Response::Payment { own: owner == asking, shown },
                Err(_) => Response::Unreadable,
            }
        }
    }
}

/// Number of resolutions.
pub(super) const RESOLUTIONS: u64 = 4;

/// Resolves one of a tenant's dead letters as `decided`, under a fresh key. `None` if there is
/// none.
pub(super) async fn resolve(
    engine: &SimEngine,
    (tenant, letter): (u64, u64),
    place: usize,
    decided: impl Fn(&DeadLetter) -> Resolution,
) -> Option<Response> {
    let owner = TenantId::from_i64(i64::try_from(tenant).ok()?);
    let Ok(letters) = engine.dead_letters(owner, None, 20).await else { return Some(Response::Unreadable) };
    let count = u64::try_from(letters.len()).unwrap_or(0);
    let which = usize::try_from(letter.checked_rem(count)?).ok()?;
    let letter = letters.get(which)?;
    let key = u64::try_from(place).ok()?;
    let request = request(tenant, "resolve", key, 0, request_id(place))?;
    Some(Response::Submitted(engine.resolve(request, letter.outbox.id, decided(letter)).await))
}

fn twisted(asked: ClientRequest, ask: Ask, bug: Option<Bug>) -> ClientRequest {
    let turn = |request: Request| match bug {
        Some(Bug::FingerprintIgnored) => {
            Request { fingerprint: Fingerprint::from_digest(Digest::from_bytes([1; 32])), ..request }
        }
        Some(Bug::KeyForgotten) => {
            let parts: [&[u8]; 2] = [request.claim.digest().as_bytes(), &request.id.to_bytes()];
            Request { claim: ClaimId::from_digest(Digest::of("forgotten", &parts)), ..request }
        }
        Some(Bug::KeyWithoutTenant) => {
            let (Ask::Charge { key, .. }
            | Ask::Ledger { key, .. }
            | Ask::Operate { key, .. }
            | Ask::Payout { key, .. }
            | Ask::Look { number: key }
            | Ask::Resolve { letter: key, .. }) = ask;
            let claim = ClaimId::from_digest(Digest::of("shared", &[&key.to_be_bytes()]));
            Request { claim, ..request }
        }
        _ => request,
    };
    match asked {
        ClientRequest::Charge(mut command) => {
            command.request = turn(command.request);
            ClientRequest::Charge(command)
        }
        ClientRequest::Operate(mut command) => {
            command.request = turn(command.request);
            ClientRequest::Operate(command)
        }
        ClientRequest::Payout(mut command) => {
            command.request = turn(command.request);
            ClientRequest::Payout(command)
        }
        ClientRequest::Ledger(request, act) => ClientRequest::Ledger(turn(request), act),
        ClientRequest::Bulk(request, items) => ClientRequest::Bulk(turn(request), items),
    }
}

async fn distorted(submitted: Submitted, now: Time, bug: Option<Bug>) -> Submitted {
    let said = |status, body: &str| {
        let reply =
            Reply { status, media: ReplyMedia::Json, location: None, body: Bytes::from(body.to_owned()) };
        let until = now.plus(Span::from_ms(86_400_000));
        let windows = Windows { replay_until: until, tombstone_until: until };
        Submitted::Answer { settled: Settled { reply, windows }, replayed: false }
    };
    match (bug, submitted) {
        (Some(Bug::ReplyBeforeCommit), Submitted::Pending { .. }) => said(201, r#"{"status":"succeeded"}"#),
        (Some(Bug::PendingIsFailure), Submitted::Pending { .. })
        | (Some(Bug::OutageIsFailure), Submitted::StoreUnavailable) => {
            said(402, r#"{"error":"card_declined"}"#)
        }
        (Some(Bug::ReplayRewritten), Submitted::Answer { mut settled, replayed: true }) => {
            settled.reply.body = Bytes::from([settled.reply.body.as_ref(), b" "].concat());
            Submitted::Answer { settled, replayed: true }
        }
        (Some(Bug::InUseForever), Submitted::Answer { replayed: true, .. }) => Submitted::InUse,
        (Some(Bug::NeverAnswers), Submitted::Answer { replayed: true, .. }) => std::future::pending().await,
        (_, submitted) => submitted,
    }
}
