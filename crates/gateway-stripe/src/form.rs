//! Requests: path and form of each step, and paths of lookups. The same call gives the same bytes.

use counterfoil_core::payments::provider::ProviderStep;
use counterfoil_gateway::ProviderCall;
use std::fmt::Write;

/// The path for creating payments.
pub(crate) const INTENTS_PATH: &str = "/v1/payment_intents";

const REFUNDS_PATH: &str = "/v1/refunds";
const PAYOUTS_PATH: &str = "/v1/payouts";
const SEARCH_PATH: &str = "/v1/payment_intents/search?query=metadata%5B%27counterfoil_payment%27%5D%3A%27";
const QUOTE: &str = "%27";

/// The path of a step; `None` if the payment's reference is unknown or cannot be part of a path.
pub(crate) fn path(call: &ProviderCall) -> Option<String> {
    match call.step {
        ProviderStep::Charge | ProviderStep::Authorize => Some(INTENTS_PATH.to_owned()),
        ProviderStep::Capture => Some([&intent(call.reference.as_deref())?, "/capture"].concat()),
        ProviderStep::Void => Some([&intent(call.reference.as_deref())?, "/cancel"].concat()),
        ProviderStep::Refund => plain(call.reference.as_deref()?).then(|| REFUNDS_PATH.to_owned()),
        ProviderStep::Payout => Some(PAYOUTS_PATH.to_owned()),
    }
}

/// The path of a payment intent.
pub(crate) fn intent(reference: Option<&str>) -> Option<String> {
    let reference = reference?;
    plain(reference).then(|| [INTENTS_PATH, "/", reference].concat())
}

/// The path of a payout.
pub(crate) fn payout(reference: Option<&str>) -> Option<String> {
    let reference = reference?;
    plain(reference).then(|| [PAYOUTS_PATH, "/", reference].concat())
}

/// The form of a step. No form is empty, because a request without a body could be sent after its
/// deadline.
pub(crate) fn body(call: &ProviderCall) -> String {
    match call.step {
        ProviderStep::Charge | ProviderStep::Authorize => create(call),
        ProviderStep::Capture => format!("amount_to_capture={}", call.amount.minor()),
        ProviderStep::Void => "cancellation_reason=requested_by_customer".to_owned(),
        ProviderStep::Refund => {
            let mut form = String::from("payment_intent=");
            push_encoded(&mut form, call.reference.as_deref().unwrap_or_default());
            let _ = write!(form, "&amount={}", call.amount.minor());
            form
        }
        ProviderStep::Payout => pay_out(call),
    }
}

/// The form of a new payment.
fn create(call: &ProviderCall) -> String {
    let mut form = money(call);
    if let Some(method) = &call.instrument {
        form.push_str("&payment_method=");
        push_encoded(&mut form, method.reveal());
    }
    form.push_str("&confirm=true&capture_method=");
    form.push_str(if call.step == ProviderStep::Charge { "automatic" } else { "manual" });
    push_ours(&mut form, call);
    form
}

/// The form of a payout.
fn pay_out(call: &ProviderCall) -> String {
    let mut form = money(call);
    if let Some(destination) = &call.instrument {
        form.push_str("&destination=");
        push_encoded(&mut form, destination.reveal());
    }
    push_ours(&mut form, call);
    form
}

fn money(call: &ProviderCall) -> String {
    let mut form = String::with_capacity(256);
    form.push_str("amount=");
    // Writing to a string cannot fail.
    let _ = write!(form, "{}", call.amount.minor());
    form.push_str("&currency=");
    form.extend(call.amount.asset().code().chars().map(|letter| letter.to_ascii_lowercase()));
    form
}

/// Appends the metadata of every payment: our reference, and the step.
fn push_ours(form: &mut String, call: &ProviderCall) {
    form.push_str("&metadata[counterfoil_payment]=");
    push_encoded(form, &call.payment);
    form.push_str("&metadata[counterfoil_step]=");
    form.push_str(call.step.name());
}

/// The path and query of a search for our reference. `None` if the reference is not well-formed: a
/// quote in it would change the query.
pub(crate) fn search(payment: &str) -> Option<String> {
    plain(payment).then(|| [SEARCH_PATH, payment, QUOTE].concat())
}

/// Whether a reference needs no escaping in a path or query.
fn plain(reference: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !reference.is_empty() && reference.bytes().all(plain)
}

