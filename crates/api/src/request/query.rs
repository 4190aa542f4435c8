//! Query strings. Lists have two parameters, balances have one, other routes have no parameters.
//! Unknown names are refused, as in bodies.

use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::limits::{PAGE_DEFAULT, PAGE_MAX};
use counterfoil_core::types::position::Position;
use counterfoil_core::types::reference::{ReferenceKind, References};
use counterfoil_store::Upto;
use counterfoil_wire::names::{nearest, printable};
use counterfoil_wire::problem::{Code, Problem};
use counterfoil_wire::{form, time};
use http::Uri;

/// Most problems reported per answer.
const PROBLEMS_MAX: usize = 32;

/// The requested page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) limit: usize,
    pub(crate) starting_after: Option<String>,
}

impl Page {
    /// Reads `limit` and `starting_after`.
    pub(crate) fn read(query: Option<&str>) -> Result<Page, Problem> {
        let ([limit, starting_after], mut flaws) = parameters(query, ["limit", "starting_after"])?;
        let limit = match limit.as_deref().map(parse_digits) {
            None => PAGE_DEFAULT,
            Some(Some(limit @ 1..=PAGE_MAX)) => limit,
            Some(Some(_) | None) => {
                flaws.push(flaw(format!(
                    "the query parameter `limit` must be a whole number from 1 to {PAGE_MAX}"
                )));
                PAGE_DEFAULT
            }
        };
        if flaws.is_empty() { Ok(Page { limit, starting_after }) } else { Err(invalid(flaws)) }
    }

    /// The id behind `starting_after`, if the parameter was sent.
    pub(crate) fn cursor(
        &self,
        references: &References,
        kind: ReferenceKind,
    ) -> Result<Option<i64>, Problem> {
        match &self.starting_after {
            None => Ok(None),
            Some(text) => references.open(kind, text).map(Some).ok_or_else(Page::bad_cursor),
        }
    }

    /// The problem that `starting_after` names nothing in this list.
    pub(crate) fn bad_cursor() -> Problem {
        invalid(vec![flaw(
            "the query parameter `starting_after` is not an id of this list; send the id of the last element you have".to_owned(),
        )])
    }
}

/// Reads `at`, the position or time up to which a balance is requested.
pub(crate) fn upto(query: Option<&str>) -> Result<Upto, Problem> {
    let ([at], mut flaws) = parameters(query, ["at"])?;
    let upto = match at.as_deref() {
        None => Some(Upto::Now),
        Some(text) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().ok().map(|position| Upto::Position(Position(position)))
        }
        // An unescaped `+` arrives as a space, and no valid time contains a space.
        Some(text) => time::parse(&text.replace(' ', "+")).map(Upto::Time),
    };
    match upto {
        Some(upto) if flaws.is_empty() => return Ok(upto),
        Some(_) => {}
        None => flaws.push(flaw(
            "the query parameter `at` must be a position, like 42, or an RFC 3339 time, like 2026-01-31T12:00:00Z"
                .to_owned(),
        )),
    }
    Err(invalid(flaws))
}

/// The values of the named parameters, and the problems of all others.
fn parameters<const N: usize>(
    query: Option<&str>,
    names: [&str; N],
) -> Result<([Option<String>; N], Vec<Flaw>), Problem> {
    let mut values = [const { None }; N];
    let mut flaws = Vec::new();
    let pairs = pairs(query.unwrap_or_default()).map_err(|flaw| invalid(vec![flaw]))?;
    for (name, value) in pairs {
        let slot = names.iter().zip(&mut values).find(|(known, _)| **known == name);
        match slot {
            Some((_, slot)) if slot.is_none() => *slot = Some(value),
            Some(_) => flaws.push(flaw(format!("the query parameter `{name}` stands twice; send it once"))),
            None => flaws.push(unknown(&name, &names)),
        }
    }
    flaws.truncate(PROBLEMS_MAX);
    Ok((values, flaws))
}

