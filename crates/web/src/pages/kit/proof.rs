//! Asks a person for their password again before something sensitive, and then goes on with the form that they sent.
//!
//! The form waits in the page that asks: encrypted, so that the page shows nothing of it, and bound to the session and to
//! the address that it was sent to. So nothing that was typed is lost, with or without scripts.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::proof::ProveAgain;
use rapport_app::read::profile;
use rapport_app::vault::Purpose;
use rapport_app::{Error, Services};
use rapport_domain::invalid::Invalid;
use rapport_domain::member::{Email, Member};

use crate::pages::READ;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
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
    frame: Frame,
    email: Email,
    /// Where the form was sent, and is sent again.
    path: String,
    waiting: String,
    back: String,
    draft: Draft,
}
framed!("": ConfirmPage);

/// The page that asks for a proof before a form that was sent to this address.
pub async fn ask<I>(visit: &Visit<I>, path: &str, form: &Form) -> Result<Response, Refusal> {
    let page = page(visit, path, form, own_path(visit.visitor.page_before())).await?;
    Ok(page.respond_with(StatusCode::FORBIDDEN))
}

/// Takes the form that waited out of one that answers the question. Any other form is returned as it is.
pub async fn answered<I>(visit: &Visit<I>, path: &str, form: Form) -> Result<Form, Refusal> {
    if !form.is_ticked(WAITING) {
        return Ok(form);
    }
    let waiting = unwrapped(visit, path, form.text(WAITING)).ok_or_else(|| {
        Invalid::one("/form", "malformed", "can’t be read any more; go back, reload the page and try again")
    })?;
    let Err(error) = prove(visit, form.text("password")).await else { return Ok(waiting) };
    let draft = Draft::refused(&form, error).map_err(|error| visit.visitor.refused(error))?;
    let asked = page(visit, path, &waiting, own_path(form.text(BACK))).await?;
    Err(Refusal::Again(Box::new(ConfirmPage { draft, ..asked }.refuse())))
}

async fn page<I>(visit: &Visit<I>, path: &str, form: &Form, back: String) -> Result<ConfirmPage, Refusal> {
    let Shown { frame, reply } = visit.read(READ, profile::login).await?;
    let (Member { email, .. }, _) = reply.ok_or_else(|| Refusal::not_found("person"))?;
    let waiting = wrapped(visit, path, form).ok_or_else(|| Refusal::of(Error::Unauthenticated))?;
    Ok(ConfirmPage { frame, email, path: path.to_owned(), waiting, back, draft: Draft::default() })
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
async fn prove<I>(visit: &Visit<I>, typed: &str) -> Result<(), Error> {
    let (pages, visitor) = (&visit.pages, &visit.visitor);
    let session = visitor.session;
    let check =
        move |_: &Services, holder: &Holder, typed: &str| ProveAgain::check(&holder.login, typed, session);
    let proof = pages.check_password(visitor, ("password", typed), check).await?;
    pages.write_as(&visitor.access(), visitor.origin, proof).await
}
