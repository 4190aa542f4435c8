//! The port itself.

use counterfoil_core::outbox::ProviderBinding;
use counterfoil_core::payments::provider::{LookupResult, ProviderOutcome, ProviderStep, Rules};
use counterfoil_core::types::limits::PROVIDER_REFERENCE_BYTES_MAX;
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_core::types::peer::PeerName;
use std::future::Future;

/// A payment provider. Every answer is an outcome: a connector has no way to say "error" without saying whether
/// something may have been executed.
pub trait Gateway: Send + Sync + 'static {
    /// The provider and endpoint that new payments are bound to.
    fn binding(&self) -> ProviderBinding;

    /// The peers that are set up here, in order.
    fn peers(&self) -> Vec<PeerName> {
        Vec::new()
    }

    /// What new payments to that peer are bound to; nothing if no such peer is set up here.
    fn binding_to(&self, _peer: &PeerName) -> Option<ProviderBinding> {
        None
    }

    /// Whether a payment that is bound so can be worked on here. What cannot waits, and is never sent elsewhere. A
    /// connector of a provider has nothing to do with peers.
    fn serves(&self, binding: &ProviderBinding) -> bool {
        binding.peer().is_none()
    }

    /// The rules of the provider a payment is bound to, with this connector's own `send_within`.
    fn rules(&self, binding: &ProviderBinding) -> Rules;

    /// Executes one step of a payment, under its derived key. The request leaves within `send_within` of this being
    /// called, not of its future being polled, or it never leaves, even if the process sleeps in between.
    fn call(&self, call: ProviderCall) -> impl Future<Output = ProviderOutcome> + Send;

    /// Asks what the provider knows of a payment.
    fn lookup(&self, lookup: ProviderLookup) -> impl Future<Output = LookupResult> + Send;
}

/// One step of a payment.
#[derive(Clone, Debug)]
pub struct ProviderCall {
    /// Where the payment is bound to.
    pub binding: ProviderBinding,
    /// Which step.
    pub step: ProviderStep,
    /// The derived idempotency key, the same on every attempt.
    pub key: String,
    /// Our public reference of the payment.
    pub payment: String,
    /// The provider's own reference of the payment: what a capture, a void or a refund is done to. None while it is made.
    pub reference: Option<String>,
    /// How much is charged, held, captured, given back or paid out; of a void, what is held.
    pub amount: Money,
    /// The provider's token of what is charged, or of the bank account that is paid; without one, its own choice.
    pub instrument: Option<Masked<String>>,
}

/// A question about a payment: was this step done? A payment that stands where it stood before the step is
/// [`LookupResult::Nothing`]; one on which the step can never be done any more is declined.
#[derive(Clone, Debug)]
pub struct ProviderLookup {
    /// Where the payment is bound to.
    pub binding: ProviderBinding,
    /// Which step is asked about.
    pub step: ProviderStep,
    /// The derived idempotency key that was last used for it.
    pub key: String,
    /// Our public reference of the payment.
    pub payment: String,
    /// The provider's own reference of the payment, once it is known.
    pub reference: Option<String>,
    /// How much the step was to take; what the answer says is compared with it by the core.
    pub amount: Money,
}

/// Whether a provider's reference or code can be stored. Not every store can hold U+0000, and no provider has a use for
/// it or its like.
pub fn is_storable(word: &str) -> bool {
    !word.is_empty() && word.len() <= PROVIDER_REFERENCE_BYTES_MAX && !word.contains(char::is_control)
}
