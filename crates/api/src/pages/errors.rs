//! `GET /errors` and `GET /errors/{code}`: the meaning and the remedy of each error, as HTML or as
//! text.

use super::docs::harden;
use super::markdown;
use crate::answer::{self, Answer, Answered};
use crate::request::Call;
use counterfoil_wire::problem::{Code, Problem};
use http::header::{ACCEPT, HeaderValue, VARY};
use std::fmt::Write as _;

const FRAME: &str = include_str!("errors.html");

/// All errors, with links to the pages.
#[utoipa::path(get, path = "/errors", tag = "Errors", responses((status = 200, description = "A page, or text for clients that do not ask for HTML.")))]
pub(crate) async fn index(call: Call) -> Answered {
    let mut text = String::from("# Errors\n\nEvery error this server answers with, by its code.\n\n");
    for code in Code::ALL {
        let _ = writeln!(text, "- [{0}](/errors/{0}): {1}, {2}", code.name(), code.status(), code.title());
    }
    Ok(render("Errors", &text, &call))
}

/// The meaning and the remedy of an error.
#[utoipa::path(
    get,
    path = "/errors/{code}",
    tag = "Errors",
    params(("code" = String, Path, description = "The code, as in `error`")),
    responses(
        (status = 200, description = "A page, or text for clients that do not ask for HTML."),
        (status = 404, description = "`not_found`: there is no such code", body = counterfoil_wire::problem::schema::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn page(call: Call) -> Answered {
    let code = Code::ALL.iter().find(|code| code.name() == call.parameter());
    let code = code.ok_or(Problem::new(Code::NotFound))?;
    Ok(render(code.title(), code.page(), &call))
}

fn render(title: &str, text: &str, call: &Call) -> Answer {
    let accept = call.headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let nonce = call.exchange.id.to_string();
    let mut answer = if accept.is_some_and(|accept| accept.contains("text/html")) {
        let html = FRAME
            .replace("{{nonce}}", &nonce)
            .replace("{{title}}", title)
            .replace("{{body}}", &markdown::html(text));
        answer::ok("text/html; charset=utf-8", html)
    } else {
        answer::ok("text/plain; charset=utf-8", text.to_owned())
    };
    harden(
        answer.headers_mut(),
        &format!(
            "default-src 'none'; style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
    );
    answer.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    answer
}
