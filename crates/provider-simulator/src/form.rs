//! Form-encoded parameters, read strictly.
//!
//! Owns decoding, the fingerprint that tells one request from another, and the refusals of
//! malformed, repeated or unknown parameters. The request that takes a parameter gives it its
//! meaning.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::answer::Json;
use crate::refusal::Refusal;

/// Parameters of a request; far above what the connector sends.
const PAIRS_MAX: usize = 128;
/// Stripe's largest amount (twelve digits), so that sums of amounts stay far from overflow.
const AMOUNT_MAX: u64 = 999_999_999_999;
/// Stripe's bounds on metadata.
const METADATA_KEYS_MAX: usize = 50;
const METADATA_NAME_MAX: usize = 40;
const METADATA_VALUE_MAX: usize = 500;

/// The remaining parameters, by name.
pub(crate) struct Form<'a> {
    pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// Metadata as it is answered, and the one entry that the simulator understands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Metadata {
    /// The JSON object, rendered once.
    pub(crate) json: Box<str>,
    /// `counterfoil_payment`.
    pub(crate) payment: Option<Arc<str>>,
}

impl<'a> Form<'a> {
    /// Decodes a body or a query string.
    pub(crate) fn parse(encoded: &'a [u8]) -> Result<Form<'a>, Refusal> {
        if !escapes_are_whole(encoded) {
            return Err(Refusal::request("The form is malformed: '%' must be followed by two hex digits."));
        }
        let mut pairs = Vec::with_capacity(8);
        for (name, value) in form_urlencoded::parse(encoded) {
            // The decoder puts this character where the bytes were not UTF-8.
            if name.contains('\u{fffd}') || value.contains('\u{fffd}') {
                return Err(Refusal::request("The form is malformed: names and values must be UTF-8."));
            }
            if pairs.len() == PAIRS_MAX {
                return Err(Refusal::request(format!("The form has more than {PAIRS_MAX} parameters.")));
            }
            pairs.push((name, value));
        }
        pairs.sort();
        for pair in pairs.windows(2) {
            if pair[0].0 == pair[1].0 && !pair[0].0.ends_with("[]") {
                let name = &pair[0].0;
                return Err(Refusal::param(name, "parameter_invalid", format!("Received '{name}' twice.")));
            }
        }
        Ok(Form { pairs })
    }

    /// Equal for the same endpoint and parameters in any order. Compared only between requests with
    /// one key, so 64 bits are ample.
    pub(crate) fn fingerprint(&self, path: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        self.pairs.hash(&mut hasher);
        hasher.finish()
    }

    /// Takes a parameter out, if present.
    pub(crate) fn take(&mut self, name: &str) -> Option<Cow<'a, str>> {
        let position = self.pairs.iter().position(|(sent, _)| sent == name)?;
        Some(self.pairs.remove(position).1)
    }

    /// Takes a parameter out; refuses a request without it.
    pub(crate) fn require(&mut self, name: &str) -> Result<Cow<'a, str>, Refusal> {
        self.take(name).ok_or_else(|| {
            Refusal::param(name, "parameter_missing", format!("Missing required param: {name}."))
        })
    }

    /// Takes a positive amount of minor units, if present.
    pub(crate) fn take_amount(&mut self, name: &str) -> Result<Option<u64>, Refusal> {
        self.take(name).map(|text| amount(name, &text)).transpose()
    }

    /// Takes a positive amount of minor units; refuses a request without it.
    pub(crate) fn require_amount(&mut self, name: &str) -> Result<u64, Refusal> {
        amount(name, &self.require(name)?)
    }

    /// Takes every `metadata[name]`.
    pub(crate) fn take_metadata(&mut self) -> Result<Metadata, Refusal> {
        let mut json = Json::with_capacity(128);
        let (mut taken, mut payment) = (0, None);
        json.raw("{");
        for (param, value) in &self.pairs {
            let Some(name) = metadata_name(param) else {
                continue;
            };
            taken += 1;
            let in_bounds = taken <= METADATA_KEYS_MAX
                && (1..=METADATA_NAME_MAX).contains(&name.chars().count())
                && value.chars().count() <= METADATA_VALUE_MAX;
            if !in_bounds {
                let message = format!(
                    "Metadata takes up to {METADATA_KEYS_MAX} keys, names of 1 to {METADATA_NAME_MAX} characters \
                     and values up to {METADATA_VALUE_MAX}."
                );
                return Err(Refusal::param(param, "parameter_invalid", message));
            }
            if taken > 1 {
                json.raw(",");
            }
            json.quoted(name).raw(":").quoted(value);
            if name == "counterfoil_payment" {
                payment = Some(Arc::from(value.as_ref()));
            }
        }
        json.raw("}");
        self.pairs.retain(|(param, _)| metadata_name(param).is_none());
        Ok(Metadata { json: json.into_text(), payment })
    }

    /// Refuses remaining parameters, except the given ones of Stripe's that change nothing here.
    pub(crate) fn finish(self, without_effect: &[&str]) -> Result<(), Refusal> {
        for (param, _) in &self.pairs {
            let base = param.split('[').next().unwrap_or(param);
            if !without_effect.contains(&base) {
                let message = format!("Received unknown parameter: {param}");
                return Err(Refusal::param(param, "parameter_unknown", message));
            }
        }
        Ok(())
    }
}

