//! Starting a connector, the bindings it gives to payments, and the secrets it never prints.

use crate::provider::{PATIENT, settings};
use counterfoil_core::outbox::ProviderBinding;
use counterfoil_core::types::time::Span;
use counterfoil_gateway::{Gateway, ProviderProfile};
use counterfoil_gateway_stripe::{ProfileOverrides, StripeGateway, StripeSettings, StripeSettingsError};
use std::time::Duration;

const URL: &str = "stripe+https://sk_live_SECRET@API.stripe.com";

#[test]
fn payments_are_bound_to_the_profile_and_the_endpoint_without_the_key() {
    let gateway = StripeGateway::new(settings(URL, PATIENT)).unwrap();
    let expected = ProviderBinding { profile: "stripe".into(), endpoint: "https://api.stripe.com".into() };
    assert_eq!(gateway.binding(), expected);
}

#[test]
fn the_rules_are_those_of_the_bound_profile_and_the_worst_for_an_unknown_one() {
    let gateway = StripeGateway::new(settings(URL, PATIENT)).unwrap();
    let rules = |profile: &str| {
        gateway.rules(&ProviderBinding { profile: profile.into(), endpoint: "https://elsewhere".into() })
    };
    let mut adyen = ProviderProfile::named("adyen").unwrap().rules;
    adyen.send_within = rules("adyen").send_within;
    assert_eq!(rules("adyen"), adyen);
    assert_eq!((rules("gone").dedup_window, rules("gone").queryable), (None, false));
}

#[test]
fn configured_bounds_replace_those_of_the_own_profile_only() {
    let ms = |ms| Some(Span::from_ms(ms));
    let bounds = ProfileOverrides { dedup_window: ms(7), late_delivery: ms(8), query_lag: None };
    let rules = |set: &str, bound: &str| {
        let profile = ProviderProfile::named(set).unwrap();
        let gateway =
            StripeGateway::new(StripeSettings { profile, bounds, ..settings(URL, PATIENT) }).unwrap();
        gateway.rules(&ProviderBinding { profile: bound.into(), endpoint: "https://elsewhere".into() })
    };
    let (stripe, plain) = (rules("stripe", "stripe"), ProviderProfile::named("stripe").unwrap().rules);
    assert_eq!((stripe.dedup_window, stripe.late_delivery), (ms(7), Span::from_ms(8)));
    assert_eq!(stripe.query_lag, plain.query_lag);
    assert_eq!(rules("adyen", "stripe").dedup_window, plain.dedup_window);
    assert_eq!(rules("braintree-classic", "braintree-classic").dedup_window, None, "it remembers nothing");
}

#[test]
fn requests_are_sent_within_the_timeout_for_every_profile() {
    for (timeout, ms) in [(Duration::from_mins(10), 600_000), (Duration::from_micros(1_500), 2)] {
        let gateway = StripeGateway::new(settings(URL, timeout)).unwrap();
        for profile in ["stripe", "braintree-classic", "gone"] {
            let binding = ProviderBinding { profile: profile.into(), endpoint: "https://elsewhere".into() };
            assert_eq!(gateway.rules(&binding).send_within, Span::from_ms(ms), "{profile}");
        }
    }
}

#[test]
fn the_key_is_never_printed() {
    let settings_shown = format!("{:?}", settings(URL, PATIENT));
    let gateway_shown = format!("{:?}", StripeGateway::new(settings(URL, PATIENT)).unwrap());
    assert!(gateway_shown.contains("https://api.stripe.com"), "{gateway_shown}");
    for shown in [settings_shown, gateway_shown] {
        assert!(!shown.contains("SECRET"), "{shown}");
    }
    for wrong in
        ["http://sk_live_SECRET@h", "stripe+http://sk_live_SECRET", "stripe+http://sk_live_SECRET@h/x"]
    {
        let error = StripeGateway::new(settings(wrong, PATIENT)).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("SECRET"), "{error}");
    }
}

#[test]
fn limits_out_of_range_are_refused() {
    for timeout in [Duration::ZERO, Duration::from_hours(1), Duration::MAX] {
        let refused = StripeGateway::new(settings(URL, timeout)).unwrap_err();
        assert_eq!(refused, StripeSettingsError::Timeout);
    }
    for connections_max in [0, 10_001, usize::MAX] {
        let mut odd = settings(URL, PATIENT);
        odd.connections_max = connections_max;
        assert_eq!(StripeGateway::new(odd).unwrap_err(), StripeSettingsError::Connections);
    }
}
