//! Asks a person for their password again, or for a passkey, before something sensitive, and then goes on with the form
//! that they sent. The page shows nothing of the company: somebody may have to set up a second factor before they see it.
//!
//! Who logged in with single sign-on is sent to their company's provider instead, and comes back to the page with the form.
//!
//! The form waits in the page that asks: encrypted, so that the page shows nothing of it, and bound to the session and to
//! the address that it was sent to. So nothing that was typed is lost, with or without scripts.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::passkey::{self, Aim, Challenge};
use rapport_app::proof::{ProveAgain, wrong_passkey};
use rapport_app::read::factors::Holder as Person;
use rapport_app::vault::Purpose;
use rapport_app::{Error, Services};
use rapport_domain::invalid::Invalid;
use rapport_domain::member::Email;
use rapport_domain::second_factor::Factor;

use crate::pages::entry::confirm_path;
use crate::pages::kit::challenge;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{PlainFrame, html};
use crate::pages::kit::origin::own_path;
use crate::pages::kit::password::Holder;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;

/// The hidden field with the form that waits.
const WAITING: &str = "waiting_form";
/// The hidden field with the page that the form was on.
const BACK: &str = "back";

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage {
    frame: PlainFrame,
    email: Email,
    has_passkeys: bool,
    /// Where the form was sent, and is sent again.
    path: String,
    waiting: String,
    back: String,
    draft: Draft,
    /// The company's identity provider, which asks instead of us if they logged in with it.
    provider: Option<String>,
}

impl ConfirmPage {
    /// The way to the provider and back to the page with the form.
    fn provider_path(&self) -> String {
        confirm_path(&self.back)
    }
}

/// The page that asks for a proof before a form that was sent to this address.
pub async fn ask<I>(visit: &Visit<I>, path: &str, form: &Form) -> Result<Response, Refusal> {
    let person = visit.holder().await?;
    let page = page(visit, &person, path, form, own_path(visit.visitor.page_before()))?;
    Ok(html(StatusCode::FORBIDDEN, page.render()))
}

/// The challenge for a passkey of the person who is asked.
pub async fn challenge<I>(visit: &Visit<I>) -> Result<Result<Challenge, Error>, Refusal> {
    let Person { credentials, .. } = visit.holder().await?;
    let services = visit.pages.app().services();
    Ok(passkey::challenge(services, Aim::Proof(visit.visitor.session), &credentials))
}

/// Takes the form that waited out of one that answers the question. Any other form is returned as it is.
pub async fn answered<I>(visit: &Visit<I>, path: &str, form: Form) -> Result<Form, Refusal> {
    if !form.is_ticked(WAITING) {
        return Ok(form);
    }
    let waiting = unwrapped(visit, path, form.text(WAITING)).ok_or_else(|| {
        Invalid::one("/form", "malformed", "can’t be read any more; go back, reload the page and try again")
    })?;
    let person = visit.holder().await?;
    let proven = match challenge::answered(&form) {
        Some(_) => with_passkey(visit, &person, &form).await,
        None => with_password(visit, form.text("password")).await,
    };
    let Err(error) = proven else { return Ok(waiting) };
    let draft = Draft::refused(&form, error).map_err(|error| visit.visitor.refused(error))?;
    let asked = page(visit, &person, path, &waiting, own_path(form.text(BACK)))?;
    let page = ConfirmPage { draft, ..asked };
    Err(Refusal::Again(Box::new(html(StatusCode::UNPROCESSABLE_ENTITY, page.render()))))
}

fn page<I>(
    visit: &Visit<I>,
    person: &Person,
    path: &str,
    form: &Form,
    back: String,
) -> Result<ConfirmPage, Refusal> {
    let waiting = wrapped(visit, path, form).ok_or_else(|| Refusal::of(Error::Unauthenticated))?;
    let has_passkeys = !person.credentials.is_empty() && visit.pages.app().services().passkeys().is_ok();
    let (frame, email) = (PlainFrame::of(&visit.visitor.look, &visit.pages), person.email.clone());
    Ok(ConfirmPage {
        frame,
        email,
        has_passkeys,
        path: path.to_owned(),
        waiting,
        back,
        draft: Draft::default(),
        provider: person.provider.clone(),
    })
}

fn wrapped<I>(visit: &Visit<I>, path: &str, form: &Form) -> Option<String> {
    let services = visit.pages.app().services();
    let nonce = services.random();
    services.vault().wrap(Purpose::Form, &parts(visit, path), &form.to_query(), nonce)
}

fn unwrapped<I>(visit: &Visit<I>, path: &str, text: &str) -> Option<Form> {
    let vault = visit.pages.app().services().vault();
    vault.unwrap(Purpose::Form, &parts(visit, path), text).map(|query| Form::of_query(Some(&query)))
}

fn parts<'a, I>(visit: &'a Visit<I>, path: &'a str) -> [&'a [u8]; 2] {
    [visit.visitor.session.hash.as_bytes(), path.as_bytes()]
}

/// Checks the password, and notes in the session that it was right.
async fn with_password<I>(visit: &Visit<I>, typed: &str) -> Result<(), Error> {
    let (pages, visitor) = (&visit.pages, &visit.visitor);
    let session = visitor.session;
    let check =
        move |_: &Services, holder: &Holder, typed: &str| ProveAgain::check(&holder.login, typed, session);
    let proof = pages.check_password(visitor, ("password", typed), check).await?;
    pages.write_as(&visitor.access(), visitor.origin, proof).await
}

/// Checks the answer of a passkey, limited like passwords, and notes in the session that it was right.
async fn with_passkey<I>(visit: &Visit<I>, person: &Person, form: &Form) -> Result<(), Error> {
    let (pages, visitor) = (&visit.pages, &visit.visitor);
    let attempt = visitor.attempt(pages, &person.email);
    let Ok(guess) = pages.0.limiter.guessing.admit(attempt, pages.app().now()) else {
        return Err(Invalid::one("/passkey", "too_many", "was wrong too often; wait a minute").into());
    };
    let proven = try_passkey(visit, person, form).await;
    let was_wrong = matches!(proven, Err(Error::Invalid(_)));
    guess.settle(was_wrong);
    if was_wrong {
        pages.note_failed_factor(person.person, Factor::Passkey, visitor.origin);
    }
    proven
}

async fn try_passkey<I>(visit: &Visit<I>, person: &Person, form: &Form) -> Result<(), Error> {
    let (pages, visitor) = (&visit.pages, &visit.visitor);
    let claim = pages.read_passkey(Aim::Proof(visitor.session), form).await?.ok_or_else(wrong_passkey)?;
    let used = pages.check_passkey(claim, Some(person.person)).await?.ok_or_else(wrong_passkey)?;
    let proof = ProveAgain::with_passkey(used, visitor.session);
    pages.write_as(&visitor.access(), visitor.origin, proof).await
}
