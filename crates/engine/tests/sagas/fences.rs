//! Work inside the gateway fence: one process at a time, and no retries of answered requests.

use crate::support::peer::with_peer_eu;
use crate::support::*;
use crate::words::*;
use counterfoil_core::payments::operation::OperationKind;
use counterfoil_core::types::time::Span;
use counterfoil_engine::SharedServices;
use counterfoil_engine::service::Submitted;
use counterfoil_gateway::fence::{Fence, FenceFailure, FenceFuture, Token};
use counterfoil_store::{RowKey, Store};
use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, Mutex};

/// A fence in memory that counts entries.
#[derive(Default)]
struct Names(Mutex<State>);

#[derive(Default)]
struct State {
    held: HashMap<String, Token>,
    entered: Vec<String>,
    is_away: bool,
}

impl Names {
    fn entered(&self) -> usize {
        self.0.lock().unwrap().entered.len()
    }

    /// Another process takes the last entered fence.
    fn another_holds_the_last(&self) {
        let mut state = self.0.lock().unwrap();
        let name = state.entered.last().unwrap().clone();
        state.held.insert(name, Token::new(0));
    }

    fn forget(&self) {
        self.0.lock().unwrap().held.clear();
    }

    fn set_away(&self, is_away: bool) {
        self.0.lock().unwrap().is_away = is_away;
    }

    fn answer(&self, act: impl FnOnce(&mut State) -> bool) -> FenceFuture<'_> {
        let mut state = self.0.lock().unwrap();
        let away = state.is_away.then(|| Err(FenceFailure::Unheard("gone".into())));
        Box::pin(ready(away.unwrap_or_else(|| Ok(act(&mut state)))))
    }
}

impl Fence for Names {
    fn take<'a>(&'a self, name: &'a str, token: Token, _: Span) -> FenceFuture<'a> {
        self.answer(|state| {
            let is_ours = *state.held.entry(name.to_owned()).or_insert(token) == token;
            if is_ours {
                state.entered.push(name.to_owned());
            }
            is_ours
        })
    }

    fn renew<'a>(&'a self, name: &'a str, token: Token, _: Span) -> FenceFuture<'a> {
        self.answer(|state| state.held.get(name) == Some(&token))
    }

    fn release<'a>(&'a self, name: &'a str, token: Token) -> FenceFuture<'a> {
        self.answer(|state| {
            let is_ours = state.held.get(name) == Some(&token);
            if is_ours {
                state.held.remove(name);
            }
            is_ours
        })
    }
}

async fn fenced(store: &SharedStore, provider: &Provider, names: &Arc<Names>) -> TestEngine {
    let fence: Arc<dyn Fence> = Arc::<Names>::clone(names);
    let shared = SharedServices { fence: Some((fence, Span::from_ms(30_000))), ..SharedServices::default() };
    engine_with_shared(store, with_peer_eu(provider), policy(), shared).await
}

#[tokio::test(start_paused = true)]
async fn retries_of_answered_requests_do_not_enter_the_fence() {
    let (store, provider, names) = (charted().await, Provider::default(), Arc::new(Names::default()));
    let first = fenced(&store, &provider, &names).await;
    let hold = held(&first, &store, "hold", 1_000).await;
    assert_eq!(done(&first, "capture", hold, OperationKind::Capture, None).await.0, 200);
    let refunded = done(&first, "refund", hold, OperationKind::Refund, Some(200)).await;
    let refused = done(&first, "too much", hold, OperationKind::Refund, Some(900)).await;
    assert_eq!((refunded.0, refused.0), (201, 409));
    assert_eq!(names.entered(), 3, "the hold, the capture and the refund");

    // First without cached answers, then also while another process holds the fence.
    let second = fenced(&store, &provider, &names).await;
    for _ in 0..2 {
        assert_eq!(done(&second, "refund", hold, OperationKind::Refund, Some(200)).await, refunded);
        assert_eq!(done(&second, "too much", hold, OperationKind::Refund, Some(900)).await, refused);
        assert_eq!(
            operate(&second, "refund", hold, OperationKind::Refund, Some(100)).await,
            Submitted::Mismatch
        );
        assert_eq!((names.entered(), provider.keys().len()), (3, 3));
        names.another_holds_the_last();
    }
}

#[tokio::test(start_paused = true)]
async fn a_payment_fenced_by_another_process_is_left_alone_and_the_key_stays_free() {
    let (store, provider, names) = (charted().await, Provider::default(), Arc::new(Names::default()));
    let engine = fenced(&store, &provider, &names).await;
    let hold = held(&engine, &store, "hold", 1_000).await;
    names.another_holds_the_last();
    let command = asked("capture", hold, OperationKind::Capture, None);
    assert_eq!(operate(&engine, "capture", hold, OperationKind::Capture, None).await, Submitted::InProgress);
    assert_eq!(store.read(vec![RowKey::Claim(TENANT, command.request.claim)]).await.unwrap(), [None]);
    assert_eq!(provider.keys().len(), 1, "only the hold was sent");
    names.forget();
    assert_eq!(done(&engine, "capture", hold, OperationKind::Capture, None).await.0, 200);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_fence_that_fails_stops_no_request() {
    let (store, provider, names) = (charted().await, Provider::default(), Arc::new(Names::default()));
    let engine = fenced(&store, &provider, &names).await;
    names.set_away(true);
    let hold = held(&engine, &store, "hold", 1_000).await;
    assert_eq!(done(&engine, "capture", hold, OperationKind::Capture, None).await.0, 200);
    assert_eq!((names.entered(), provider.keys().len()), (0, 2));
    verified(&store).await;
}
