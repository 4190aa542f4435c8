//! `POST /v1/charges`.

use crate::answer::Answer;
use crate::app::App;
use crate::describe::{KeyHeader, WriteProblems};
use crate::exchange::{self, Exchange};
use crate::intake::{Intake, conclude};
use crate::route::Route;
use axum::extract::{Request, State};
use bytes::Bytes;
use counterfoil_core::payments::charge::create::CreateCharge;
use counterfoil_wire::charge;
use counterfoil_wire::problem::Problem;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

const INTAKE: Intake = Intake::new(Route::Charges, charge::LAYOUT);

/// Makes a charge, at most once per key.
#[utoipa::path(
    post,
    path = "/v1/charges",
    tag = "Charges",
    security(("api_key" = [])),
    params(KeyHeader),
    request_body(
        content(
            (charge::schema::CreateCharge = "application/json"),
            (charge::schema::CreateCharge = "application/x-www-form-urlencoded"),
        )
    ),
    responses(
        (status = 201, description = "The charge succeeded or is held for capture.", body = charge::schema::Charge),
        WriteProblems,
    )
)]
pub(crate) async fn create(State(app): State<Arc<App>>, request: Request) -> Response<axum::body::Body> {
    exchange::write(&app, request, run).await
}

/// The same without the router: the face calls it directly, since most requests are these.
pub(crate) async fn run<B>(
    app: &App,
    head: &Parts,
    body: B,
    exchange: &mut Exchange,
) -> Result<Answer, Problem>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let (request, wanted) = INTAKE.take(app, head, body, exchange, charge::read).await?;
    conclude(app, head, exchange, app.service.submit(CreateCharge { request, wanted })).await
}
