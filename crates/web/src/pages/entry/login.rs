//! Logging in and out.

use askama::Template;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use rapport_app::session::{EndSession, LogIn, Proven};
use rapport_domain::member::Email;
use rapport_domain::session::MAX_DAYS;

use crate::pages::kit::cookie::{self, Keep};
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{PlainFrame, html};
use crate::pages::kit::origin::own_path;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::{Stranger, Visitor};
use crate::pages::{MEMBER, Pages};

pub fn routes() -> Router<Pages> {
    Router::new().route("/login", get(show).post(log_in)).route("/logout", post(log_out))
}

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage {
    frame: PlainFrame,
    next: String,
    email: String,
    error: Option<&'static str>,
}

async fn show(
    State(pages): State<Pages>,
    stranger: Stranger,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let next = own_path(Form::of_query(query.as_deref()).text("next"));
    if let Some(session) = stranger.session {
        let access = rapport_app::Access::Credential(session);
        if pages.app().read(&access, MEMBER, |_, _| Ok(())).await.is_ok() {
            return Ok(Redirect::to(&next).into_response());
        }
    }
    if pages.0.setup.is_open(&pages).await? {
        return Ok(Redirect::to("/setup").into_response());
    }
    let page =
        LoginPage { frame: PlainFrame::new(&stranger, &pages), next, email: String::new(), error: None };
    Ok(html(StatusCode::OK, page.render()))
}

async fn log_in(State(pages): State<Pages>, stranger: Stranger, form: Form) -> Result<Response, Refusal> {
    stranger.admit(&pages)?;
    let (next, typed) = (own_path(form.text("next")), form.text("email").trim().to_owned());
    let proven = match Email::parse(&typed) {
        Ok(email) => prove(&pages, email, form.text("password").to_owned()).await?,
        Err(_) => None,
    };
    let Some(proven) = proven else {
        let error = Some("Incorrect email or password.");
        let page = LoginPage { frame: PlainFrame::new(&stranger, &pages), next, email: typed, error };
        return Ok(html(StatusCode::UNPROCESSABLE_ENTITY, page.render()));
    };
    pages.begin(&stranger, proven, &next).await
}

/// Checks a password, unless there were too many attempts for this address.
async fn prove(pages: &Pages, email: Email, password: String) -> Result<Option<Proven>, Refusal> {
    pages.0.limiter.admit_login(&email, pages.app().now()).map_err(Refusal::too_many)?;
    let looked = LogIn::look(pages.app(), email.clone()).await.map_err(Refusal::of)?;
    let proven = pages.slowly(move |_| Ok(looked.check(&password))).await.map_err(Refusal::of)?;
    if proven.is_none() {
        pages.0.limiter.charge_login(&email, pages.app().now());
    }
    Ok(proven)
}

impl Pages {
    /// Starts a session and redirects to a page.
    pub async fn begin(&self, stranger: &Stranger, proven: Proven, next: &str) -> Result<Response, Refusal> {
        let command = proven.begin(stranger.look.browser.as_deref());
        let begun = self.write_as(&proven.access(), stranger.origin, command).await;
        let mut response = Redirect::to(next).into_response();
        response.headers_mut().append(SET_COOKIE, self.session_cookie(&begun.map_err(Refusal::of)?));
        Ok(response)
    }

    pub fn session_cookie(&self, text: &str) -> axum::http::HeaderValue {
        let is_secure = self.is_secure();
        cookie::write(cookie::session_name(is_secure), text, Keep::Days(MAX_DAYS), is_secure)
    }
}

async fn log_out(State(pages): State<Pages>, visitor: Visitor) -> Response {
    // It does not matter whether the session had already ended.
    let _ = pages.write_as(&visitor.access(), visitor.origin, EndSession(visitor.session)).await;
    let mut response = pages.done("/login", Flash::good("You’re logged out."));
    let is_secure = pages.is_secure();
    let gone = cookie::write(cookie::session_name(is_secure), "", Keep::Not, is_secure);
    response.headers_mut().append(SET_COOKIE, gone);
    response
}
