//! Error pages. `problem` decides the HTTP status, as for the API.

use askama::Template;
use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Redirect, Response};
use rapport_app::Error;
use rapport_domain::invalid::Invalid;

use crate::edge::auth::Scheme;
use crate::edge::problem::Problem;
use crate::pages::kit::form::MAX_BYTES;
use crate::pages::kit::frame::{PlainFrame, html};
use crate::shared::sentence;

/// The page that asks for a second factor.
pub const SECOND_STEP: &str = "/login/second";

/// The response instead of the requested page.
#[derive(Debug)]
pub enum Refusal {
    /// The person has to log in first.
    LogIn {
        next: Option<String>,
    },
    /// The person has to show or set up a second factor first.
    SecondFactor {
        next: Option<String>,
    },
    Page(Problem),
    /// The page with a form that was refused.
    Again(Box<Response>),
}

impl Refusal {
    pub fn of(error: Error) -> Self {
        Self::Page(Problem::of(error, Scheme::Token))
    }

    pub fn not_found(what: &'static str) -> Self {
        Self::Page(Problem::not_found(what))
    }

    pub fn from_elsewhere() -> Self {
        let detail = "this form wasn’t sent from this service; go back, reload the page and try again";
        Self::Page(Problem::new(StatusCode::FORBIDDEN, "cross_origin", detail))
    }

    /// A link in a mail that no longer works.
    pub fn link_is_over() -> Self {
        let detail = "this link was already used, was replaced or has expired; ask for a new one";
        Self::Page(Problem::new(StatusCode::NOT_FOUND, "link_over", detail))
    }

    /// A link in a mail that another person asked for.
    pub fn link_of_another() -> Self {
        let detail = "this link is for another login; log out and open it again";
        Self::Page(Problem::new(StatusCode::NOT_FOUND, "link_of_another", detail))
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
    error: ErrorText,
}

/// What an error page says. The response carries it, so that `error_frame` can say it within the navigation.
#[derive(Debug, Clone)]
pub struct ErrorText {
    pub status: u16,
    pub title: &'static str,
    pub text: String,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let problem = match self {
            Self::LogIn { next } => {
                return Redirect::to(&leading_back("/login", next.as_deref())).into_response();
            }
            Self::SecondFactor { next } => {
                return Redirect::to(&leading_back(SECOND_STEP, next.as_deref())).into_response();
            }
            Self::Page(problem) => problem,
            Self::Again(response) => return *response,
        };
        let (status, title, text) = words(&problem);
        let error = ErrorText { status: status.as_u16(), title, text };
        let page = ErrorPage { frame: PlainFrame::default(), error: error.clone() };
        let body = html(status, page.render());
        let mut response = problem.into_response();
        response.extensions_mut().insert(error);
        *response.body_mut() = body.into_body();
        let media_type = HeaderValue::from_static("text/html; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, media_type);
        super::frame::write_headers(response.headers_mut());
        response
    }
}

/// A page that leads to another one afterwards.
pub fn leading_back(path: &str, next: Option<&str>) -> String {
    let query = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(next.filter(|next| *next != "/").map(|next| ("next", next)))
        .finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// The title and text of an error page. Where the API's message mentions headers or members, a page has its own.
fn words(problem: &Problem) -> (StatusCode, &'static str, String) {
    let status = problem.status();
    let (title, text) = match status {
        StatusCode::NOT_FOUND => ("Page not found", sentence(problem.detail())),
        StatusCode::FORBIDDEN if problem.code() == "role_required" => (
            "Your role doesn’t allow this",
            format!(
                "{} Ask an admin of your company to do this or to change your role.",
                sentence(problem.detail())
            ),
        ),
        StatusCode::FORBIDDEN => ("Not allowed", sentence(problem.detail())),
        StatusCode::TOO_MANY_REQUESTS if problem.code() == "too_many_mails" => {
            ("Too many mails", sentence(problem.detail()))
        }
        StatusCode::TOO_MANY_REQUESTS => ("Too many attempts", "Wait a moment, then try again.".to_owned()),
        StatusCode::INTERNAL_SERVER_ERROR => {
            ("Something went wrong", "The server has logged the error. Nothing else is lost.".to_owned())
        }
        StatusCode::SERVICE_UNAVAILABLE => ("Temporarily unavailable", sentence(problem.detail())),
        StatusCode::UNPROCESSABLE_ENTITY => {
            let details = problem.errors().iter().map(|error| {
                let name = error.pointer.trim_start_matches('/');
                format!("{} {}", name.replace('_', " "), error.detail)
            });
            ("That didn’t work", sentence(&details.collect::<Vec<_>>().join("; ")))
        }
        _ => ("That didn’t work", sentence(problem.detail())),
    };
    (status, title, text)
}
