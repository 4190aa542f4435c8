//! `GET /v1/payment_intents/{id}` and `/search`: the provider's state in queries, which may lag
//! behind the truth.

use bytes::Bytes;

use super::Status;
use crate::answer::{Answer, Reply, search_result};
use crate::form::Form;
use crate::refusal::Refusal;
use crate::state::State;

/// Stripe's page sizes.
const LIMIT_DEFAULT: usize = 10;
const LIMIT_MAX: usize = 100;

/// A well-formed search.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Search {
    payment: String,
    limit: usize,
}

impl Search {
    pub(crate) fn parse(mut form: Form<'_>) -> Result<Search, Refusal> {
        let query = form.require("query")?;
        let payment = payment_of(&query).ok_or_else(|| {
            let message =
                "Invalid query: this provider searches for metadata['counterfoil_payment']:'VALUE' only.";
            Refusal::param("query", "parameter_invalid", message)
        })?;
        let limit = match form.take("limit") {
            None => LIMIT_DEFAULT,
            Some(text) => {
                text.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit)).ok_or_else(|| {
                    let message = format!("Invalid limit: must be an integer from 1 to {LIMIT_MAX}.");
                    Refusal::param("limit", "parameter_invalid_integer", message)
                })?
            }
        };
        form.finish(&["expand"])?;
        Ok(Search { payment, limit })
    }
}

/// The intent in its state at `as_of_ms`.
pub(crate) fn get(state: &State, id: &str, as_of_ms: u64) -> Reply {
    let seen = state.intent_number(id).and_then(|number| {
        state.intent(number).status_at(as_of_ms).map(|status| Answer::Intent { number, status })
    });
    match seen {
        Some(answer) => answer.render(state),
        None => Reply::refused(&Refusal::no_intent(id, "intent")),
    }
}

/// The intents of a payment in their states at `as_of_ms`, newest first.
pub(crate) fn search(state: &State, search: &Search, as_of_ms: u64) -> Bytes {
    let mut found: Vec<(u32, Status)> = Vec::new();
    let mut has_more = false;
    let mut next = state.newest_intent(&search.payment);
    while let Some(number) = next {
        let intent = state.intent(number);
        if let Some(status) = intent.status_at(as_of_ms) {
            if found.len() == search.limit {
                has_more = true;
                break;
            }
            found.push((number, status));
        }
        next = intent.earlier;
    }
    search_result(state, &found, has_more)
}

/// Parses `metadata['counterfoil_payment']:'VALUE'`, with either kind of quote and `\` before a
/// quote or itself.
fn payment_of(query: &str) -> Option<String> {
    let rest = query.trim().strip_prefix("metadata[")?;
    let (name, rest) = quoted(rest)?;
    let (value, rest) = quoted(rest.strip_prefix("]:")?)?;
    (name == "counterfoil_payment" && rest.is_empty()).then_some(value)
}

fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|first| matches!(first, '\'' | '"'))?;
    let mut value = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.push(characters.next()?.1),
            end if end == quote => return Some((value, &text[at + 1..])),
            plain => value.push(plain),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::payment_of;

    #[test]
    fn queries_name_one_payment() {
        assert_eq!(payment_of("metadata['counterfoil_payment']:'ch_1'").as_deref(), Some("ch_1"));
        assert_eq!(payment_of(r#"metadata["counterfoil_payment"]:"ch_1""#).as_deref(), Some("ch_1"));
        assert_eq!(payment_of(r"metadata['counterfoil_payment']:'a\'b\\é'").as_deref(), Some(r"a'b\é"));
    }

    #[test]
    fn other_queries_are_refused() {
        for query in [
            "",
            "metadata[",
            "metadata['counterfoil_payment']",
            "metadata['counterfoil_payment']:ch_1",
            "metadata['counterfoil_payment']:'ch_1",
            r"metadata['counterfoil_payment']:'ch_1\",
            "metadata['counterfoil_payment']:'a' AND status:'succeeded'",
            "metadata['order']:'a'",
            "status:'succeeded'",
        ] {
            assert_eq!(payment_of(query), None, "{query}");
        }
    }
}
