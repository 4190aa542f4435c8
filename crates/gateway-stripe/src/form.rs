//! What is sent: the form of a new payment and the path of a search. The same call gives the same bytes.

use counterfoil_core::payments::provider::Step;
use counterfoil_gateway::Call;
use std::fmt::Write;

/// Where payments are created.
pub(crate) const CREATE_PATH: &str = "/v1/payment_intents";

const SEARCH_PATH: &str = "/v1/payment_intents/search?query=metadata%5B%27counterfoil_payment%27%5D%3A%27";
const QUOTE: &str = "%27";

/// The form of one step.
pub(crate) fn create(call: &Call) -> String {
    let mut form = String::with_capacity(256);
    form.push_str("amount=");
    // Writing to a string cannot fail.
    let _ = write!(form, "{}", call.amount.minor());
    form.push_str("&currency=");
    form.extend(call.amount.asset().code().chars().map(|letter| letter.to_ascii_lowercase()));
    form.push_str("&payment_method=");
    push_encoded(&mut form, call.payment_method.reveal());
    form.push_str("&confirm=true&capture_method=");
    form.push_str(match call.step {
        Step::Charge => "automatic",
        Step::Authorize => "manual",
    });
    form.push_str("&metadata[counterfoil_payment]=");
    push_encoded(&mut form, &call.payment);
    form.push_str("&metadata[counterfoil_step]=");
    form.push_str(call.step.name());
    form
}

/// The path and query of a search for our reference; nothing if the reference cannot be one of ours, since quotes
/// in it would change the meaning of the query.
pub(crate) fn search(payment: &str) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (!payment.is_empty() && payment.bytes().all(plain)).then(|| [SEARCH_PATH, payment, QUOTE].concat())
}

fn push_encoded(form: &mut String, value: &str) {
    form.extend(form_urlencoded::byte_serialize(value.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_core::outbox::Pinned;
    use counterfoil_core::types::asset::Asset;
    use counterfoil_core::types::mask::Masked;
    use counterfoil_core::types::money::Money;

    fn call(step: Step, payment_method: &str) -> Call {
        Call {
            pinned: Pinned { profile: "stripe".into(), endpoint: "http://127.0.0.1:1".into() },
            step,
            key: "cfkey".into(),
            payment: "ch_1".into(),
            amount: Money::new(1250, Asset::parse("USD").unwrap()).unwrap(),
            payment_method: Masked::new(payment_method.into()),
        }
    }

    #[test]
    fn a_charge_is_captured_at_once() {
        assert_eq!(
            create(&call(Step::Charge, "pm_card_visa")),
            "amount=1250&currency=usd&payment_method=pm_card_visa&confirm=true&capture_method=automatic\
             &metadata[counterfoil_payment]=ch_1&metadata[counterfoil_step]=charge"
        );
    }

    #[test]
    fn an_authorization_is_captured_later() {
        let form = create(&call(Step::Authorize, "pm_card_visa"));
        assert!(form.contains("&capture_method=manual&"), "{form}");
        assert!(form.ends_with("&metadata[counterfoil_step]=authorize"), "{form}");
    }

    #[test]
    fn a_token_cannot_add_fields() {
        let form = create(&call(Step::Charge, "pm&amount=1 é"));
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
