//! The door of one process as a client finds it, and doors that break their promises.

use super::cluster::SimEngine;
use crate::bank::Bug;
use crate::client::{Asked, Response, request, request_id};
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

/// Something to look at.
#[derive(Clone, Debug)]
pub(super) enum Look {
    /// A balance, by the account's code.
    Balance(String),
    /// A charge or a payout, as a tenant sees it.
    Payment {
        /// Which.
        id: Payment,
        /// Whose it is.
        owner: i64,
        /// Who asks.
        asking: i64,
    },
}

/// Hands a write to the engine.
pub(super) async fn submit(engine: &SimEngine, asked: Asked, ask: Ask, bug: Option<Bug>) -> Submitted {
    let asked = twisted(asked, ask, bug);
    let submitted = match asked {
        Asked::Charge(command) => engine.submit(*command).await,
        Asked::Operate(command) => engine.operate(*command).await,
        Asked::Payout(command) => engine.pay_out(*command).await,
        Asked::Keep(request, act) => engine.keep(request, *act).await,
        Asked::Bulk(request, items) => engine.bulk(request, items).await,
    };
    distorted(submitted, engine.now(), bug).await
}

/// Looks.
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

/// What operators may decide.
pub(super) const HOWS: u64 = 4;

/// An operator looks at the dead letters of a tenant and settles one of them under a key of its own, in the way
/// `decided` says; nothing if there is none.
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

fn twisted(asked: Asked, ask: Ask, bug: Option<Bug>) -> Asked {
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
            | Ask::Keep { key, .. }
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
        Asked::Charge(mut command) => {
            command.request = turn(command.request);
            Asked::Charge(command)
        }
        Asked::Operate(mut command) => {
            command.request = turn(command.request);
            Asked::Operate(command)
        }
        Asked::Payout(mut command) => {
            command.request = turn(command.request);
            Asked::Payout(command)
        }
        Asked::Keep(request, act) => Asked::Keep(turn(request), act),
        Asked::Bulk(request, items) => Asked::Bulk(turn(request), items),
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
