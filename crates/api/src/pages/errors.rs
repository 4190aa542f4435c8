//! `GET /errors` and `GET /errors/{code}`: what each error means and what to do, as HTML or as text.

use super::docs::harden;
use super::markdown;
use crate::answer::{self, Answer};
use crate::app::App;
use crate::exchange::Exchange;
use crate::route::Route;
use axum::extract::{Request, State};
use counterfoil_wire::problem::{Code, Problem};
use http::header::{ACCEPT, HeaderValue, VARY};
use http::{HeaderMap, Response};
use std::fmt::Write as _;
use std::sync::Arc;

const FRAME: &str = include_str!("errors.html");

/// All errors.
#[utoipa::path(get, path = "/errors", tag = "Errors", responses((status = 200, description = "A page, or text for clients that do not ask for HTML.")))]
pub(crate) async fn index(State(app): State<Arc<App>>, request: Request) -> Response<axum::body::Body> {
    let exchange = Exchange::of(&app, request.extensions());
    let mut text = String::from("# Errors\n\nEvery error this server answers with, by its code.\n\n");
    for code in Code::ALL {
        let _ = writeln!(text, "- [{0}](/errors/{0}): {1}, {2}", code.name(), code.status(), code.title());
    }
    let answer = page_of("Errors", &text, request.headers(), &exchange);
    exchange.finish(Ok(answer))
}

/// One error.
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
pub(crate) async fn page(State(app): State<Arc<App>>, request: Request) -> Response<axum::body::Body> {
    let exchange = Exchange::of(&app, request.extensions());
    let (_, name) = Route::of(request.uri().path());
    let worked = Code::ALL
        .iter()
        .find(|code| code.name() == name)
        .map(|code| page_of(code.title(), code.page(), request.headers(), &exchange))
        .ok_or(Problem::new(Code::NotFound));
    exchange.finish(worked)
}

fn page_of(title: &str, text: &str, headers: &HeaderMap, exchange: &Exchange) -> Answer {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let nonce = exchange.id.to_string();
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