fn amount(name: &str, text: &str) -> Result<u64, Refusal> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u64>() {
        Ok(amount) if digits && (1..=AMOUNT_MAX).contains(&amount) => Ok(amount),
        Ok(_) | Err(_) => {
            let message =
                format!("Invalid {name}: must be an integer from 1 to {AMOUNT_MAX} in minor units.");
            Err(Refusal::param(name, "parameter_invalid_integer", message))
        }
    }
}

fn metadata_name(param: &str) -> Option<&str> {
    param.strip_prefix("metadata[")?.strip_suffix(']')
}

fn escapes_are_whole(encoded: &[u8]) -> bool {
    encoded.iter().enumerate().filter(|(_, byte)| **byte == b'%').all(|(at, _)| {
        encoded.get(at + 1..at + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

#[cfg(test)]
mod tests {
    use super::Form;

    fn message(encoded: &[u8]) -> String {
        match Form::parse(encoded) {
            Ok(_) => panic!("{encoded:?} was accepted"),
            Err(refusal) => refusal.message.into(),
        }
    }

    #[test]
    fn malformed_forms_are_refused() {
        assert!(message(b"amount=%").contains("two hex digits"));
        assert!(message(b"amount=%zz").contains("two hex digits"));
        assert!(message(b"amount=1%2").contains("two hex digits"));
        assert!(message(b"amount=%ff").contains("UTF-8"));
        assert!(message(b"amount=\xff").contains("UTF-8"));
        assert!(message(b"amount=1&amount=2").contains("twice"));
        assert!(message("a&".repeat(500).as_bytes()).contains("more than 128"));
    }

    #[test]
    fn the_fingerprint_ignores_order_but_nothing_else() {
        let of = |encoded: &'static [u8], path| Form::parse(encoded).unwrap().fingerprint(path);
        assert_eq!(of(b"a=1&b=2", "/x"), of(b"b=2&a=1", "/x"));
        assert_ne!(of(b"a=1&b=2", "/x"), of(b"a=1&b=3", "/x"));
        assert_ne!(of(b"a=1&b=2", "/x"), of(b"a=1&b=2", "/y"));
        assert_ne!(of(b"ab=c", "/x"), of(b"a=bc", "/x"));
    }

    #[test]
    fn amounts_are_plain_positive_integers() {
        for text in ["", "0", "-1", "+1", "1.0", "1e3", " 1", "1000000000000", "99999999999999999999999", "x"]
        {
            let encoded: String =
                form_urlencoded::Serializer::new(String::new()).append_pair("amount", text).finish();
            assert!(Form::parse(encoded.as_bytes()).unwrap().require_amount("amount").is_err(), "{text:?}");
        }
        assert_eq!(
            Form::parse(b"amount=999999999999").unwrap().require_amount("amount"),
            Ok(999_999_999_999)
        );
    }

    #[test]
    fn metadata_is_rendered_and_its_payment_kept() {
        let mut form = Form::parse(b"metadata[counterfoil_payment]=p%221&metadata[a]=%0a&x=1").unwrap();
        let metadata = form.take_metadata().unwrap();
        assert_eq!(&*metadata.json, r#"{"a":"\n","counterfoil_payment":"p\"1"}"#);
        assert_eq!(metadata.payment.as_deref(), Some("p\"1"));
        assert_eq!(form.finish(&[]).unwrap_err().param.as_deref(), Some("x"));
    }
}
