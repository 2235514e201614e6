//! Leads from an error code, or from the `type` of a problem, to its description in the API documentation.

use axum::Router;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::Redirect;
use axum::routing::get;

use crate::api::{Api, docs};
use crate::edge::codes;
use crate::edge::problem::Problem;

pub fn routes() -> Router<Api> {
    Router::new().route(codes::PATH, get(show))
}

async fn show(code: Result<Path<String>, PathRejection>) -> Result<Redirect, Problem> {
    let anchor = code.ok().and_then(|Path(code)| codes::anchor(&code));
    let anchor = anchor.ok_or_else(|| Problem::not_found("error code"))?;
    Ok(Redirect::to(&format!("{}#{anchor}", docs::PATH)))
}
