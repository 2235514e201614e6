//! The profile page: name, password, sessions and theme; and the page that switches between companies.

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::Error;
use rapport_app::person::{ChangePassword, Rename};
use rapport_app::read::profile::{self, Listed, Workplace};
use rapport_app::session::{self, EndOtherSessions, EndSession, Proven};
use rapport_domain::company::MAX_NAME;
use rapport_domain::invalid::{Invalid, Members, as_text};
use rapport_domain::member::{Email, Member};

use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::shell::theme::Theme;
use crate::pages::{MEMBER, Pages};

const PATH: &str = "/profile";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(show))
        .route("/profile/name", post(rename))
        .route("/profile/password", post(change_password))
        .route("/profile/sessions/end", post(end_others))
        .route("/companies", get(companies).post(switch))
}

#[derive(Template)]
#[template(path = "profile.html")]
struct ProfilePage {
    frame: Frame,
    email: Email,
    sessions: Vec<(Listed, bool)>,
    name: Draft,
    password: Draft,
}
framed!("profile": ProfilePage, CompaniesPage);

impl ProfilePage {
    async fn load(pages: &Pages, visitor: &Visitor) -> Result<Self, Refusal> {
        let current = visitor.session.hash;
        let Shown { frame, reply } = pages.show(visitor, MEMBER, profile::page).await?;
        let (me, sessions) = reply.ok_or_else(|| Refusal::not_found("person"))?;
        let sessions = sessions.into_iter().map(|listed| {
            let is_current = listed.hash.matches(&current);
            (listed, is_current)
        });
        Ok(Self {
            email: me.email,
            sessions: sessions.collect(),
            name: Draft::new([("name", me.name)]),
            password: Draft::default(),
            frame,
        })
    }
}

async fn show(State(pages): State<Pages>, visitor: Visitor) -> Result<Response, Refusal> {
    Ok(ProfilePage::load(&pages, &visitor).await?.respond())
}

async fn rename(State(pages): State<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    let parsed = || -> Result<Rename, Invalid> {
        let members = form.members(&[("name", As::Text)]);
        let mut members = Members::of(&members);
        let name = members.required("name", |value| as_text(value, MAX_NAME));
        members.finish()?;
        Ok(Rename(name.unwrap_or_default()))
    };
    let done = match parsed() {
        Ok(command) => pages.submit(&visitor, &form, command).await,
        Err(invalid) => Err(invalid.into()),
    };
    match done {
        Ok(()) => Ok(pages.done(PATH, Flash::good("Name changed."))),
        Err(error) => {
            let name = Draft::refused(&form, error).map_err(|error| visitor.refused(error))?;
            Ok(ProfilePage { name, ..ProfilePage::load(&pages, &visitor).await? }.refuse())
        }
    }
}

async fn change_password(
    State(pages): State<Pages>,
    visitor: Visitor,
    form: Form,
) -> Result<Response, Refusal> {
    match try_password(&pages, &visitor, &form).await {
        Ok(()) => {
            let text = "Password changed. Your other sessions are logged out.";
            Ok(pages.done(PATH, Flash::good(text)))
        }
        Err(error) => {
            let password = Draft::refused(&form, error).map_err(|error| visitor.refused(error))?;
            Ok(ProfilePage { password, ..ProfilePage::load(&pages, &visitor).await? }.refuse())
        }
    }
}

async fn try_password(pages: &Pages, visitor: &Visitor, form: &Form) -> Result<(), Error> {
    let (current, access) = (visitor.session, visitor.access());
    let found = pages.app().read(&access, MEMBER, profile::login).await?;
    let (Member { email, .. }, login) = found.reply.ok_or(Error::Unauthenticated)?;
    let now = pages.app().now();
    if pages.0.limiter.admit_login(&email, now).is_err() {
        let detail = "too many incorrect passwords; wait a minute";
        return Err(Invalid::one("/current", "too_many", detail).into());
    }
    let (typed, chosen) = (form.text("current").to_owned(), form.text("password").to_owned());
    let checked =
        pages.slowly(move |services| ChangePassword::check(services, &login, &typed, &chosen, current)).await;
    if let Err(Error::Invalid(invalid)) = &checked
        && invalid.0.iter().any(|fault| fault.code == "wrong_password")
    {
        pages.0.limiter.charge_login(&email, now);
    }
    pages.submit(visitor, form, checked?).await
}

async fn end_others(State(pages): State<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    let ended = pages.submit(&visitor, &form, EndOtherSessions(visitor.session)).await;
    ended.map_err(|error| visitor.refused(error))?;
    Ok(pages.done(PATH, Flash::good("Your other sessions are logged out.")))
}

#[derive(Template)]
#[template(path = "companies.html")]
struct CompaniesPage {
    frame: Frame,
    workplaces: Vec<Workplace>,
}

async fn companies(State(pages): State<Pages>, visitor: Visitor) -> Result<Response, Refusal> {
    let Shown { frame, .. } = pages.show(&visitor, MEMBER, |_, _| Ok(())).await?;
    let workplaces = session::workplaces(pages.app(), frame.person).await.map_err(Refusal::of)?;
    Ok(CompaniesPage { frame, workplaces }.respond())
}

/// Switches to another company: starts a session there and ends the one here.
async fn switch(State(pages): State<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    let Shown { frame, .. } = pages.show(&visitor, MEMBER, |_, _| Ok(())).await?;
    let workplaces = session::workplaces(pages.app(), frame.person).await.map_err(Refusal::of)?;
    let wanted = workplaces.into_iter().find(|place| place.slug == form.text("project"));
    let Workplace { company, name, .. } = wanted.ok_or_else(|| Refusal::not_found("company"))?;
    let proven = Proven { person: frame.person, company };
    let begin = proven.begin(visitor.look.browser.as_deref()).replacing(visitor.session);
    let begun = pages.write_as(&proven.access(), visitor.address, begin).await.map_err(Refusal::of)?;
    let _ = pages.write_as(&visitor.access(), visitor.address, EndSession(visitor.session)).await;
    let mut response = pages.done("/", Flash::good(format!("Switched to {name}.")));
    response.headers_mut().append(SET_COOKIE, pages.session_cookie(&begun));
    Ok(response)
}
