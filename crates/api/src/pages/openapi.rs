//! `GET /openapi.json`: the description of every route, made from the routes themselves.

use crate::answer;
use crate::app::App;
use crate::exchange::Exchange;
use axum::extract::{Request, State};
use counterfoil_wire::problem::schema;
use counterfoil_wire::problem::{Code, Problem};
use http::Response;
use std::collections::BTreeSet;
use std::sync::Arc;
use utoipa::Modify;
use utoipa::openapi::schema::{AdditionalProperties, ArrayItems};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{OpenApi, RefOr, Schema};

/// What the description says besides its routes.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Counterfoil",
        description = "A payments core: it charges at most once, keeps the ledger, and answers every retry with the same bytes.",
        license(name = "Apache-2.0")
    ),
    components(schemas(schema::Problem, schema::FieldError)),
    modifiers(&ApiKey)
)]
pub(crate) struct Description;

struct ApiKey;

impl Modify for ApiKey {
    fn modify(&self, openapi: &mut OpenApi) {
        let scheme =
            HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("An API key, `sk_…`")).build();
        openapi
            .components
            .get_or_insert_default()
            .add_security_scheme("api_key", SecurityScheme::Http(scheme));
    }
}

/// What is true of every route, and so is said in one place: an operation's id is the collection's name and what is done
/// there, which no other has, and the objects of requests have no other members than those described.
pub(crate) fn complete(openapi: &mut OpenApi) {
    let mut of_requests = BTreeSet::new();
    for (path, item) in &mut openapi.paths.paths {
        let collection = path.strip_prefix("/v1/").and_then(|rest| rest.split('/').next());
        for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
            if let (Some(collection), Some(id)) = (collection, &mut operation.operation_id) {
                *id = format!("{}_{id}", collection.replace('-', "_"));
            }
            if let Some(RefOr::T(body)) = &operation.request_body {
                let contents = body.content.values().filter_map(|content| match content {
                    RefOr::T(content) => content.schema.as_ref(),
                    RefOr::Ref(_) => None,
                });
                of_requests.extend(contents.filter_map(named));
            }
        }
    }
    let Some(components) = &mut openapi.components else { return };
    let mut open: Vec<String> = of_requests.into_iter().collect();
    while let Some(name) = open.pop() {
        if let Some(RefOr::T(Schema::Object(object))) = components.schemas.get_mut(&name) {
            object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
            open.extend(object.properties.values().filter_map(element));
        }
    }
}

/// The name a reference leads to.
fn named(schema: &RefOr<Schema>) -> Option<String> {
    match schema {
        RefOr::Ref(reference) => reference.ref_location.rsplit('/').next().map(str::to_owned),
        RefOr::T(_) => None,
    }
}

/// The name of the elements of an array.
fn element(schema: &RefOr<Schema>) -> Option<String> {
    match schema {
        RefOr::T(Schema::Array(array)) => match &array.items {
            ArrayItems::RefOrSchema(items) => named(items),
            ArrayItems::False => None,
        },
        RefOr::T(_) | RefOr::Ref(_) => None,
    }
}

/// This description.
#[utoipa::path(get, path = "/openapi.json", tag = "Operation", responses((status = 200, description = "OpenAPI 3.1.", content_type = "application/json")))]
pub(crate) async fn openapi(State(app): State<Arc<App>>, request: Request) -> Response<axum::body::Body> {
    let text = app.openapi.get().cloned();
    let worked = text.map(answer::json).ok_or(Problem::new(Code::NotFound));
    Exchange::of(&app, request.extensions()).finish(worked)
}
