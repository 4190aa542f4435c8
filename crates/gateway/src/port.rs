//! The port to a payment provider.

use counterfoil_core::outbox::ProviderBinding;
use counterfoil_core::payments::provider::{LookupResult, ProviderOutcome, ProviderStep, Rules};
use counterfoil_core::types::limits::PROVIDER_REFERENCE_BYTES_MAX;
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_core::types::peer::PeerName;
use std::future::Future;

/// A payment provider. Every answer is an outcome: a connector cannot report an error without
/// saying whether something may have been executed.
pub trait Gateway: Send + Sync + 'static {
    /// The provider and endpoint for new payments.
    fn binding(&self) -> ProviderBinding;

    /// The configured peers, in order.
    fn peers(&self) -> Vec<PeerName> {
        Vec::new()
    }

    /// The binding of new payments to that peer; `None` if no such peer is configured.
    fn binding_to(&self, _peer: &PeerName) -> Option<ProviderBinding> {
        None
    }

    /// Whether payments with this binding can be worked on here. Other payments wait and are never
    /// sent elsewhere. The default is that of a provider's connector, which serves no peers.
    fn serves(&self, binding: &ProviderBinding) -> bool {
        binding.peer().is_none()
    }

    /// The rules of the payment's provider, with this connector's own `send_within`.
    fn rules(&self, binding: &ProviderBinding) -> Rules;

    /// Executes one step of a payment under its derived key. The request is sent within
    /// `send_within` of this call, not of the first poll, or never, even if the process sleeps in
    /// between.
    fn call(&self, call: ProviderCall) -> impl Future<Output = ProviderOutcome> + Send;

    /// Asks the provider for the state of a payment.
    fn lookup(&self, lookup: ProviderLookup) -> impl Future<Output = LookupResult> + Send;
}

/// One step of a payment.
#[derive(Clone, Debug)]
pub struct ProviderCall {
    pub binding: ProviderBinding,
    pub step: ProviderStep,
    /// The derived idempotency key, the same on every attempt.
    pub key: String,
    /// Our public reference of the payment.
    pub payment: String,
    /// The provider's reference of the payment that is captured, voided or refunded. `None` while
    /// it is created.
    pub reference: Option<String>,
    /// The amount of the step; for a void, the amount held.
    pub amount: Money,
    /// The provider's token of the card that is charged or of the bank account that is paid.
    /// Without a token the provider chooses.
    pub instrument: Option<Masked<String>>,
}

/// Asks whether a step was done. A payment unchanged by the step is [`LookupResult::Nothing`]. A
/// payment on which the step can never be done any more is declined.
#[derive(Clone, Debug)]
pub struct ProviderLookup {
    pub binding: ProviderBinding,
    pub step: ProviderStep,
    /// The derived idempotency key of the last attempt.
    pub key: String,
    /// Our public reference of the payment.
    pub payment: String,
    /// The provider's reference of the payment, once known.
    pub reference: Option<String>,
    /// The amount of the step. The core compares it with the answer.
    pub amount: Money,
}

/// Whether a provider's reference or code can be stored. Some stores cannot hold U+0000, and no
/// provider needs control characters.
pub fn is_storable(word: &str) -> bool {
    !word.is_empty() && word.len() <= PROVIDER_REFERENCE_BYTES_MAX && !word.contains(char::is_control)
}
