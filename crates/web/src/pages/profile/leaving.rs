//! Leaving the company. The visitor continues in another of their companies, if they have one.

use axum::Router;
use axum::http::header::SET_COOKIE;
use axum::response::Response;
use axum::routing::post;
use rapport_app::member::LeaveCompany;
use rapport_app::session::{self, Proven};

use super::{ProfilePage, enter};
use crate::pages::kit::action::Action;
use crate::pages::kit::cookie::{self, Keep};
use crate::pages::kit::flash::Flash;
use crate::pages::kit::refusal::Refusal;
use crate::pages::{Pages, READ};

pub fn routes() -> Router<Pages> {
    Router::new().route("/profile/leave", post(leave))
}

async fn leave(action: Action) -> Result<Response, Refusal> {
    let frame = action.frame(READ).await?;
    action.act::<ProfilePage, _>(LeaveCompany).await?;
    let (pages, visitor) = (&action.pages, &action.visitor);
    let others = session::workplaces(pages.app(), frame.person).await.map_err(Refusal::of)?;
    if let Some(next) = others.into_iter().next() {
        let text = format!("You left {}. You’re in {} now.", frame.company.name, next.name);
        let proven = Proven { person: frame.person, company: next.company };
        return enter(pages, visitor, proven, Flash::good(text)).await;
    }
    // It names nobody, because a message on the login page is for everyone.
    let mut response = pages.done("/login", Flash::good("You left the company."));
    let is_secure = pages.is_secure();
    let gone = cookie::write(cookie::session_name(is_secure), "", Keep::Not, is_secure);
    response.headers_mut().append(SET_COOKIE, gone);
    Ok(response)
}
