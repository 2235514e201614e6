//! The profile page: name, address, password, sessions, theme and one's own data; and the page that switches between
//! companies.

mod data;
mod email;
mod leaving;

use askama::Template;
use axum::Router;
use axum::http::header::SET_COOKIE;
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::Error;
use rapport_app::password_reset::ProveAddress;
use rapport_app::person::{ChangePassword, Rename};
use rapport_app::read::profile::{self, Listed, Profile, Workplace};
use rapport_app::session::{self, EndOneSession, EndOtherSessions, EndSession, Proven};
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
}

#[derive(Template)]
#[template(path = "profile.html")]
struct ProfilePage {
    frame: Frame,
    email: Email,
    is_proven: bool,
    is_mail_configured: bool,
    sessions: Vec<(Listed, bool)>,
    name: Draft,
    new_email: Draft,
    password: Draft,
    /// How long a login without a company is kept.
    kept_days: i64,
}
framed!("profile": ProfilePage, CompaniesPage);

impl<I: Sync> Load<I> for ProfilePage {
    async fn load(visit: &Visit<I>) -> Result<Self, Refusal> {
        let current = visit.visitor.session.hash;
        let Shown { frame, reply } = visit.read(READ, profile::page).await?;
        let Profile { me, is_proven, sessions } = reply.ok_or_else(|| Refusal::not_found("person"))?;
        let sessions = sessions.into_iter().map(|listed| {
            let is_current = listed.hash.matches(&current);
            (listed, is_current)
        });
        Ok(Self {
            email: me.email,
            is_proven,
            is_mail_configured: visit.pages.app().services().outside().mail_configured,
            sessions: sessions.collect(),
            name: Draft::new([("name", me.name)]),
            new_email: Draft::default(),
            password: Draft::default(),
            kept_days: KEPT_DAYS,
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
        let workplaces = session::workplaces(visit.pages.app(), frame.person).await.map_err(Refusal::of)?;
        Ok(Self { frame, workplaces })
    }
}

/// Switches to another company: starts a session there and ends the one here.
async fn switch(action: Action) -> Result<Response, Refusal> {
    let CompaniesPage { frame, workplaces } = CompaniesPage::load(&action).await?;
    let wanted = workplaces.into_iter().find(|place| place.slug == action.form.text("project"));
    let Workplace { company, name, .. } = wanted.ok_or_else(|| Refusal::not_found("company"))?;
    let proven = Proven { person: frame.person, company };
    let entered =
        enter(&action.pages, &action.visitor, proven, Flash::good(format!("Switched to {name}."))).await?;
    let _ = action
        .pages
        .write_as(&action.visitor.access(), action.visitor.origin, EndSession(action.visitor.session))
        .await;
    Ok(entered)
}

/// Starts a session in another company, in the same browser.
async fn enter(pages: &Pages, visitor: &Visitor, proven: Proven, flash: Flash) -> Result<Response, Refusal> {
    let begin = proven.begin(visitor.look.browser.as_deref()).replacing(visitor.session);
    let begun = pages.write_as(&proven.access(), visitor.origin, begin).await;
    let begun = begun.map_err(|error| visitor.refused(error))?;
    let session = session::read_cookie(&begun).unwrap_or(visitor.session);
    let mut response = pages.done_for(session, "/", flash);
    response.headers_mut().append(SET_COOKIE, pages.session_cookie(&begun));
    Ok(response)
}
