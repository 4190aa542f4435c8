//! The connector itself: the port's calls as requests, and their failures as outcomes.

use crate::answer;
use crate::deadline::Deadline;
use crate::form::{self, INTENTS_PATH};
use crate::letter::Letter;
use crate::settings::{Address, Bounds, Settings, SettingsError};
use crate::transport::{Failure, Transport};
use counterfoil_core::outbox::Pinned;
use counterfoil_core::payments::provider::{Cause, Found, Outcome, Rules, Step};
use counterfoil_core::types::time::Span;
use counterfoil_gateway::{Call, Gateway, Lookup, Profile};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request, Uri};
use std::fmt;
use std::future::Future;
use std::time::Duration;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// What is assumed of a provider whose profile this build does not know: it keeps no promise at all.
const UNKNOWN_PROVIDER: Rules = Rules {
    dedup_window: None,
    stores_errors: true,
    reexecutes_errors: true,
    queryable: false,
    // The longest timeout there is; `rules` puts the connector's own here.
    send_within: Span::from_ms(10 * 60 * 1_000),
    late_delivery: Span::from_ms(24 * 60 * 60 * 1_000),
    query_lag: Span::from_ms(24 * 60 * 60 * 1_000),
    key_bytes_max: 64,
};

/// A provider that speaks Stripe's protocol.
pub struct StripeGateway {
    profile: &'static Profile,
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
        settings.check()?;
        let Settings { url, profile, bounds, timeout, connections_max } = settings;
        let address = Address::parse(url.reveal())?;
        let create = at(&address.endpoint, INTENTS_PATH).ok_or(SettingsError::Host)?;
        let mut authorization = HeaderValue::try_from(format!("Bearer {}", address.key.reveal()))
            .map_err(|_| SettingsError::KeyUnusable)?;
        authorization.set_sensitive(true);
        Ok(StripeGateway {
            profile,
            bounds,
            create,
            authorization,
            transport: Transport::new(timeout, connections_max, address.is_https)?,
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

    /// Where a call goes: to the payment's own endpoint, which is usually ours.
    fn place(&self, call: &Call) -> Option<Uri> {
        if matches!(call.step, Step::Charge | Step::Authorize) && call.pinned.endpoint == self.endpoint {
            return Some(self.create.clone());
        }
        at(&call.pinned.endpoint, &form::path(call)?)
    }

    async fn send(&self, call: Call, deadline: Deadline) -> Outcome {
        let (Some(uri), Ok(key)) = (self.place(&call), HeaderValue::from_str(&call.key)) else {
            tracing::error!(
                payment = call.payment,
                endpoint = call.pinned.endpoint,
                "the payment's endpoint, reference or key cannot be put into a request"
            );
            return Outcome::NotSent;
        };
        let (letter, receipt) = Letter::new(form::body(&call), deadline);
        let mut request = self.request(Method::POST, uri, letter);
        request.headers_mut().insert(CONTENT_TYPE, FORM);
        request.headers_mut().insert(IDEMPOTENCY_KEY, key);
        let failure = match self.transport.exchange(request).await {
            Ok(answer) => return answer::outcome(&answer, &call),
            Err(failure) => failure,
        };
        // Only the receipt knows, and asking it makes it final.
        let never_left = receipt.withdraw();
        match failure {
            Failure::Full => Outcome::Busy { retry_after: None },
            Failure::Timeout | Failure::Cut if never_left => Outcome::NotSent,
            Failure::Timeout | Failure::Cut | Failure::TooLarge => Outcome::Unknown(cause(failure)),
        }
    }
}

impl Gateway for StripeGateway {
    fn pinned(&self) -> Pinned {
        Pinned { profile: self.profile.name.to_owned(), endpoint: self.endpoint.clone() }
    }

    fn rules(&self, pinned: &Pinned) -> Rules {
        let mut rules = Profile::named(&pinned.profile).map_or(UNKNOWN_PROVIDER, |profile| profile.rules);
        // What is known better is known of the provider that is set, not of one that old work is bound to.
        if pinned.profile == self.profile.name {
            rules = self.bounds.of(rules);
        }
        // How long a request may wait for a slot and a connection is ours to say, whoever the provider is.
        Rules { send_within: whole_ms(self.transport.timeout()), ..rules }
    }

    fn call(&self, call: Call) -> impl Future<Output = Outcome> + Send {
        // Outside the future: time runs from here, not from when somebody gets round to polling it.
        let deadline = self.transport.deadline();
        self.send(call, deadline)
    }

    async fn lookup(&self, lookup: Lookup) -> Found {
        let path = match lookup.step {
            Step::Charge | Step::Authorize => form::search(&lookup.payment),
            Step::Capture | Step::Void => form::intent(lookup.reference.as_deref()),
            // The protocol has no place where refunds could be looked up by what we know of them.
            Step::Refund => return Found::Unclear(Cause::Unreadable),
            // Nor payouts, until the provider has named them.
            Step::Payout if lookup.reference.is_none() => return Found::Unclear(Cause::Unreadable),
            Step::Payout => form::payout(lookup.reference.as_deref()),
        };
        let Some(uri) = path.and_then(|path| at(&lookup.pinned.endpoint, &path)) else {
            tracing::error!(
                payment = lookup.payment,
                endpoint = lookup.pinned.endpoint,
                "the payment's endpoint or reference cannot be put into a search"
            );
            return Found::Unclear(Cause::Unreadable);
        };
        let (empty, _) = Letter::new("", self.transport.deadline());
        match self.transport.exchange(self.request(Method::GET, uri, empty)).await {
            Ok(answer) => answer::found(&answer, &lookup),
            Err(failure) => Found::Unclear(cause(failure)),
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

fn at(endpoint: &str, path: &str) -> Option<Uri> {
    Uri::try_from([endpoint, path].concat()).ok()
}

/// Rounded up: a promise may be kept early.
fn whole_ms(duration: Duration) -> Span {
    Span::from_ms(u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

fn cause(failure: Failure) -> Cause {
    match failure {
        Failure::Full => Cause::InProgress,
        Failure::Timeout => Cause::Timeout,
        Failure::Cut => Cause::Cut,
        Failure::TooLarge => Cause::Unreadable,
    }
}
