//! Which connector a payment's calls take: the one it is bound to, or none.
//!
//! A payment is bound to the provider or to one peer for life. What is bound to a peer that is not set up here, or is set up
//! with another place or account, takes no way at all: the provider never sees it, and neither does another peer.

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

/// A connector for the provider and one for each peer.
#[derive(Debug)]
pub struct Routes<P, C> {
    provider: P,
    peers: BTreeMap<PeerName, C>,
}

/// Where something goes.
enum Way<P, C> {
    Provider(P),
    Peer(C),
    Nowhere,
}

pin_project! {
    /// A call on its way. A type of its own: an `async` block would keep room for the call twice, before it is polled and after.
    #[project = Going]
    enum Sending<P, C> {
        Provider { #[pin] call: P },
        Peer { #[pin] call: C },
        Nowhere,
    }
}

impl<P: Future<Output = ProviderOutcome>, C: Future<Output = ProviderOutcome>> Future for Sending<P, C> {
    type Output = ProviderOutcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ProviderOutcome> {
        match self.project() {
            Going::Provider { call } => call.poll(context),
            Going::Peer { call } => call.poll(context),
            Going::Nowhere => Poll::Ready(ProviderOutcome::NotSent),
        }
    }
}

impl<P: Gateway, C: Gateway> Routes<P, C> {
    /// The provider and the peers by name.
    pub const fn new(provider: P, peers: BTreeMap<PeerName, C>) -> Routes<P, C> {
        Routes { provider, peers }
    }

    fn way(&self, binding: &ProviderBinding) -> Way<&P, &C> {
        let Some(name) = binding.peer() else { return Way::Provider(&self.provider) };
        let peer = PeerName::parse(name).ok().and_then(|name| self.peers.get(&name));
        peer.filter(|peer| peer.binding() == *binding).map_or(Way::Nowhere, Way::Peer)
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
        match self.way(binding) {
            Way::Provider(_) | Way::Peer(_) => true,
            Way::Nowhere => false,
        }
    }

    fn rules(&self, binding: &ProviderBinding) -> Rules {
        match self.way(binding) {
            Way::Provider(provider) => provider.rules(binding),
            Way::Peer(peer) => peer.rules(binding),
            Way::Nowhere => ProviderProfile::rules_of(&binding.profile),
        }
    }

    fn call(&self, call: ProviderCall) -> impl Future<Output = ProviderOutcome> + Send {
        // The connector's time runs from here, not from when somebody gets round to polling this.
        match self.way(&call.binding) {
            Way::Provider(provider) => Sending::Provider { call: provider.call(call) },
            Way::Peer(peer) => Sending::Peer { call: peer.call(call) },
            Way::Nowhere => Sending::Nowhere,
        }
    }

    async fn lookup(&self, lookup: ProviderLookup) -> LookupResult {
        match self.way(&lookup.binding) {
            Way::Provider(provider) => provider.lookup(lookup).await,
            Way::Peer(peer) => peer.lookup(lookup).await,
            Way::Nowhere => LookupResult::Unclear(Cause::Unreadable),
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

    /// Counts what comes its way.
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

    async fn goes(
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

    fn served() -> (Routes<Counting, Counting>, [Counting; 3]) {
        let all = [
            Counting::at(provider("https://p")),
            Counting::at(ProviderBinding::to_peer(&name("eu"), "http://eu", "ac_1")),
            Counting::at(ProviderBinding::to_peer(&name("us"), "http://us", "ac_2")),
        ];
        let [card, eu, us] = all.clone();
        (Routes::new(card, BTreeMap::from([(name("eu"), eu), (name("us"), us)])), all)
    }

    #[tokio::test]
    async fn what_is_bound_to_a_peer_that_is_not_set_up_so_takes_no_way() {
        let (routes, all) = served();
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
            assert_eq!(goes(&routes, &binding).await, nothing, "{binding:?}");
        }
        assert!(all.iter().all(|connector| connector.seen().is_empty()));
        assert_eq!(routes.binding_to(&name("asia")), None);
    }

    #[tokio::test]
    async fn everything_else_takes_its_own() {
        let (routes, all) = served();
        for (own, connector) in all.iter().enumerate() {
            let binding = connector.binding();
            assert!(routes.serves(&binding));
            goes(&routes, &binding).await;
            for (other, connector) in all.iter().enumerate() {
                let expected = if own == other { vec![binding.clone(); 2] } else { Vec::new() };
                assert_eq!(connector.seen(), expected);
            }
        }
        // A provider's own endpoint may have been another when the payment was made.
        assert!(routes.serves(&provider("https://old")));
        assert_eq!(routes.binding_to(&name("eu")), Some(all[1].binding()));
        assert_eq!(routes.binding(), all[0].binding());
        assert_eq!(routes.peers(), [name("eu"), name("us")]);
    }
}
