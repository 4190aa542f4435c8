//! Stripe's webhooks: the signature, and the place of our reference in an event.

mod event;
pub mod signature;

use counterfoil_core::types::time::Time;
use counterfoil_gateway::Inbox;
use counterfoil_gateway::inbox::{ProviderEvent, Unopened};
use signature::WebhookSecret;

/// An inbox that accepts signatures under any of its secrets.
#[derive(Debug)]
pub struct StripeInbox {
    provider: &'static str,
    secrets: Vec<WebhookSecret>,
}

impl StripeInbox {
    /// The inbox of the named provider. Several secrets are valid while one is being rotated.
    pub const fn new(provider: &'static str, secrets: Vec<WebhookSecret>) -> StripeInbox {
        StripeInbox { provider, secrets }
    }
}

impl Inbox for StripeInbox {
    fn provider(&self) -> &str {
        self.provider
    }

    fn header(&self) -> &'static str {
        "stripe-signature"
    }

    fn open(&self, signature: Option<&[u8]>, body: &[u8], now: Time) -> Result<ProviderEvent, Unopened> {
        signature::verify(&self.secrets, signature.ok_or(Unopened::Missing)?, body, now)?;
        event::read(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_ms(1_700_000_000_500);
    const BODY: &[u8] = br#"{"data":{"object":{"metadata":{"counterfoil_payment":"ch_1"}}}}"#;

    fn inbox() -> StripeInbox {
        StripeInbox::new("stripe", vec![WebhookSecret::new("whsec_test_secret")])
    }

    fn signed(body: &[u8]) -> String {
        WebhookSecret::new("whsec_test_secret").sign(1_700_000_000, body)
    }

    #[test]
    fn unsigned_bodies_are_not_parsed() {
        let inbox = inbox();
        assert_eq!(inbox.open(None, BODY, NOW), Err(Unopened::Missing));
        assert_eq!(inbox.open(Some(b"t=1700000000,v1="), b"}{", NOW), Err(Unopened::Malformed));
        assert_eq!(inbox.open(Some(signed(BODY).as_bytes()), b"}{", NOW), Err(Unopened::NoMatch));
        assert_eq!(inbox.open(Some(signed(b"}{").as_bytes()), b"}{", NOW), Err(Unopened::Unreadable));
    }

    #[test]
    fn a_signed_event_names_its_payment() {
        let event = inbox().open(Some(signed(BODY).as_bytes()), BODY, NOW);
        assert_eq!(event, Ok(ProviderEvent { payment: Some("ch_1".into()) }));
        assert_eq!((inbox().provider(), inbox().header()), ("stripe", "stripe-signature"));
    }

    #[test]
    fn a_secret_is_never_printed() {
        assert!(!format!("{:?}", inbox()).contains("test_secret"));
    }
}
