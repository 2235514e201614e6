//! Adding a passkey: a challenge that the browser's authenticator answers. And the challenge for a passkey that proves
//! again who is there.

use askama::Template;
use axum::Router;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::Error;
use rapport_app::passkey::{self, AddPasskey, BeginPasskey, Challenge};
use rapport_app::second_factor::Added;
use rapport_domain::second_factor::parse_passkey_name;

use super::holder::{adding, finish, next};
use crate::pages::Pages;
use crate::pages::kit::action::Action;
use crate::pages::kit::challenge::{answered, respond};
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::As;
use crate::pages::kit::frame::{PlainFrame, html};
use crate::pages::kit::proof;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;

const PATH: &str = "/profile/passkeys";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(show).post(add))
        .route("/profile/passkeys/challenge", post(ask))
        .route("/profile/passkeys/proof", post(ask_proof))
}

#[derive(Template)]
#[template(path = "profile/passkey.html")]
struct PasskeyPage {
    frame: PlainFrame,
    next: String,
    /// Why there are no passkeys, if there are none.
    no_passkeys: Option<String>,
    /// Whether the person has just proved who they are, and now clicks again.
    is_proven: bool,
    draft: Draft,
}

impl PasskeyPage {
    fn new<I>(visit: &Visit<I>, next: String) -> Self {
        let services = visit.pages.app().services();
        Self {
            frame: PlainFrame::of(&visit.visitor.look, &visit.pages),
            next,
            no_passkeys: services.passkeys().err().map(|reason| reason.to_string()),
            is_proven: false,
            draft: Draft::default(),
        }
    }
}

async fn show(visit: Visit) -> Result<Response, Refusal> {
    adding(&visit).await?;
    Ok(html(StatusCode::OK, PasskeyPage::new(&visit, next(&visit.query)).render()))
}

async fn ask(action: Action) -> Result<Response, Refusal> {
    adding(&action).await?;
    Ok(respond(challenge(&action).await))
}

async fn challenge(action: &Action) -> Result<Challenge, Error> {
    parse_passkey_name(&action.form.members(&[("name", As::Text)]))?;
    let (pages, visitor) = (&action.pages, &action.visitor);
    let holder = pages.write_as(&visitor.access(), visitor.origin, BeginPasskey).await?;
    passkey::new_challenge(pages.app().services(), visitor.session, holder)
}

async fn ask_proof(visit: Visit) -> Result<Response, Refusal> {
    Ok(respond(proof::challenge(&visit).await?))
}

async fn add(action: Action) -> Result<Response, Refusal> {
    adding(&action).await?;
    let page = PasskeyPage::new(&action, next(&action.form));
    match try_add(&action).await {
        Ok(Some(added)) => finish(&action, added, "Passkey added. Your other sessions are logged out."),
        Ok(None) => {
            let draft = Draft::new([("name", action.form.text("name").to_owned())]);
            Ok(html(StatusCode::OK, PasskeyPage { draft, is_proven: true, ..page }.render()))
        }
        Err(error) => {
            let draft = action.refused(error).await?;
            Ok(html(StatusCode::UNPROCESSABLE_ENTITY, PasskeyPage { draft, ..page }.render()))
        }
    }
}

/// Adds the passkey that was made. `None` if none was: the script sends the form without one if the person has to prove
/// first who they are.
async fn try_add(action: &Action) -> Result<Option<Added>, Error> {
    let name = parse_passkey_name(&action.form.members(&[("name", As::Text)]))?;
    let (pages, session) = (&action.pages, action.visitor.session);
    let Some((state, credential)) = answered(&action.form) else {
        pages.write_as(&action.visitor.access(), action.visitor.origin, BeginPasskey).await?;
        return Ok(None);
    };
    let checked = move |services: &rapport_app::Services| {
        AddPasskey::check(services, session, name, &state, &credential)
    };
    action.submit(pages.slowly(checked).await?).await.map(Some)
}
