//! `GET /openapi.json`: the description of every route, made from the routes themselves.

use crate::answer;
use crate::app::App;
use crate::exchange::Exchange;
use axum::extract::{Request, State};
use counterfoil_wire::problem::schema;
use counterfoil_wire::problem::{Code, Problem};
use http::Response;
use std::sync::Arc;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

/// What the description says besides its routes.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Counterfoil",
        description = "A payments core: it charges at most once, keeps the books, and answers every retry with the same bytes.",
        license(name = "Apache-2.0")
    ),
    components(schemas(schema::Problem, schema::FieldError)),
    modifiers(&ApiKey)
)]
pub(crate) struct Description;

struct ApiKey;

impl Modify for ApiKey {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let scheme =
            HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("An API key, `sk_…`")).build();
        openapi
            .components
            .get_or_insert_default()
            .add_security_scheme("api_key", SecurityScheme::Http(scheme));
    }
}

/// This description.
#[utoipa::path(get, path = "/openapi.json", tag = "Operation", responses((status = 200, description = "OpenAPI 3.1.", content_type = "application/json")))]
pub(crate) async fn openapi(State(app): State<Arc<App>>, request: Request) -> Response<axum::body::Body> {
    let text = app.openapi.get().cloned();
    let worked = text.map(answer::json).ok_or(Problem::new(Code::NotFound));
    Exchange::of(&app, request.extensions()).finish(worked)
}