fn pairs(query: &str) -> Result<Vec<(String, String)>, Flaw> {
    form::pairs(query.as_bytes()).map_err(|error| flaw(error.message))
}

/// Refuses every parameter.
pub(crate) fn must_be_empty(uri: &Uri) -> Result<(), Problem> {
    let flaws = unexpected(uri.query());
    if flaws.is_empty() { Ok(()) } else { Err(invalid(flaws)) }
}

/// The problems of a query on a route without parameters.
pub(crate) fn unexpected(query: Option<&str>) -> Vec<Flaw> {
    match query {
        None | Some("") => Vec::new(),
        Some(query) => match pairs(query) {
            Ok(pairs) => pairs.iter().take(PROBLEMS_MAX).map(|(name, _)| unknown(name, &[])).collect(),
            Err(flaw) => vec![flaw],
        },
    }
}

/// Lists the flaws in a problem, without repetitions.
pub(crate) fn invalid(mut flaws: Vec<Flaw>) -> Problem {
    flaws.dedup();
    Problem::new(Code::InvalidRequest).errors(flaws)
}

/// Parses plain digits; signs and spaces are refused.
fn parse_digits(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn unknown(name: &str, known: &[&str]) -> Flaw {
    let shown = printable(name);
    flaw(match nearest(name, known) {
        Some(meant) => {
            format!("`{shown}` is not a query parameter of this route; did you mean `{meant}`?")
        }
        None => format!("`{shown}` is not a query parameter of this route; leave it out"),
    })
}

/// Pointers lead into bodies, so a flaw of the query points to the whole request.
fn flaw(message: String) -> Flaw {
    Flaw::new("", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read_and_bad_parameters_refused() {
        let page = |query| Page::read(query).ok().map(|page| (page.limit, page.starting_after));
        assert_eq!(page(None), Some((20, None)));
        assert_eq!(page(Some("")), Some((20, None)));
        assert_eq!(page(Some("limit=100&starting_after=ch_1")), Some((100, Some("ch_1".to_owned()))));
        assert_eq!(page(Some("limit=%31")), Some((1, None)));
        for bad in [
            "limit=0",
            "limit=101",
            "limit=",
            "limit=+1",
            "limit=-1",
            "limit=1.0",
            "limit=1&limit=1",
            "limt=1",
            "x",
            "limit=%zz",
            "limit=99999999999999999999999",
        ] {
            assert_eq!(page(Some(bad)), None, "{bad}");
        }
    }

    #[test]
    fn balances_are_read_up_to_a_position_or_a_time() {
        use counterfoil_core::types::time::Time;
        let at = |query| upto(query).ok();
        assert_eq!(at(None), Some(Upto::Now));
        assert_eq!(at(Some("at=0")), Some(Upto::Position(Position(0))));
        assert_eq!(at(Some("at=18446744073709551615")), Some(Upto::Position(Position(u64::MAX))));
        let noon = Some(Upto::Time(Time::from_ms(1_769_860_800_000)));
        for query in [
            "at=2026-01-31T12:00:00Z",
            "at=2026-01-31T14:00:00%2B02:00",
            "at=2026-01-31T14:00:00+02:00",
            "at=2026-01-31T09%3A00%3A00.0009-03%3A00",
        ] {
            assert_eq!(at(Some(query)), noon, "{query}");
        }
        for bad in [
            "at=",
            "at=-1",
            "at=%2B1",
            "at=1.0",
            "at=18446744073709551616",
            "at=now",
            "at=2026-01-31",
            "at=2026-01-31 12:00:00Z",
            "at=1&at=1",
            "ta=1",
            "limit=1",
            "at=%zz",
        ] {
            assert_eq!(at(Some(bad)), None, "{bad}");
        }
    }

    #[test]
    fn routes_without_parameters_refuse_all() {
        assert!(unexpected(None).is_empty() && unexpected(Some("")).is_empty());
        assert_eq!(unexpected(Some("a=1&b=2")).len(), 2);
        assert_eq!(unexpected(Some("%zz")).len(), 1);
    }
}
