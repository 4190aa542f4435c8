//! The connector: calls of the port become requests, and their failures become outcomes.

use crate::answer;
use crate::form::{self, INTENTS_PATH};
use crate::settings::{ProfileOverrides, StripeSettings, StripeSettingsError, address};
use counterfoil_core::outbox::ProviderBinding;
use counterfoil_core::payments::provider::{Cause, LookupResult, ProviderOutcome, ProviderStep, Rules};
use counterfoil_gateway::{Gateway, ProviderCall, ProviderLookup, ProviderProfile};
use counterfoil_transport::{Deadline, Letter, Transport, TransportLimits, uri_at};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use std::fmt;
use std::future::Future;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// A provider that speaks Stripe's protocol.
pub struct StripeGateway {
    profile: &'static ProviderProfile,
    bounds: ProfileOverrides,
    endpoint: String,
    create: Uri,
    /// `Bearer KEY`, marked as sensitive.
    authorization: HeaderValue,
    transport: Transport,
}

impl StripeGateway {
    /// A connector that connects on demand.
    pub fn new(settings: StripeSettings) -> Result<StripeGateway, StripeSettingsError> {
        let StripeSettings { url, profile, bounds, timeout, connections_max } = settings;
        let address = address(url.reveal())?;
        let create = uri_at(&address.endpoint, INTENTS_PATH).ok_or(StripeSettingsError::Host)?;
        let authorization = address.authorization().map_err(|_| StripeSettingsError::KeyUnusable)?;
        Ok(StripeGateway {
            profile,
            bounds,
            create,
            authorization,
            transport: Transport::new(
                TransportLimits { timeout, connections_max },
                address.is_https,
                reads_body,
            )?,
            endpoint: address.endpoint,
        })
    }

    fn request(&self, method: Method, uri: Uri, body: Letter) -> Request<Letter> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        request.headers_mut().insert(AUTHORIZATION, self.authorization.clone());
        request
    }

    /// The URI of a call, at the endpoint the payment is bound to. `None` for the binding of a
    /// peer.
    fn place(&self, call: &ProviderCall) -> Option<Uri> {
        if !self.serves(&call.binding) {
            return None;
        }
        if matches!(call.step, ProviderStep::Charge | ProviderStep::Authorize)
            && *call.binding.endpoint == *self.endpoint
        {
            return Some(self.create.clone());
        }
        uri_at(&call.binding.endpoint, &form::path(call)?)
    }

    async fn send(&self, call: ProviderCall, deadline: Deadline) -> ProviderOutcome {
        let (Some(uri), Ok(key)) = (self.place(&call), HeaderValue::from_str(&call.key)) else {
            tracing::error!(
                payment = call.payment,
                endpoint = &*call.binding.endpoint,
                "the payment's endpoint, reference or key cannot be put into a request"
            );
            return ProviderOutcome::NotSent;
        };
        let (letter, receipt) = Letter::new(form::body(&call), deadline);
        let mut request = self.request(Method::POST, uri, letter);
        request.headers_mut().insert(CONTENT_TYPE, FORM);
        request.headers_mut().insert(IDEMPOTENCY_KEY, key);
        match self.transport.deliver(request, &receipt).await {
            Ok(answer) => answer::outcome(&answer, &call),
            Err(outcome) => outcome,
        }
    }
}

impl Gateway for StripeGateway {
    fn binding(&self) -> ProviderBinding {
        // Allocate per payment: a shared reference count would be contended between cores.
        ProviderBinding { profile: self.profile.name.into(), endpoint: self.endpoint.as_str().into() }
    }

    fn rules(&self, binding: &ProviderBinding) -> Rules {
        let mut rules = ProviderProfile::rules_of(&binding.profile);
        // The overrides describe the configured provider, not one that old payments are bound to.
        if *binding.profile == *self.profile.name {
            rules = self.bounds.of(rules);
        }
        // The wait for a slot and a connection depends on our settings, not on the provider.
        Rules { send_within: self.transport.send_within(), ..rules }
    }

    fn call(&self, call: ProviderCall) -> impl Future<Output = ProviderOutcome> + Send {
        // Outside the future: the deadline starts at this call, not at the first poll.
        let deadline = self.transport.deadline();
        self.send(call, deadline)
    }

    async fn lookup(&self, lookup: ProviderLookup) -> LookupResult {
        let path = match lookup.step {
            ProviderStep::Charge | ProviderStep::Authorize => form::search(&lookup.payment),
            ProviderStep::Capture | ProviderStep::Void => form::intent(lookup.reference.as_deref()),
            // Refunds cannot be looked up with the data we have.
            ProviderStep::Refund => return LookupResult::Unclear(Cause::Unreadable),
            // Payouts can be looked up only by the provider's reference.
            ProviderStep::Payout if lookup.reference.is_none() => {
                return LookupResult::Unclear(Cause::Unreadable);
            }
            ProviderStep::Payout => form::payout(lookup.reference.as_deref()),
        };
        let path = path.filter(|_| self.serves(&lookup.binding));
        let Some(uri) = path.and_then(|path| uri_at(&lookup.binding.endpoint, &path)) else {
            tracing::error!(
                payment = lookup.payment,
                endpoint = &*lookup.binding.endpoint,
                "the payment's endpoint or reference cannot be put into a search"
            );
            return LookupResult::Unclear(Cause::Unreadable);
        };
        let (empty, _) = Letter::new("", self.transport.deadline());
        match self.transport.exchange(self.request(Method::GET, uri, empty)).await {
            Ok(answer) => answer::found(&answer, &lookup),
            Err(failure) => LookupResult::Unclear(failure.cause()),
        }
    }
}

impl fmt::Debug for StripeGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StripeGateway")
            .field("profile", &self.profile.name)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

/// Whether the meaning of an answer depends on its body.
fn reads_body(status: StatusCode) -> bool {
    status.is_success() || matches!(status.as_u16(), 400..=404)
}
