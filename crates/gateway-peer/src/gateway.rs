//! The connector: a payout becomes a transfer at the peer, and its failures become outcomes.

use crate::answer::{self, KeyRecord};
use crate::settings::{PeerSettings, PeerSettingsError, address};
use counterfoil_core::outbox::ProviderBinding;
use counterfoil_core::payments::provider::{Cause, LookupResult, ProviderOutcome, ProviderStep, Rules};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::time::Span;
use counterfoil_gateway::profile::PEER;
use counterfoil_gateway::{Gateway, ProviderCall, ProviderLookup};
use counterfoil_transport::{Deadline, HttpAnswer, Letter, Transport, TransportFailure, uri_at};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use serde::Serialize;
use std::fmt;
use std::future::Future;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The connector to one peer.
pub struct PeerGateway {
    binding: ProviderBinding,
    endpoint: String,
    account: String,
    create: Uri,
    retention: Span,
    /// `Bearer KEY`, marked as sensitive.
    authorization: HeaderValue,
    transport: Transport,
}

/// The request body. The same call gives the same bytes.
#[derive(Serialize)]
struct Transfer<'a> {
    from: &'a str,
    to: &'a str,
    amount: i64,
    currency: &'a str,
    metadata: TransferMetadata<'a>,
}

/// The metadata of every transfer: our reference of the payment, and the step.
#[derive(Serialize)]
struct TransferMetadata<'a> {
    counterfoil_payment: &'a str,
    counterfoil_step: &'a str,
}

impl PeerGateway {
    /// A connector that connects on demand.
    pub fn new(settings: PeerSettings) -> Result<PeerGateway, PeerSettingsError> {
        let PeerSettings { name, url, retention, limits } = settings;
        let address = address(url.reveal())?;
        Ok(PeerGateway {
            binding: ProviderBinding::to_peer(&name, &address.endpoint, &address.path),
            create: uri_at(&address.endpoint, "/v1/transfers").ok_or(PeerSettingsError::Host)?,
            authorization: address.authorization()?,
            transport: Transport::new(limits, address.is_https, reads_body)?,
            endpoint: address.endpoint,
            account: address.path,
            retention,
        })
    }

    fn request(&self, method: Method, uri: Uri, body: Letter) -> Request<Letter> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        request.headers_mut().insert(AUTHORIZATION, self.authorization.clone());
        request
    }

    /// The body and key to send; `None` if the payment is bound elsewhere or the step is not a
    /// payout.
    fn letter(&self, call: &ProviderCall) -> Option<(String, HeaderValue)> {
        let destination = call.instrument.as_ref().map(Masked::reveal)?;
        if call.binding != self.binding || call.step != ProviderStep::Payout {
            return None;
        }
        let asset = call.amount.asset();
        let transfer = Transfer {
            from: &self.account,
            to: destination,
            amount: call.amount.minor(),
            currency: asset.code(),
            metadata: TransferMetadata {
                counterfoil_payment: &call.payment,
                counterfoil_step: call.step.name(),
            },
        };
        Some((serde_json::to_string(&transfer).ok()?, HeaderValue::from_str(&call.key).ok()?))
    }

    async fn send(&self, call: ProviderCall, deadline: Deadline) -> ProviderOutcome {
        let Some((body, key)) = self.letter(&call) else {
            tracing::error!(
                payment = call.payment,
                bound_to = &*call.binding.endpoint,
                step = call.step.name(),
                "the payment cannot be asked of this peer"
            );
            return ProviderOutcome::NotSent;
        };
        let (letter, receipt) = Letter::new(body, deadline);
        let mut request = self.request(Method::POST, self.create.clone(), letter);
        request.headers_mut().insert(CONTENT_TYPE, JSON);
        request.headers_mut().insert(IDEMPOTENCY_KEY, key);
        let destination = call.instrument.as_ref().map_or("", |name| name.reveal());
        match self.transport.deliver(request, &receipt).await {
            Ok(answer) => answer::outcome(&answer, &self.account, destination),
            Err(outcome) => outcome,
        }
    }

    async fn get(&self, path: &str) -> Result<HttpAnswer, Cause> {
        let uri = uri_at(&self.endpoint, path).ok_or(Cause::Unreadable)?;
        let (empty, _) = Letter::new("", self.transport.deadline());
        self.transport.exchange(self.request(Method::GET, uri, empty)).await.map_err(TransportFailure::cause)
    }

    /// Looks up the key, then the transfer it made.
    async fn find(&self, key: &str) -> Result<LookupResult, Cause> {
        let record = self.get(&format!("/v1/idempotency-keys/{key}")).await?;
        match answer::record(&record) {
            KeyRecord::Made(transfer) => {
                let transfer = self.get(&format!("/v1/transfers/{transfer}")).await?;
                Ok(answer::found(&transfer, &self.account))
            }
            KeyRecord::Refused => Ok(LookupResult::Payment(answer::refused("failed_terminal"))),
            KeyRecord::Unclear(cause) => Err(cause),
        }
    }
}

impl Gateway for PeerGateway {
    fn binding(&self) -> ProviderBinding {
        self.binding.clone()
    }

    fn serves(&self, binding: &ProviderBinding) -> bool {
        *binding == self.binding
    }

    fn rules(&self, _: &ProviderBinding) -> Rules {
        Rules {
            dedup_window: Some(self.retention),
            // The wait for a slot and a connection depends on our settings, not on the peer.
            send_within: self.transport.send_within(),
            ..PEER.rules
        }
    }

