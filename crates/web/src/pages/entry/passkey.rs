//! Logging in with a passkey alone. It counts as two factors: the device, and the finger or PIN that unlocks it.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::post;
use rapport_app::Error;
use rapport_app::passkey::{self, Aim};
use rapport_app::second_step::{self, Completed};
use rapport_app::session::Proven;
use rapport_domain::member::Email;
use rapport_domain::second_factor::Factor;

use super::login;
use crate::pages::Pages;
use crate::pages::kit::challenge::{self, Claim};
use crate::pages::kit::form::Form;
use crate::pages::kit::origin::own_path;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Stranger;

/// One text for everything that can be wrong.
const REFUSED: &str = "That passkey wasn’t accepted. Try again, or log in with your password.";

pub fn routes() -> Router<Pages> {
    Router::new().route("/login/passkey/challenge", post(ask)).route("/login/passkey", post(log_in))
}

async fn ask(State(pages): State<Pages>, stranger: Stranger) -> Result<Response, Refusal> {
    stranger.admit(&pages)?;
    Ok(challenge::respond(passkey::challenge(pages.app().services(), Aim::Login, &[])))
}

async fn log_in(State(pages): State<Pages>, stranger: Stranger, form: Form) -> Result<Response, Refusal> {
    stranger.admit(&pages)?;
    let next = own_path(form.text("next"));
    let claim = pages.read_passkey(Aim::Login, &form).await.map_err(Refusal::of)?;
    let Some(claim) = claim else { return Ok(login::refused(&pages, &stranger, next, REFUSED)) };
    let person = claim.person();
    let found = second_step::with_passkey(pages.app(), person).await.map_err(Refusal::of)?;
    let Some((proven, email)) = found else {
        return Ok(login::refused(&pages, &stranger, next, REFUSED));
    };
    let guessing = &pages.0.limiter.guessing;
    let attempt = stranger.attempt(&pages, &email);
    let guess = guessing.admit(attempt, pages.app().now()).map_err(Refusal::too_many)?;
    let begun = begin(&pages, &stranger, proven, &email, claim).await;
    guess.settle(matches!(begun, Ok(None)));
    match begun {
        Ok(Some(session)) => return Ok(pages.begun(&stranger, &session, &email, &next).await),
        Ok(None) => {}
        Err(error) => return pages.not_begun(proven.company, &next, error).await,
    }
    pages.note_failed_factor(person, Factor::Passkey, stranger.origin);
    Ok(login::refused(&pages, &stranger, next, REFUSED))
}

/// Checks the passkey and starts a session; `None` if it was wrong.
async fn begin(
    pages: &Pages,
    stranger: &Stranger,
    proven: Proven,
    email: &Email,
    claim: Claim,
) -> Result<Option<String>, Error> {
    let Some(used) = pages.check_passkey(claim, None).await? else { return Ok(None) };
    let complete = proven.complete(used, stranger.look.browser.as_deref());
    let complete = complete.announced(!stranger.knows(pages, email));
    match pages.write_as(&proven.access(), stranger.origin, complete).await? {
        Completed::Begun(session) => Ok(Some(session)),
        Completed::Wrong | Completed::Refused => Ok(None),
    }
}
