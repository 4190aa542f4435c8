//! Chooses the connector for a payment by its binding.
//!
//! A payment is bound to the provider or to one peer for life. A binding to a peer that is not
//! configured here, or is configured with another endpoint or account, has no route. Neither the
//! provider nor another peer ever sees such a payment.

use crate::port::{Gateway, ProviderCall, ProviderLookup};
use crate::profile::ProviderProfile;
use counterfoil_core::outbox::ProviderBinding;
use counterfoil_core::payments::provider::{Cause, LookupResult, ProviderOutcome, Rules};
use counterfoil_core::types::peer::PeerName;
use pin_project_lite::pin_project;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The connector of the provider and those of the peers.
#[derive(Debug)]
pub struct Routes<P, C> {
    provider: P,
    peers: BTreeMap<PeerName, C>,
}

/// The connector of a binding.
enum Route<P, C> {
    Provider(P),
    Peer(C),
    Missing,
}

pin_project! {
    /// A call under way. An enum instead of an `async` block, which would hold the call twice:
    /// before the first poll and after.
    #[project = SendingProjection]
    enum Sending<P, C> {
        Provider { #[pin] call: P },
        Peer { #[pin] call: C },
        Missing,
    }
}

impl<P: Future<Output = ProviderOutcome>, C: Future<Output = ProviderOutcome>> Future for Sending<P, C> {
    type Output = ProviderOutcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ProviderOutcome> {
        match self.project() {
            SendingProjection::Provider { call } => call.poll(context),
            SendingProjection::Peer { call } => call.poll(context),
            SendingProjection::Missing => Poll::Ready(ProviderOutcome::NotSent),
        }
    }
}

impl<P: Gateway, C: Gateway> Routes<P, C> {
    pub const fn new(provider: P, peers: BTreeMap<PeerName, C>) -> Routes<P, C> {
        Routes { provider, peers }
    }

    fn route(&self, binding: &ProviderBinding) -> Route<&P, &C> {
        let Some(name) = binding.peer() else { return Route::Provider(&self.provider) };
        let peer = PeerName::parse(name).ok().and_then(|name| self.peers.get(&name));
        peer.filter(|peer| peer.binding() == *binding).map_or(Route::Missing, Route::Peer)
    }
}

impl<P: Gateway, C: Gateway> Gateway for Routes<P, C> {
    fn binding(&self) -> ProviderBinding {
        self.provider.binding()
    }

    fn peers(&self) -> Vec<PeerName> {
        self.peers.keys().cloned().collect()
    }

    fn binding_to(&self, peer: &PeerName) -> Option<ProviderBinding> {
        self.peers.get(peer).map(Gateway::binding)
    }

    fn serves(&self, binding: &ProviderBinding) -> bool {
        match self.route(binding) {
            Route::Provider(_) | Route::Peer(_) => true,
            Route::Missing => false,
        }
    }

    fn rules(&self, binding: &ProviderBinding) -> Rules {
        match self.route(binding) {
            Route::Provider(provider) => provider.rules(binding),
            Route::Peer(peer) => peer.rules(binding),
            Route::Missing => ProviderProfile::rules_of(&binding.profile),
        }
    }

    fn call(&self, call: ProviderCall) -> impl Future<Output = ProviderOutcome> + Send {
        // Call outside any `async` block: the connector's deadline starts here, not at the first
        // poll.
        match self.route(&call.binding) {
            Route::Provider(provider) => Sending::Provider { call: provider.call(call) },
            Route::Peer(peer) => Sending::Peer { call: peer.call(call) },
            Route::Missing => Sending::Missing,
        }
    }

    async fn lookup(&self, lookup: ProviderLookup) -> LookupResult {
        match self.route(&lookup.binding) {
            Route::Provider(provider) => provider.lookup(lookup).await,
            Route::Peer(peer) => peer.lookup(lookup).await,
            Route::Missing => LookupResult::Unclear(Cause::Unreadable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_core::outbox::PEER_PROFILE;
    use counterfoil_core::payments::provider::ProviderStep;
    use counterfoil_core::types::asset::Asset;
    use counterfoil_core::types::money::Money;
    use std::future::ready;
    use std::sync::{Arc, Mutex};

    /// Records the bindings of the calls it receives.
    #[derive(Clone)]
    struct Counting {
        binding: ProviderBinding,
        calls: Arc<Mutex<Vec<ProviderBinding>>>,
    }

    impl Counting {
        fn at(binding: ProviderBinding) -> Counting {
            Counting { binding, calls: Arc::default() }
        }

        fn seen(&self) -> Vec<ProviderBinding> {
            std::mem::take(&mut *self.calls.lock().unwrap())
        }
    }

    impl Gateway for Counting {
        fn binding(&self) -> ProviderBinding {
            self.binding.clone()
        }

        fn rules(&self, binding: &ProviderBinding) -> Rules {
            ProviderProfile::rules_of(&binding.profile)
        }

        fn call(&self, call: ProviderCall) -> impl Future<Output = ProviderOutcome> + Send {
            self.calls.lock().unwrap().push(call.binding);
            ready(ProviderOutcome::Unknown(Cause::InProgress))
        }

        fn lookup(&self, lookup: ProviderLookup) -> impl Future<Output = LookupResult> + Send {
            self.calls.lock().unwrap().push(lookup.binding);
            ready(LookupResult::Nothing)
        }
    }

    fn name(text: &str) -> PeerName {
        PeerName::parse(text).unwrap()
    }

    fn provider(endpoint: &str) -> ProviderBinding {
        ProviderBinding { profile: "stripe".into(), endpoint: endpoint.into() }
    }

    async fn call_and_look_up(
        routes: &Routes<Counting, Counting>,
        binding: &ProviderBinding,
    ) -> (ProviderOutcome, LookupResult) {
        let amount = Money::new(5, Asset::parse("USD").unwrap()).unwrap();
        let (step, key, payment) = (ProviderStep::Payout, "k".to_owned(), "po_1".to_owned());
        let call = ProviderCall {
            binding: binding.clone(),
            step,
            key: key.clone(),
            payment: payment.clone(),
            reference: None,
            amount,
            instrument: None,
        };
        let lookup = ProviderLookup { binding: binding.clone(), step, key, payment, reference: None, amount };
        (routes.call(call).await, routes.lookup(lookup).await)
    }

    fn routes_and_connectors() -> (Routes<Counting, Counting>, [Counting; 3]) {
        let all = [
            Counting::at(provider("https://p")),
            Counting::at(ProviderBinding::to_peer(&name("eu"), "http://eu", "ac_1")),
            Counting::at(ProviderBinding::to_peer(&name("us"), "http://us", "ac_2")),
        ];
        let [card, eu, us] = all.clone();
        (Routes::new(card, BTreeMap::from([(name("eu"), eu), (name("us"), us)])), all)
    }

    #[tokio::test]
    async fn bindings_to_peers_configured_otherwise_have_no_route() {
        let (routes, all) = routes_and_connectors();
        for binding in [
            ProviderBinding::to_peer(&name("asia"), "http://eu", "ac_1"),
            ProviderBinding::to_peer(&name("eu"), "http://us", "ac_2"),
            ProviderBinding::to_peer(&name("eu"), "http://eu:81", "ac_1"),
            ProviderBinding::to_peer(&name("eu"), "http://eu", "ac_9"),
            ProviderBinding { profile: PEER_PROFILE.into(), endpoint: "".into() },
            ProviderBinding { profile: PEER_PROFILE.into(), endpoint: "https://p".into() },
        ] {
            assert!(!routes.serves(&binding), "{binding:?}");
            let nothing = (ProviderOutcome::NotSent, LookupResult::Unclear(Cause::Unreadable));
            assert_eq!(call_and_look_up(&routes, &binding).await, nothing, "{binding:?}");
        }
        assert!(all.iter().all(|connector| connector.seen().is_empty()));
        assert_eq!(routes.binding_to(&name("asia")), None);
    }

    #[tokio::test]
    async fn every_other_binding_takes_its_own_route() {
        let (routes, all) = routes_and_connectors();
        for (own, connector) in all.iter().enumerate() {
            let binding = connector.binding();
            assert!(routes.serves(&binding));
            call_and_look_up(&routes, &binding).await;
            for (other, connector) in all.iter().enumerate() {
                let expected = if own == other { vec![binding.clone(); 2] } else { Vec::new() };
                assert_eq!(connector.seen(), expected);
            }
        }
        // The provider's endpoint may have been another one when the payment was made.
        assert!(routes.serves(&provider("https://old")));
        assert_eq!(routes.binding_to(&name("eu")), Some(all[1].binding()));
        assert_eq!(routes.binding(), all[0].binding());
        assert_eq!(routes.peers(), [name("eu"), name("us")]);
    }
}