    fn call(&self, call: ProviderCall) -> impl Future<Output = ProviderOutcome> + Send {
        // Outside the future: the deadline starts at this call, not at the first poll.
        let deadline = self.transport.deadline();
        self.send(call, deadline)
    }

    /// Looks up the key. An unknown key proves nothing, because the peer may have forgotten it.
    async fn lookup(&self, lookup: ProviderLookup) -> LookupResult {
        let plain = !lookup.key.is_empty() && lookup.key.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if lookup.binding != self.binding || lookup.step != ProviderStep::Payout || !plain {
            return LookupResult::Unclear(Cause::Unreadable);
        }
        self.find(&lookup.key).await.unwrap_or_else(LookupResult::Unclear)
    }
}

impl fmt::Debug for PeerGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerGateway").field("binding", &self.binding).finish_non_exhaustive()
    }
}

/// Whether the meaning of an answer depends on its body.
fn reads_body(status: StatusCode) -> bool {
    status.is_success() || matches!(status.as_u16(), 400 | 401 | 403 | 404 | 503)
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_core::types::asset::Asset;
    use counterfoil_core::types::money::Money;
    use counterfoil_core::types::peer::PeerName;
    use counterfoil_transport::TransportLimits;
    use std::time::Duration;

    fn gateway() -> PeerGateway {
        PeerGateway::new(PeerSettings {
            name: PeerName::parse("eu").unwrap(),
            url: Masked::new("counterfoil+http://sk_hidden@127.0.0.1:1/ac_ours".to_owned()),
            retention: Span::from_ms(1_000),
            limits: TransportLimits { timeout: Duration::from_millis(300), connections_max: 1 },
        })
        .unwrap()
    }

    fn call() -> ProviderCall {
        ProviderCall {
            binding: gateway().binding(),
            step: ProviderStep::Payout,
            key: "cf1".to_owned(),
            payment: "po_1".to_owned(),
            reference: None,
            amount: Money::new(400, Asset::parse("USD").unwrap()).unwrap(),
            instrument: Some(Masked::new("savings:\"alice\"".to_owned())),
        }
    }

    /// The peer compares requests under a key, so these bytes must stay the same in every release.
    #[test]
    fn golden_request() {
        let (body, key) = gateway().letter(&call()).unwrap();
        assert_eq!(
            body,
            r#"{"from":"ac_ours","to":"savings:\"alice\"","amount":400,"currency":"USD","metadata":{"counterfoil_payment":"po_1","counterfoil_step":"payout"}}"#
        );
        assert_eq!(key, "cf1");
    }

    #[tokio::test]
    async fn only_payouts_to_this_peer_are_sent() {
        let eu = gateway();
        let name = PeerName::parse("eu").unwrap();
        for odd in [
            ProviderCall {
                binding: ProviderBinding { profile: "stripe".into(), endpoint: "http://127.0.0.1:1".into() },
                ..call()
            },
            ProviderCall {
                binding: ProviderBinding::to_peer(&name, "http://127.0.0.1:1", "ac_other"),
                ..call()
            },
            ProviderCall {
                binding: ProviderBinding::to_peer(&name, "http://127.0.0.1:2", "ac_ours"),
                ..call()
            },
            ProviderCall { step: ProviderStep::Charge, ..call() },
            ProviderCall { instrument: None, ..call() },
            ProviderCall { key: "a\nb".to_owned(), ..call() },
        ] {
            assert!(eu.letter(&odd).is_none(), "{odd:?}");
            assert_eq!(eu.call(odd).await, ProviderOutcome::NotSent);
        }
        // Nothing listens there, so the request was never sent.
        assert_eq!(eu.call(call()).await, ProviderOutcome::NotSent);
        assert!(eu.serves(&call().binding));
        assert!(!eu.serves(&ProviderBinding::to_peer(&name, "http://127.0.0.1:1", "ac_other")));
    }

    /// The endpoint of a peer's binding is not a URL, so a connector to a provider cannot send to
    /// it by mistake.
    #[test]
    fn the_endpoint_of_a_peers_binding_is_no_url() {
        assert_eq!(uri_at(&call().binding.endpoint, "/v1/payouts"), None);
    }

    #[tokio::test]
    async fn only_payouts_to_this_peer_are_looked_up_and_only_by_plain_keys() {
        let ProviderCall { binding, step, key, payment, reference, amount, .. } = call();
        let right = ProviderLookup { binding, step, key, payment, reference, amount };
        for odd in [
            ProviderLookup { key: "cf1/../x".to_owned(), ..right.clone() },
            ProviderLookup { key: String::new(), ..right.clone() },
            ProviderLookup { step: ProviderStep::Refund, ..right.clone() },
            ProviderLookup {
                binding: ProviderBinding { profile: "stripe".into(), endpoint: "".into() },
                ..right.clone()
            },
        ] {
            assert_eq!(gateway().lookup(odd).await, LookupResult::Unclear(Cause::Unreadable));
        }
        assert_eq!(gateway().lookup(right).await, LookupResult::Unclear(Cause::Cut), "nobody listens there");
    }

    #[test]
    fn the_rules_are_those_of_a_peer_with_the_configured_bounds() {
        let rules = gateway().rules(&call().binding);
        assert_eq!(rules.dedup_window, Some(Span::from_ms(1_000)));
        assert_eq!(rules.send_within, Span::from_ms(300));
        assert!(!rules.reexecutes_errors && !rules.of(ProviderStep::Payout).queryable);
        assert!(!format!("{:?}", gateway()).contains("hidden"));
    }
}
