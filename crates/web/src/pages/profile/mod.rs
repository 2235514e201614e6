//! The profile page: name, address, password, ways to log in, sessions, theme and one's own data; and the page that
//! switches between companies.
//!
//! - `factors`: what the forms on the page do with second factors.
//! - `app`, `passkey`, `recovery`: pages that add one. They show nothing of the company, because it may require a second
//!   factor before it lets the person in. `holder`: who opens them.

mod app;
mod data;
mod email;
mod factors;
mod holder;
mod leaving;
mod passkey;
mod qr;
mod recovery;

use askama::Template;
use axum::Router;
use axum::http::header::SET_COOKIE;
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::Error;
use rapport_app::password_reset::ProveAddress;
use rapport_app::person::{ChangePassword, Rename};
use rapport_app::read::factors::{Factors, Holder as Person};
use rapport_app::read::profile::{self, Listed, Profile, Workplace};
use rapport_app::session::{self, EndOneSession, EndOtherSessions, EndReplaced, Proven};
use rapport_domain::departed::KEPT_DAYS;
use rapport_domain::device;
use rapport_domain::id::SessionId;
use rapport_domain::member::{Email, parse_name};

use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::As;
use crate::pages::kit::frame::{Frame, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit, show};
use crate::pages::kit::visitor::Visitor;
use crate::pages::shell::theme::Theme;
use crate::pages::{Pages, READ};

const PATH: &str = "/profile";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(show::<ProfilePage, ()>))
        .route("/profile/name", post(rename))
        .route("/profile/password", post(change_password))
        .route("/profile/address", post(prove_address))
        .route("/profile/sessions/end", post(end_others))
        .route("/profile/sessions/{id}/end", post(end_one))
        .route("/companies", get(show::<CompaniesPage, ()>).post(switch))
        .merge(data::routes())
        .merge(email::routes())
        .merge(leaving::routes())
        .merge(factors::routes())
        .merge(app::routes())
        .merge(passkey::routes())
        .merge(recovery::routes())
}

#[derive(Template)]
#[template(path = "profile.html")]
struct ProfilePage {
    frame: Frame,
    email: Email,
    is_proven: bool,
    has_password: bool,
    is_mail_configured: bool,
    sessions: Vec<(Listed, bool)>,
    name: Draft,
    new_email: Draft,
    password: Draft,
    /// How long a login without a company is kept.
    kept_days: i64,
    factors: Factors,
    /// Why there are no passkeys, if there are none.
    no_passkeys: Option<String>,
}
framed!("profile": ProfilePage, CompaniesPage);

impl<I: Sync> Load<I> for ProfilePage {
    async fn load(visit: &Visit<I>) -> Result<Self, Refusal> {
        let current = visit.visitor.session.hash;
        let Shown { frame, reply } = visit.read(READ, profile::page).await?;
        let Profile { me, is_proven, has_password, sessions, factors } =
            reply.ok_or_else(|| Refusal::not_found("person"))?;
        let sessions = sessions.into_iter().map(|listed| {
            let is_current = listed.hash.matches(&current);
            (listed, is_current)
        });
        Ok(Self {
            email: me.email,
            is_proven,
            has_password,
            is_mail_configured: visit.pages.app().services().outside().mail_configured,
            no_passkeys: visit.pages.app().services().passkeys().err().map(|reason| reason.to_string()),
            sessions: sessions.collect(),
            name: Draft::new([("name", me.name)]),
            new_email: Draft::default(),
            password: Draft::default(),
            kept_days: KEPT_DAYS,
            factors,
            frame,
        })
    }
}

impl ProfilePage {
    /// The browser and the system of a session, in words.
    fn device(session: &Listed) -> String {
        device::named(session.browser.as_deref().unwrap_or_default())
    }
}

async fn rename(action: Action) -> Result<Response, Refusal> {
    let command = parse_name(&action.form.members(&[("name", As::Text)])).map(Rename);
    action.run(command, |page: &mut ProfilePage, draft| page.name = draft).await?;
    action.done(PATH, "Name changed.")
}

async fn change_password(action: Action) -> Result<Response, Refusal> {
    let changed = try_password(&action).await;
    action.settle(changed, |page: &mut ProfilePage, draft| page.password = draft).await?;
    action.done(PATH, "Password changed. Your other sessions are logged out.")
}

async fn try_password(action: &Action) -> Result<(), Error> {
    let (kept, chosen) = (action.visitor.session, action.form.text("password").to_owned());
    let typed = ("current", action.form.text("current"));
    let changing = action.pages.check_password(&action.visitor, typed, move |services, holder, typed| {
        ChangePassword::check(services, &holder.login, &holder.known(), (typed, &chosen), kept)
    });
    action.submit(changing.await?).await
}

async fn prove_address(action: Action) -> Result<Response, Refusal> {
    action.act::<ProfilePage, _>(ProveAddress).await?;
    action.done(PATH, "A mail with a link is on its way. Choosing a password there confirms your address.")
}

async fn end_others(action: Action) -> Result<Response, Refusal> {
    action.act::<ProfilePage, _>(EndOtherSessions(action.visitor.session)).await?;
    action.done(PATH, "Your other sessions are logged out.")
}

async fn end_one(action: Action<SessionId>) -> Result<Response, Refusal> {
    action.act::<ProfilePage, _>(EndOneSession(action.id)).await?;
    action.done(PATH, "Session logged out.")
}

#[derive(Template)]
#[template(path = "companies.html")]
struct CompaniesPage {
    frame: Frame,
    workplaces: Vec<Workplace>,
}

impl Load<()> for CompaniesPage {
    async fn load(visit: &Visit) -> Result<Self, Refusal> {
        let frame = visit.frame(READ).await?;
        let confined = frame.by_sso.then_some(frame.company.id);
        let found = session::workplaces(visit.pages.app(), frame.person, confined).await;
        let workplaces = found.map_err(Refusal::of)?;
        Ok(Self { frame, workplaces })
    }
}

/// Switches to another company: starts a session there and ends the one here.
async fn switch(action: Action) -> Result<Response, Refusal> {
    // Also out of a company that requires a second factor.
    let Person { person, confined, .. } = action.holder().await?;
    let workplaces = session::workplaces(action.pages.app(), person, confined).await.map_err(Refusal::of)?;
    let wanted = workplaces.into_iter().find(|place| place.slug == action.form.text("project"));
    let Workplace { company, name, .. } = wanted.ok_or_else(|| Refusal::not_found("company"))?;
    let (pages, visitor) = (&action.pages, &action.visitor);
    let begun = begin(pages, visitor, Proven { person, company }).await?;
    let _ = pages.write_as(&visitor.access(), visitor.origin, EndReplaced(visitor.session)).await;
    Ok(go_on(pages, visitor, &begun, Flash::good(format!("Switched to {name}."))))
}

/// Starts a session in another company, in the same browser; returns the text for the cookie. It continues the one here,
/// which must still be there.
async fn begin(pages: &Pages, visitor: &Visitor, proven: Proven) -> Result<String, Refusal> {
    let begin = proven.begin(visitor.look.browser.as_deref()).replacing(visitor.session);
    let begun = pages.write_as(&proven.access(), visitor.origin, begin).await;
    begun.map_err(|error| visitor.refused(error))
}

/// Leads to the dashboard of the company that the session is in.
fn go_on(pages: &Pages, visitor: &Visitor, begun: &str, flash: Flash) -> Response {
    let session = session::read_cookie(begun).unwrap_or(visitor.session);
    let mut response = pages.done_for(session, "/", flash);
    response.headers_mut().append(SET_COOKIE, pages.session_cookie(begun));
    response
}
