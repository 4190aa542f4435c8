//! What Stripe sends on its own: its signature, and where our reference stands in its events.

mod event;
pub mod signature;

use counterfoil_core::types::time::Time;
use counterfoil_gateway::Inbox;
use counterfoil_gateway::inbox::{ProviderEvent, Unopened};
use signature::Secret;

/// An inbox that opens what was signed with one of a few secrets.
#[derive(Debug)]
pub struct StripeInbox {
    provider: &'static str,
    secrets: Vec<Secret>,
}

impl StripeInbox {
    /// For the provider of that name. Several secrets are live at once while one takes the place of another.
    pub const fn new(provider: &'static str, secrets: Vec<Secret>) -> StripeInbox {
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
        StripeInbox::new("stripe", vec![Secret::new("whsec_test_secret")])
    }

    fn signed(body: &[u8]) -> String {
        Secret::new("whsec_test_secret").sign(1_700_000_000, body)
    }

    #[test]
    fn what_nobody_signed_is_not_even_read() {
        let inbox = inbox();
        assert_eq!(inbox.open(None, BODY, NOW), Err(Unopened::Missing));
        assert_eq!(inbox.open(Some(b"t=1700000000,v1="), b"}{", NOW), Err(Unopened::Malformed));
        assert_eq!(inbox.open(Some(signed(BODY).as_bytes()), b"}{", NOW), Err(Unopened::NoMatch));
        assert_eq!(inbox.open(Some(signed(b"}{").as_bytes()), b"}{", NOW), Err(Unopened::Unreadable));
    }

    #[test]
    fn what_was_signed_names_its_payment() {
        let event = inbox().open(Some(signed(BODY).as_bytes()), BODY, NOW);
        assert_eq!(event, Ok(ProviderEvent { payment: Some("ch_1".into()) }));
        assert_eq!((inbox().provider(), inbox().header()), ("stripe", "stripe-signature"));
    }

    #[test]
    fn a_secret_shows_nowhere() {
        assert!(!format!("{:?}", inbox()).contains("test_secret"));
    }
}
