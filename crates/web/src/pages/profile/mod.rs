//! The profile page: name, password, sessions and theme; and the page that switches between companies.

use askama::Template;
use axum::Router;
use axum::http::header::SET_COOKIE;
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::Error;
use rapport_app::password_reset::ProveAddress;
use rapport_app::person::{ChangePassword, Rename};
use rapport_app::read::profile::{self, Listed, Profile, Workplace};
use rapport_app::session::{self, EndOtherSessions, EndSession, Proven};
use rapport_domain::invalid::Invalid;
use rapport_domain::member::{Email, Member, parse_name};

use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::As;
use crate::pages::kit::frame::{Frame, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit, show};
use crate::pages::shell::theme::Theme;
use crate::pages::{MEMBER, Pages};

const PATH: &str = "/profile";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(show::<ProfilePage, ()>))
        .route("/profile/name", post(rename))
        .route("/profile/password", post(change_password))
        .route("/profile/address", post(prove_address))
        .route("/profile/sessions/end", post(end_others))
        .route("/companies", get(show::<CompaniesPage, ()>).post(switch))
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
    password: Draft,
}
framed!("profile": ProfilePage, CompaniesPage);

impl Load<()> for ProfilePage {
    async fn load(visit: &Visit) -> Result<Self, Refusal> {
        let current = visit.visitor.session.hash;
        let Shown { frame, reply } = visit.read(MEMBER, profile::page).await?;
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
            password: Draft::default(),
            frame,
        })
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
    let (pages, visitor, form) = (&action.pages, &action.visitor, &action.form);
    let (current, access) = (visitor.session, visitor.access());
    let found = pages.app().read(&access, MEMBER, profile::login).await?;
    let (Member { email, .. }, login) = found.reply.ok_or(Error::Unauthenticated)?;
    let now = pages.app().now();
    let (attempt, guessing) = (visitor.attempt(pages, &email), &pages.0.limiter.guessing);
    let Ok(guess) = guessing.admit(attempt, now) else {
        let detail = "too many incorrect passwords; wait a minute";
        return Err(Invalid::one("/current", "too_many", detail).into());
    };
    let (typed, chosen) = (form.text("current").to_owned(), form.text("password").to_owned());
    let checked =
        pages.slowly(move |services| ChangePassword::check(services, &login, &typed, &chosen, current)).await;
    guess.settle(checked.as_ref().is_err_and(Error::is_wrong_password));
    action.submit(checked?).await
}

async fn prove_address(action: Action) -> Result<Response, Refusal> {
    action.act::<ProfilePage, _>(ProveAddress).await?;
    action.done(PATH, "A mail with a link is on its way. Choosing a password there confirms your address.")
}

async fn end_others(action: Action) -> Result<Response, Refusal> {
    action.act::<ProfilePage, _>(EndOtherSessions(action.visitor.session)).await?;
    action.done(PATH, "Your other sessions are logged out.")
}

#[derive(Template)]
#[template(path = "companies.html")]
struct CompaniesPage {
    frame: Frame,
    workplaces: Vec<Workplace>,
}

impl Load<()> for CompaniesPage {
    async fn load(visit: &Visit) -> Result<Self, Refusal> {
        let frame = visit.frame(MEMBER).await?;
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
    let (pages, visitor) = (&action.pages, &action.visitor);
    let begin = proven.begin(visitor.look.browser.as_deref()).replacing(visitor.session);
    let begun = pages.write_as(&proven.access(), visitor.origin, begin).await.map_err(Refusal::of)?;
    let _ = pages.write_as(&visitor.access(), visitor.origin, EndSession(visitor.session)).await;
    let session = session::read_cookie(&begun).unwrap_or(visitor.session);
    let mut response = pages.done_for(session, "/", Flash::good(format!("Switched to {name}.")));
    response.headers_mut().append(SET_COOKIE, pages.session_cookie(&begun));
    Ok(response)
}
