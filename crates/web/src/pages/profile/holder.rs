//! The person who opens a page about their own login. The page shows nothing of their company, because the company may
//! still require a second factor.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::Error;
use rapport_app::read::factors::{Holder, Step};
use rapport_app::second_factor::Added;

use super::PATH;
use crate::pages::kit::action::Action;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{PlainFrame, html};
use crate::pages::kit::origin::is_own_path;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;

/// The person who adds a factor: somebody who has one shows it first.
pub async fn adding<I>(visit: &Visit<I>) -> Result<Holder, Refusal> {
    let holder = visit.holder().await?;
    if holder.step == Step::Show {
        return Err(visit.visitor.refused(Error::lacks_factor()));
    }
    Ok(holder)
}

/// Where to go afterwards: the page that a form or an address names, else the profile.
pub fn next(form: &Form) -> String {
    let next = form.text("next");
    if is_own_path(next) { next.to_owned() } else { PATH.to_owned() }
}

#[derive(Template)]
#[template(path = "profile/codes.html")]
struct CodesPage {
    frame: PlainFrame,
    codes: Vec<String>,
    next: String,
}

/// Recovery codes, shown once.
pub fn show_codes(action: &Action, codes: Vec<String>, next: String) -> Response {
    let frame = PlainFrame::of(&action.visitor.look, &action.pages);
    html(StatusCode::OK, CodesPage { frame, codes, next }.render())
}

/// Ends adding a factor: with the recovery codes that came with it, if there are new ones.
pub fn finish(action: &Action, added: Added, text: &'static str) -> Result<Response, Refusal> {
    let next = next(&action.form);
    match added.recovery_codes {
        Some(codes) => Ok(show_codes(action, codes, next)),
        None => action.done(&next, text),
    }
}
