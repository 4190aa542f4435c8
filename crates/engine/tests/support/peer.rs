//! A peer that follows the provider's script, and routes to both.

use super::Provider;
use counterfoil_core::outbox::ProviderBinding;
use counterfoil_core::payments::provider::{LookupResult, ProviderOutcome, Rules};
use counterfoil_core::types::peer::PeerName;
use counterfoil_core::types::time::Span;
use counterfoil_gateway::profile::PEER;
use counterfoil_gateway::{Gateway, ProviderCall, ProviderLookup, Routes};
use std::collections::BTreeMap;

/// A peer called `eu` with the provider's script.
#[derive(Clone)]
pub struct Peer(pub Provider);

pub fn eu() -> PeerName {
    PeerName::parse("eu").unwrap()
}

impl Gateway for Peer {
    fn binding(&self) -> ProviderBinding {
        ProviderBinding::to_peer(&eu(), "http://eu", "ac_ours")
    }

    /// The peer keeps keys for two hours.
    fn rules(&self, _: &ProviderBinding) -> Rules {
        Rules { dedup_window: Some(Span::from_ms(7_200_000)), ..PEER.rules }
    }

    async fn call(&self, call: ProviderCall) -> ProviderOutcome {
        self.0.0.lock().unwrap().seen[1].push(call.binding.clone());
        self.0.played(call).await
    }

    async fn lookup(&self, lookup: ProviderLookup) -> LookupResult {
        self.0.lookup(lookup).await
    }
}

/// Routes to the provider and the peer.
pub fn with_peer_eu(provider: &Provider) -> Routes<Provider, Peer> {
    Routes::new(provider.clone(), BTreeMap::from([(eu(), Peer(provider.clone()))]))
}

/// Routes to the provider only.
pub fn alone(provider: &Provider) -> Routes<Provider, Peer> {
    Routes::new(provider.clone(), BTreeMap::new())
}
