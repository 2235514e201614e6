//! A new email address: asked for on the profile page, and confirmed with the link that was mailed to it. The link alone
//! isn't enough, because the address may be mistyped: it works only for the person who asked, when they are
//! logged in.

use askama::Template;
use axum::Router;
use axum::http::header::SET_COOKIE;
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::address_change::{ConfirmAddressChange, RequestAddressChange, read_link};
use rapport_app::read::profile::{self, Change};
use rapport_app::{Error, Services, person};
use rapport_domain::address_change::parse;
use rapport_domain::credential::Presented;
use rapport_domain::member::Email;

use super::{PATH, ProfilePage};
use crate::edge::problem::Problem;
use crate::pages::kit::action::Action;
use crate::pages::kit::form::As;
use crate::pages::kit::frame::{Frame, Shown, framed};
use crate::pages::kit::known_browser;
use crate::pages::kit::password::Holder;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit, show};
use crate::pages::{Pages, READ};
use crate::shared::subject::InPath;

/// The field with the current password; the page has another one of the usual name.
const PASSWORD: &str = "email_password";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route("/profile/email", post(request))
        .route("/email-change/{token}", get(show::<ConfirmPage, Link>).post(confirm))
}

async fn request(action: Action) -> Result<Response, Refusal> {
    let requested = try_request(&action).await;
    action.settle(requested, |page: &mut ProfilePage, draft| page.new_email = draft).await?;
    // The same whether or not the address has a login.
    action.done(PATH, "A mail with a link is on its way to your new address. Use it within an hour.")
}

async fn try_request(action: &Action) -> Result<(), Error> {
    let email = parse(&action.form.members(&[("email", As::Text)]))?;
    let typed = (PASSWORD, action.form.text(PASSWORD));
    let check = |_: &Services, holder: &Holder, typed: &str| person::prove(&holder.login, typed, PASSWORD);
    action.pages.check_password(&action.visitor, typed, check).await?;
    action.submit(RequestAddressChange(email)).await
}

/// The secret in the address; `None` if it is malformed.
#[derive(Clone, Copy)]
struct Link(Option<Presented>);

impl InPath for Link {
    fn read_all(segments: &[String]) -> Result<Self, Problem> {
        Ok(Self(segments.first().and_then(|segment| read_link(segment))))
    }
}

#[derive(Template)]
#[template(path = "email_change.html")]
struct ConfirmPage {
    frame: Frame,
    from: Email,
    to: Email,
}
framed!("profile": ConfirmPage);

impl Load<Link> for ConfirmPage {
    async fn load(visit: &Visit<Link>) -> Result<Self, Refusal> {
        let link = visit.id.0.ok_or_else(Refusal::link_is_over)?;
        let found = visit.read(READ, move |snapshot, viewer| profile::address_change(snapshot, viewer, link));
        let Shown { frame, reply } = found.await?;
        let Change { person, from, to, .. } = reply.ok_or_else(Refusal::link_is_over)?;
        if person != frame.person {
            return Err(Refusal::link_of_another());
        }
        Ok(Self { frame, from, to })
    }
}

async fn confirm(action: Action<Link>) -> Result<Response, Refusal> {
    let link = action.id.0.ok_or_else(Refusal::link_is_over)?;
    let confirm = ConfirmAddressChange { link, kept: action.visitor.session };
    let email = action.act::<ConfirmPage, _>(confirm).await?;
    let mut response = action.done(PATH, format!("Your email address is now {}.", email.as_str()))?;
    if let Some(browser) = known_browser::remember(&action.pages, &email) {
        response.headers_mut().append(SET_COOKIE, browser);
    }
    Ok(response)
}
