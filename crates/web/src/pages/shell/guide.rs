//! The first steps that the dashboard of a new company shows, until they are taken or hidden in this browser.

use axum::Router;
use axum::extract::State;
use axum::http::header::{HeaderMap, SET_COOKIE};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;

use crate::pages::Pages;
use crate::pages::kit::cookie::{self, Keep};

const NAME: &str = "guide";
const HIDDEN: &str = "hidden";
const KEPT_DAYS: i64 = 365;

pub fn routes() -> Router<Pages> {
    Router::new().route("/guide", post(hide))
}

pub fn is_hidden(headers: &HeaderMap) -> bool {
    cookie::read(headers, NAME) == Some(HIDDEN)
}

async fn hide(State(pages): State<Pages>) -> Response {
    let mut response = Redirect::to("/").into_response();
    let cookie = cookie::write(NAME, HIDDEN, Keep::Days(KEPT_DAYS), pages.is_secure());
    response.headers_mut().append(SET_COOKIE, cookie);
    response
}
