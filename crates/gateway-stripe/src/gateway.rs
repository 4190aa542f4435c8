//! The connector itself: the port's calls as requests, and their failures as outcomes.

use crate::answer;
use crate::form::{self, INTENTS_PATH};
use crate::settings::{Bounds, Settings, SettingsError, address};
use counterfoil_core::outbox::ProviderBinding;
use counterfoil_core::payments::provider::{Cause, LookupResult, ProviderOutcome, ProviderStep, Rules};
use counterfoil_gateway::{Gateway, ProviderCall, ProviderLookup, ProviderProfile};
use counterfoil_transport::{Deadline, Letter, Transport, TransportLimits, at};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use std::fmt;
use std::future::Future;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// A provider that speaks Stripe's protocol.
pub struct StripeGateway {
    profile: &'static ProviderProfile,
    bounds: Bounds,
    endpoint: String,
    create: Uri,
    /// `Bearer KEY`, marked as sensitive.
    authorization: HeaderValue,
    transport: Transport,
}

impl StripeGateway {
    /// A connector; connections are made when they are needed.
    pub fn new(settings: Settings) -> Result<StripeGateway, SettingsError> {
        let Settings { url, profile, bounds, timeout, connections_max } = settings;
        let address = address(url.reveal())?;
        let create = at(&address.endpoint, INTENTS_PATH).ok_or(SettingsError::Host)?;
        let authorization = address.authorization().map_err(|_| SettingsError::KeyUnusable)?;
        Ok(StripeGateway {
            profile,
            bounds,
            create,
            authorization,
            transport: Transport::new(
                TransportLimits { timeout, connections_max },
                address.is_https,
                is_worded,
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

    /// Where a call goes: to the payment's own endpoint, which is usually ours. A peer's is none of ours.
    fn place(&self, call: &ProviderCall) -> Option<Uri> {
        if !self.serves(&call.binding) {
            return None;
        }
        if matches!(call.step, ProviderStep::Charge | ProviderStep::Authorize)
            && *call.binding.endpoint == *self.endpoint
        {
            return Some(self.create.clone());
        }
        at(&call.binding.endpoint, &form::path(call)?)
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
        // Each payment's own: counting one for all of them would keep the processors at it.
        ProviderBinding { profile: self.profile.name.into(), endpoint: self.endpoint.as_str().into() }
    }

    fn rules(&self, binding: &ProviderBinding) -> Rules {
        let mut rules = ProviderProfile::rules_of(&binding.profile);
        // What is known better is known of the provider that is set, not of one that old work is bound to.
        if *binding.profile == *self.profile.name {
            rules = self.bounds.of(rules);
        }
        // How long a request may wait for a slot and a connection is ours to say, whoever the provider is.
        Rules { send_within: self.transport.send_within(), ..rules }
    }

    fn call(&self, call: ProviderCall) -> impl Future<Output = ProviderOutcome> + Send {
        // Outside the future: time runs from here, not from when somebody gets round to polling it.
        let deadline = self.transport.deadline();
        self.send(call, deadline)
    }

    async fn lookup(&self, lookup: ProviderLookup) -> LookupResult {
        let path = match lookup.step {
            ProviderStep::Charge | ProviderStep::Authorize => form::search(&lookup.payment),
            ProviderStep::Capture | ProviderStep::Void => form::intent(lookup.reference.as_deref()),
            // The protocol has no place where refunds could be looked up by what we know of them.
            ProviderStep::Refund => return LookupResult::Unclear(Cause::Unreadable),
            // Nor payouts, until the provider has named them.
            ProviderStep::Payout if lookup.reference.is_none() => {
                return LookupResult::Unclear(Cause::Unreadable);
            }
            ProviderStep::Payout => form::payout(lookup.reference.as_deref()),
        };
        let path = path.filter(|_| self.serves(&lookup.binding));
        let Some(uri) = path.and_then(|path| at(&lookup.binding.endpoint, &path)) else {
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
fn is_worded(status: StatusCode) -> bool {
    status.is_success() || matches!(status.as_u16(), 400..=404)
}