fn push_encoded(form: &mut String, value: &str) {
    form.extend(form_urlencoded::byte_serialize(value.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_core::outbox::ProviderBinding;
    use counterfoil_core::types::asset::Asset;
    use counterfoil_core::types::mask::Masked;
    use counterfoil_core::types::money::Money;

    fn call(step: ProviderStep, payment_method: &str) -> ProviderCall {
        ProviderCall {
            binding: ProviderBinding { profile: "stripe".into(), endpoint: "http://127.0.0.1:1".into() },
            step,
            key: "cfkey".into(),
            payment: "ch_1".into(),
            reference: None,
            amount: Money::new(1250, Asset::parse("USD").unwrap()).unwrap(),
            instrument: Some(Masked::new(payment_method.into())),
        }
    }

    #[test]
    fn a_charge_is_captured_at_once() {
        assert_eq!(
            body(&call(ProviderStep::Charge, "pm_card_visa")),
            "amount=1250&currency=usd&payment_method=pm_card_visa&confirm=true&capture_method=automatic\
             &metadata[counterfoil_payment]=ch_1&metadata[counterfoil_step]=charge"
        );
    }

    #[test]
    fn an_authorization_is_captured_later() {
        let form = body(&call(ProviderStep::Authorize, "pm_card_visa"));
        assert!(form.contains("&capture_method=manual&"), "{form}");
        assert!(form.ends_with("&metadata[counterfoil_step]=authorize"), "{form}");
    }

    #[test]
    fn a_payout_names_its_bank_account_only_if_there_is_one() {
        let to = ProviderCall { payment: "po_1".into(), ..call(ProviderStep::Payout, "ba_1&amount=1") };
        assert_eq!(path(&to).as_deref(), Some("/v1/payouts"));
        assert_eq!(
            body(&to),
            "amount=1250&currency=usd&destination=ba_1%26amount%3D1&metadata[counterfoil_payment]=po_1\
             &metadata[counterfoil_step]=payout"
        );
        let plain = body(&ProviderCall { instrument: None, ..to });
        assert!(!plain.contains("destination"), "{plain}");
        assert_eq!(payout(Some("po_9")).as_deref(), Some("/v1/payouts/po_9"));
        for odd in ["", "po_1/cancel", "po 1", "po?x=1"] {
            assert_eq!(payout(Some(odd)), None, "{odd}");
        }
    }

    #[test]
    fn later_steps_name_the_payment_in_the_path() {
        let step = |step| ProviderCall { reference: Some("pi_1".into()), ..call(step, "pm") };
        for (asked, place, form) in [
            (ProviderStep::Capture, "/v1/payment_intents/pi_1/capture", "amount_to_capture=1250"),
            (
                ProviderStep::Void,
                "/v1/payment_intents/pi_1/cancel",
                "cancellation_reason=requested_by_customer",
            ),
            (ProviderStep::Refund, "/v1/refunds", "payment_intent=pi_1&amount=1250"),
        ] {
            assert_eq!(path(&step(asked)).as_deref(), Some(place));
            assert_eq!(body(&step(asked)), form);
        }
        assert_eq!(path(&call(ProviderStep::Charge, "pm")).as_deref(), Some(INTENTS_PATH));
    }

    #[test]
    fn a_missing_or_malformed_reference_gives_no_path() {
        for asked in [ProviderStep::Capture, ProviderStep::Void, ProviderStep::Refund] {
            assert_eq!(path(&call(asked, "pm")), None);
            for odd in ["", "pi_1/../..", "pi 1", "pi?x=1", "é"] {
                assert_eq!(
                    path(&ProviderCall { reference: Some(odd.into()), ..call(asked, "pm") }),
                    None,
                    "{odd}"
                );
            }
        }
    }

    #[test]
    fn a_token_cannot_add_fields() {
        let form = body(&call(ProviderStep::Charge, "pm&amount=1 é"));
        let fields: Vec<_> = form_urlencoded::parse(form.as_bytes()).collect();
        assert_eq!(fields.len(), 7);
        assert_eq!(fields[2].1, "pm&amount=1 é");
    }

    #[test]
    fn a_search_is_for_a_reference_and_nothing_else() {
        assert_eq!(
            search("ch_1").unwrap(),
            "/v1/payment_intents/search?query=metadata%5B%27counterfoil_payment%27%5D%3A%27ch_1%27"
        );
        for odd in ["", "ch_1' OR status:'succeeded", "ch_1&limit=1", "ch\\", "é"] {
            assert_eq!(search(odd), None, "{odd}");
        }
    }
}
