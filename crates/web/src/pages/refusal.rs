//! What an error looks like to a person. What it means in HTTP is decided in `problem`, as for programs.

use askama::Template;
use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Redirect, Response};
use rapport_app::Error;
use rapport_domain::invalid::Invalid;

use crate::auth::Scheme;
use crate::pages::draft::sentence;
use crate::pages::form::MAX_BYTES;
use crate::pages::frame::{PlainFrame, html};
use crate::problem::Problem;

/// Instead of the page that was asked for.
#[derive(Debug)]
pub enum Refusal {
    /// Somebody has to log in first.
    LogIn {
        next: Option<String>,
    },
    Page(Problem),
}

impl Refusal {
    pub fn of(error: Error) -> Self {
        Self::Page(Problem::of(error, Scheme::Token))
    }

    pub fn not_found(what: &'static str) -> Self {
        Self::Page(Problem::not_found(what))
    }

    pub fn from_elsewhere() -> Self {
        let detail = "this was not sent from a page of this service; go back, load the page again and retry";
        Self::Page(Problem::new(StatusCode::FORBIDDEN, "cross_origin", detail))
    }

    /// A link of a mail that leads nowhere any more.
    pub fn link_is_over() -> Self {
        let detail = "this link is used, replaced or too old; ask for another one";
        Self::Page(Problem::new(StatusCode::NOT_FOUND, "link_over", detail))
    }

    pub fn too_large() -> Self {
        Self::Page(Problem::body_too_large(MAX_BYTES))
    }

    pub fn too_slow() -> Self {
        Self::Page(Problem::body_too_slow())
    }

    pub fn too_many(seconds: u64) -> Self {
        Self::Page(Problem::too_many_requests(seconds))
    }
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Self {
        Self::Page(invalid.into())
    }
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    frame: PlainFrame,
    status: u16,
    title: &'static str,
    text: String,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let problem = match self {
            Self::LogIn { next } => {
                let query = url::form_urlencoded::Serializer::new(String::new())
                    .extend_pairs(next.filter(|next| next != "/").map(|next| ("next", next)))
                    .finish();
                let path = if query.is_empty() { "/login".to_owned() } else { format!("/login?{query}") };
                return Redirect::to(&path).into_response();
            }
            Self::Page(problem) => problem,
        };
        let (status, title, text) = words(&problem);
        let page = ErrorPage { frame: PlainFrame::default(), status: status.as_u16(), title, text };
        let body = html(status, page.render());
        let mut response = problem.into_response();
        *response.body_mut() = body.into_body();
        let media_type = HeaderValue::from_static("text/html; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, media_type);
        super::frame::write_headers(response.headers_mut());
        response
    }
}

/// A page's own words where the API's speak of headers and members.
fn words(problem: &Problem) -> (StatusCode, &'static str, String) {
    let status = problem.status();
    let (title, text) = match status {
        StatusCode::NOT_FOUND => ("Nothing here", sentence(problem.detail())),
        StatusCode::FORBIDDEN if problem.code() == "role_required" => (
            "Not for your role",
            "Ask an admin of your company to do this, or to give you the role.".to_owned(),
        ),
        StatusCode::FORBIDDEN => ("Not allowed", sentence(problem.detail())),
        StatusCode::TOO_MANY_REQUESTS => ("Too many attempts", "Wait a moment, then try again.".to_owned()),
        StatusCode::INTERNAL_SERVER_ERROR => {
            ("Something went wrong", "The error is in the server's log. Nothing else is lost.".to_owned())
        }
        StatusCode::SERVICE_UNAVAILABLE => ("Not right now", sentence(problem.detail())),
        StatusCode::UNPROCESSABLE_ENTITY => {
            let details = problem.errors().iter().map(|error| {
                let name = error.pointer.trim_start_matches('/');
                format!("{} {}", name.replace('_', " "), error.detail)
            });
            ("That cannot be done", sentence(&details.collect::<Vec<_>>().join("; ")))
        }
        _ => ("That cannot be done", sentence(problem.detail())),
    };
    (status, title, text)
}
