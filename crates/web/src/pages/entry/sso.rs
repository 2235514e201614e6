//! Logging in with a company's own identity provider.
//!
//! The forms on our pages lead to our own pages only, as their policy says. So the way to the provider is a link.

use askama::Template;
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::{HeaderMap, HeaderValue, SET_COOKIE};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use rapport_app::sso::login::{self, NotIn, Returned, SignedIn, Started};
use rapport_domain::sso::ATTEMPT_SECONDS;
use rapport_domain::sso::entry::Reason;

use crate::edge::origin::{Site, site};
use crate::pages::Pages;
use crate::pages::kit::cookie::{self, Keep};
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{PlainFrame, html};
use crate::pages::kit::origin::own_path;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;
use crate::pages::kit::visitor::Stranger;
use crate::shared::sentence;

pub fn routes() -> Router<Pages> {
    Router::new()
        .route("/sso", get(choose))
        .route("/sso/{project}", get(start))
        .route("/sso/{project}/callback", get(finish))
        .route(CONFIRM, get(prove))
}

const CONFIRM: &str = "/profile/confirm";

/// The way on which somebody who logged in with single sign-on proves again who they are.
pub fn confirm_path(next: &str) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("next", next);
    format!("{CONFIRM}?{}", query.finish())
}

/// The cookie of a login that was started. Over https, no other site can set it, so nobody can put their own login into
/// the browser of somebody else.
const fn cookie_name(is_secure: bool) -> &'static str {
    if is_secure { "__Host-sso" } else { "sso" }
}

/// The way to a company's provider.
pub fn start_path(project: &str) -> String {
    format!("/sso/{project}")
}

/// The login page, for one company if its short name is given.
pub fn login_path(project: &str, next: &str) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in [("project", project), ("next", next)] {
        if !value.is_empty() && value != "/" {
            query.append_pair(name, value);
        }
    }
    let query = query.finish();
    if query.is_empty() { "/login".to_owned() } else { format!("/login?{query}") }
}

/// Finds the company that somebody typed, and goes back to the login page, which then has the link to its provider.
async fn choose(
    State(pages): State<Pages>,
    stranger: Stranger,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    stranger.admit(&pages)?;
    let query = Form::of_query(query.as_deref());
    let next = own_path(query.text("next"));
    let found = login::project_of(pages.app(), query.text("company")).await.map_err(Refusal::of)?;
    let Some(project) = found else {
        let text = "No company here offers single sign-on under this name or address.";
        return Ok(pages.done(&login_path("", &next), Flash::bad(text)));
    };
    Ok(Redirect::to(&login_path(&project, &next)).into_response())
}

/// Sends the browser to the provider.
async fn start(
    State(pages): State<Pages>,
    stranger: Stranger,
    headers: HeaderMap,
    Path(project): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let next = own_path(Form::of_query(query.as_deref()).text("next"));
    // Another site must not log somebody in without a click of theirs.
    if site(&headers) == Some(Site::Other) {
        return Ok(Redirect::to(&login_path(&project, &next)).into_response());
    }
    let started = login::start(pages.app(), &project, &next, Some(stranger.origin)).await;
    match started {
        Ok(Started { url, cookie }) => Ok(pages.leaving(&url, &cookie, Keep::Seconds(ATTEMPT_SECONDS))),
        Err(not_in) => refused(&pages, &stranger, &project, not_in),
    }
}

/// Sends somebody who logged in with single sign-on to the provider again.
async fn prove(visit: Visit, stranger: Stranger) -> Result<Response, Refusal> {
    let (pages, visitor) = (&visit.pages, &visit.visitor);
    let next = own_path(visit.query.text("next"));
    match login::start_proof(pages.app(), visitor.session, &next, Some(visitor.origin)).await {
        Ok(Started { url, cookie }) => Ok(pages.leaving(&url, &cookie, Keep::Seconds(ATTEMPT_SECONDS))),
        Err(NotIn::Failed(error)) => Err(visitor.refused(error)),
        Err(not_in) => refused(pages, &stranger, "", not_in),
    }
}

/// Takes the browser back from the provider.
async fn finish(
    State(pages): State<Pages>,
    stranger: Stranger,
    headers: HeaderMap,
    Path(project): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let query = Form::of_query(query.as_deref());
    let returned = Returned {
        cookie: cookie::read(&headers, cookie_name(pages.is_secure())),
        state: query.text("state"),
        code: query.text("code"),
        error: query.text("error"),
        issuer: query.text("iss"),
        browser: stranger.look.browser.as_deref(),
        session: stranger.session,
    };
    let finished = login::finish(pages.app(), &project, returned, Some(stranger.origin)).await;
    let SignedIn { session, next } = match finished {
        Ok(signed_in) => signed_in,
        Err(not_in) => return refused(&pages, &stranger, &project, not_in),
    };
    let Some(session) = session else {
        let flash = Flash::good("You confirmed that it’s you. Send the form again.");
        let mut response = match stranger.session {
            Some(current) => pages.done_for(current, &next, flash),
            None => Redirect::to(&next).into_response(),
        };
        response.headers_mut().append(SET_COOKIE, pages.sso_cookie("", Keep::Not));
        return Ok(response);
    };
    pages.end_before(&stranger).await;
    let mut response = pages.leaving(&next, "", Keep::Not);
    response.headers_mut().append(SET_COOKIE, pages.session_cookie(&session));
    Ok(response)
}

impl Pages {
    /// A redirect that sets or removes the cookie of a login that was started.
    fn leaving(&self, to: &str, cookie: &str, keep: Keep) -> Response {
        let mut response = Redirect::to(to).into_response();
        response.headers_mut().append(SET_COOKIE, self.sso_cookie(cookie, keep));
        response
    }

    fn sso_cookie(&self, text: &str, keep: Keep) -> HeaderValue {
        let is_secure = self.is_secure();
        cookie::write(cookie_name(is_secure), text, keep, is_secure)
    }
}

#[derive(Template)]
#[template(path = "sso_refused.html")]
struct RefusedPage {
    frame: PlainFrame,
    text: String,
    /// The login page.
    again: String,
}

/// The page that says why somebody isn't logged in.
fn refused(pages: &Pages, stranger: &Stranger, project: &str, not_in: NotIn) -> Result<Response, Refusal> {
    let reason = match not_in {
        NotIn::Refused(reason) => reason,
        NotIn::Failed(error) => return Err(Refusal::of(error)),
    };
    let status = match reason {
        Reason::Off => StatusCode::NOT_FOUND,
        Reason::ProviderUnreachable => StatusCode::BAD_GATEWAY,
        _ => StatusCode::FORBIDDEN,
    };
    let (frame, text) = (PlainFrame::new(stranger, pages), sentence(reason.sentence()));
    let again = login_path(if reason == Reason::Off { "" } else { project }, "/");
    let mut response = html(status, RefusedPage { frame, text, again }.render());
    response.headers_mut().append(SET_COOKIE, pages.sso_cookie("", Keep::Not));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_login_page_keeps_the_company_and_the_page_to_go_on_to() {
        let table = [
            ("", "/", "/login"),
            ("acme", "/", "/login?project=acme"),
            ("", "/accounts?q=a", "/login?next=%2Faccounts%3Fq%3Da"),
            ("a&b", "/x", "/login?project=a%26b&next=%2Fx"),
        ];
        for (project, next, expected) in table {
            assert_eq!(login_path(project, next), expected);
        }
    }
}
