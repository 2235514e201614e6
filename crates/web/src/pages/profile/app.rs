//! Setting up an authenticator app: a QR code, then the first code of the app.

use askama::Template;
use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use rapport_app::Error;
use rapport_app::read::factors::Holder;
use rapport_app::totp::{ConfirmApp, NewApp, SetUpApp};

use super::holder::{adding, finish, next};
use super::{PATH as PROFILE, qr};
use crate::pages::Pages;
use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::frame::{PlainFrame, html};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;

const PATH: &str = "/profile/app";

pub fn routes() -> Router<Pages> {
    let back = async || Redirect::to(PATH);
    Router::new().route(PATH, get(show).post(begin)).route("/profile/app/confirm", get(back).post(confirm))
}

#[derive(Template)]
#[template(path = "profile/app.html")]
struct AppPage {
    frame: PlainFrame,
    next: String,
    draft: Draft,
}

impl AppPage {
    fn new<I>(visit: &Visit<I>, next: String) -> Self {
        let frame = PlainFrame::of(&visit.visitor.look, &visit.pages);
        Self { frame, next, draft: Draft::default() }
    }
}

async fn show(visit: Visit) -> Result<Response, Refusal> {
    let holder = adding(&visit).await?;
    let has_app = holder.app.as_ref().is_some_and(|app| app.confirmed_at.is_some());
    if has_app {
        return Ok(Redirect::to(PROFILE).into_response());
    }
    Ok(html(StatusCode::OK, AppPage::new(&visit, next(&visit.query)).render()))
}

#[derive(Template)]
#[template(path = "profile/app_confirm.html")]
struct ConfirmPage {
    frame: PlainFrame,
    next: String,
    /// The secret in groups, which are easier to type.
    groups: Vec<String>,
    picture: qr::Picture,
    draft: Draft,
}

impl ConfirmPage {
    fn new(action: &Action, app: &NewApp) -> Self {
        let groups = app.secret.as_bytes().chunks(4).map(|group| String::from_utf8_lossy(group).into_owned());
        Self {
            frame: PlainFrame::of(&action.visitor.look, &action.pages),
            next: next(&action.form),
            groups: groups.collect(),
            picture: qr::Picture::of(&app.uri),
            draft: Draft::default(),
        }
    }
}

async fn begin(action: Action) -> Result<Response, Refusal> {
    adding(&action).await?;
    match action.submit(SetUpApp).await {
        Ok(app) => Ok(html(StatusCode::OK, ConfirmPage::new(&action, &app).render())),
        Err(error) => {
            let draft = action.refused(error).await?;
            let page = AppPage { draft, ..AppPage::new(&action, next(&action.form)) };
            Ok(html(StatusCode::UNPROCESSABLE_ENTITY, page.render()))
        }
    }
}

async fn confirm(action: Action) -> Result<Response, Refusal> {
    let Holder { person, email, app, .. } = adding(&action).await?;
    let waiting = NewApp::waiting(action.pages.app().services(), person, email.as_str(), app);
    let Some(waiting) = waiting else { return Ok(Redirect::to(PATH).into_response()) };
    let attempt = action.visitor.attempt(&action.pages, &email);
    let guess = action.pages.0.limiter.guessing.admit(attempt, action.pages.app().now());
    let guess = guess.map_err(Refusal::too_many)?;
    let typed = action.form.text("code").to_owned();
    let confirmed = action.submit(ConfirmApp { typed, session: action.visitor.session }).await;
    guess.settle(matches!(confirmed, Err(Error::Invalid(_))));
    match confirmed {
        Ok(added) => finish(&action, added, "Authenticator app added. Your other sessions are logged out."),
        Err(error) => {
            // Only somebody who proved who they are sees the secret again.
            let draft = action.refused(error).await?;
            let page = ConfirmPage { draft, ..ConfirmPage::new(&action, &waiting) };
            Ok(html(StatusCode::UNPROCESSABLE_ENTITY, page.render()))
        }
    }
}
