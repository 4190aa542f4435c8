//! Query strings: the two parameters of lists, and none elsewhere. Unknown names are refused, as in bodies.

use counterfoil_core::types::limits::{PAGE_DEFAULT, PAGE_MAX};
use counterfoil_wire::form;
use counterfoil_wire::names::{nearest, shown};
use counterfoil_wire::problem::{Code, FieldError, Problem};

/// Problems named in one answer.
const PROBLEMS_MAX: usize = 32;

/// Which page of a list is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) limit: usize,
    pub(crate) starting_after: Option<String>,
}

impl Page {
    /// Reads `limit` and `starting_after`.
    pub(crate) fn read(query: Option<&str>) -> Result<Page, Problem> {
        let mut limit = None;
        let mut starting_after = None;
        let mut errors = Vec::new();
        for (name, value) in
            form::pairs(query.unwrap_or_default().as_bytes()).map_err(|error| invalid(vec![error]))?
        {
            let slot = match name.as_str() {
                "limit" => &mut limit,
                "starting_after" => &mut starting_after,
                other => {
                    errors.push(unknown(other, &["limit", "starting_after"]));
                    continue;
                }
            };
            if slot.replace(value).is_some() {
                errors.push(error(format!("the query parameter `{name}` stands twice; send it once")));
            }
        }
        let limit = match limit.as_deref().map(whole) {
            None => PAGE_DEFAULT,
            Some(Some(limit @ 1..=PAGE_MAX)) => limit,
            Some(Some(_) | None) => {
                errors.push(error(format!(
                    "the query parameter `limit` must be a whole number from 1 to {PAGE_MAX}"
                )));
                PAGE_DEFAULT
            }
        };
        errors.truncate(PROBLEMS_MAX);
        if errors.is_empty() { Ok(Page { limit, starting_after }) } else { Err(invalid(errors)) }
    }

    /// `starting_after` is not the id of anything that can be listed.
    pub(crate) fn bad_cursor() -> Problem {
        invalid(vec![error(
            "the query parameter `starting_after` is not an id of this list; send the id of the last element you have".to_owned(),
        )])
    }
}

/// What is wrong with the query of a route that takes none.
pub(crate) fn none(query: Option<&str>) -> Vec<FieldError> {
    match query {
        None | Some("") => Vec::new(),
        Some(query) => match form::pairs(query.as_bytes()) {
            Ok(pairs) => pairs.iter().take(PROBLEMS_MAX).map(|(name, _)| unknown(name, &[])).collect(),
            Err(error) => vec![error],
        },
    }
}

/// The problem that names these errors.
pub(crate) fn invalid(errors: Vec<FieldError>) -> Problem {
    Problem::new(Code::InvalidRequest).errors(errors)
}

/// Plain digits only; a sign or a space is no limit.
fn whole(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn unknown(name: &str, known: &[&str]) -> FieldError {
    let name_shown = shown(name);
    error(match nearest(name, known) {
        Some(meant) => {
            format!("`{name_shown}` is not a query parameter of this route; did you mean `{meant}`?")
        }
        None => format!("`{name_shown}` is not a query parameter of this route; leave it out"),
    })
}

/// Pointers lead into bodies, so an error of the query points to the whole request.
fn error(message: String) -> FieldError {
    FieldError::new("", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages() {
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
    fn routes_without_parameters() {
        assert!(none(None).is_empty() && none(Some("")).is_empty());
        assert_eq!(none(Some("a=1&b=2")).len(), 2);
        assert_eq!(none(Some("%zz")).len(), 1);
    }
}
