//! `GET /openapi.json`: the OpenAPI description, generated from the routes.

pub(crate) mod shared;

use crate::answer::{self, Answered};
use crate::request::Call;
use counterfoil_wire::problem::{Code, Problem, schema};
use std::collections::BTreeSet;
use utoipa::Modify;
use utoipa::openapi::schema::{AdditionalProperties, ArrayItems};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{OpenApi, RefOr, Schema};

/// The parts of the description that belong to no route.
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

/// Completes the description of every route: makes operation ids unique by prefixing the
/// collection's name, and marks the objects of requests as closed, because unknown fields are
/// refused.
pub(crate) fn complete(openapi: &mut OpenApi) {
    let mut request_schemas = BTreeSet::new();
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
                request_schemas.extend(contents.filter_map(referenced));
            }
        }
    }
    let Some(components) = &mut openapi.components else { return };
    let mut open: Vec<String> = request_schemas.into_iter().collect();
    while let Some(name) = open.pop() {
        if let Some(RefOr::T(Schema::Object(object))) = components.schemas.get_mut(&name) {
            object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
            open.extend(object.properties.values().filter_map(element_schema));
        }
    }
}

/// The name of the schema a reference points to.
fn referenced(schema: &RefOr<Schema>) -> Option<String> {
    match schema {
        RefOr::Ref(reference) => reference.ref_location.rsplit('/').next().map(str::to_owned),
        RefOr::T(_) => None,
    }
}

/// The name of the schema of an array's elements.
fn element_schema(schema: &RefOr<Schema>) -> Option<String> {
    match schema {
        RefOr::T(Schema::Array(array)) => match &array.items {
            ArrayItems::RefOrSchema(items) => referenced(items),
            ArrayItems::False => None,
        },
        RefOr::T(_) | RefOr::Ref(_) => None,
    }
}

/// This OpenAPI description.
#[utoipa::path(get, path = "/openapi.json", tag = "Operation", responses((status = 200, description = "OpenAPI 3.1.", content_type = "application/json")))]
pub(crate) async fn openapi(call: Call) -> Answered {
    let text = call.app.openapi.get().cloned().ok_or(Problem::new(Code::NotFound))?;
    Ok(answer::json(text))
}
