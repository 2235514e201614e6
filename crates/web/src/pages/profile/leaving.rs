//! Leaving the company. The visitor continues in another of their companies, if they have one.

use axum::Router;
use axum::http::header::SET_COOKIE;
use axum::response::Response;
use axum::routing::post;
use rapport_app::Access;
use rapport_app::member::LeaveCompany;
use rapport_app::session::{self, Proven};

use super::{ProfilePage, begin, go_on};
use crate::pages::kit::action::Action;
use crate::pages::kit::cookie::{self, Keep};
use crate::pages::kit::flash::Flash;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{Pages, READ};

pub fn routes() -> Router<Pages> {
    Router::new().route("/profile/leave", post(leave))
}

async fn leave(action: Action) -> Result<Response, Refusal> {
    let frame = action.frame(READ).await?;
    let (pages, visitor) = (&action.pages, &action.visitor);
    let confined = frame.by_sso.then_some(frame.company.id);
    let mut others = session::workplaces(pages.app(), frame.person, confined).await.map_err(Refusal::of)?;
    others.retain(|place| place.company != frame.company.id && !place.needs_sso);
    let Some(next) = others.into_iter().next() else {
        action.act::<ProfilePage, _>(LeaveCompany).await?;
        return Ok(logged_out(pages));
    };
    // Leaving ends the session here, so the one there begins first.
    let proven = Proven { person: frame.person, company: next.company };
    let begun = begin(pages, visitor, proven).await?;
    if let Err(refusal) = action.act::<ProfilePage, _>(LeaveCompany).await {
        end(pages, visitor, &begun).await;
        return Err(refusal);
    }
    let text = format!("You left {}. You’re in {} now.", frame.company.name, next.name);
    Ok(go_on(pages, visitor, &begun, Flash::good(text)))
}

/// Ends a session that nobody got.
async fn end(pages: &Pages, visitor: &Visitor, begun: &str) {
    let Some(session) = session::read_cookie(begun) else { return };
    let ended =
        pages.write_as(&Access::Credential(session), visitor.origin, session::EndReplaced(session)).await;
    if let Err(error) = ended {
        rapport_app::log_failure!(error, "failed to end a session");
    }
}

fn logged_out(pages: &Pages) -> Response {
    // It names nobody, because a message on the login page is for everyone.
    let mut response = pages.done("/login", Flash::good("You left the company."));
    let is_secure = pages.is_secure();
    let gone = cookie::write(cookie::session_name(is_secure), "", Keep::Not, is_secure);
    response.headers_mut().append(SET_COOKIE, gone);
    response
}
