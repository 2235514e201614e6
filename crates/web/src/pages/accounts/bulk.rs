//! Moves several accounts of a page at once, and moves them back.

use axum::extract::State;
use axum::response::Response;
use rapport_app::bulk::{MoveAccounts, Moved};
use rapport_domain::account::StatusChange;
use rapport_domain::bulk::BulkMove;
use rapport_domain::invalid::Invalid;
use rapport_domain::pipeline::Status;

use crate::pages::Pages;
use crate::pages::accounts::PATH;
use crate::pages::accounts::asked::Asked;
use crate::pages::accounts::list::AccountsPage;
use crate::pages::entry::login::own_path;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::Page as _;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::words::number::counted;

const UNDO: &str = "/accounts/bulk/undo";
/// A flash has little room, so the undo of a list with a longer address leads to the unfiltered list.
const MAX_NEXT: usize = 300;

pub async fn apply(State(pages): State<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    let next = next(&form);
    let done = match wanted(&form) {
        Ok((bulk, status)) => {
            pages.submit(&visitor, &form, MoveAccounts(bulk)).await.map(|moved| (moved, status))
        }
        Err(invalid) => Err(invalid.into()),
    };
    match done {
        Ok((moved, status)) => Ok(pages.done(&next, flash(&moved, status, &next))),
        Err(error) => {
            let moving = Draft::refused(&form, error).map_err(|error| visitor.refused(error))?;
            let mut page = AccountsPage::load(&pages, &visitor, Asked::of_address(&next)).await?;
            page.moving = moving;
            Ok(page.refuse())
        }
    }
}

/// The ticked accounts, or all accounts of the page.
fn wanted(form: &Form) -> Result<(BulkMove, Status), Invalid> {
    let change = StatusChange::parse(&form.members(&[("status", As::Text), ("note", As::Text)]))?;
    let status = change.status;
    let bulk = if form.is_ticked("all") {
        BulkMove::to_one(form.text("shown").split(' '), change)
    } else {
        BulkMove::to_one(form.all("account"), change)
    };
    Ok((bulk?, status))
}

fn flash(done: &Moved, status: Status, next: &str) -> Flash {
    let Moved { moved, stayed, missed } = done;
    let mut said = vec![format!("{} moved to {}.", accounts(moved.len()), status.label())];
    said.extend((*stayed > 0).then(|| format!("{stayed} already there.")));
    said.extend(
        (*missed > 0).then(|| format!("Not moved because deleted meanwhile: {}.", accounts(*missed))),
    );
    let text = said.join(" ");
    if moved.is_empty() {
        return Flash::bad(text);
    }
    let mut fields = vec![("status".to_owned(), status.as_str().to_owned())];
    if next.len() <= MAX_NEXT {
        fields.push(("next".to_owned(), next.to_owned()));
    }
    for from in Status::ALL {
        let ids = moved.iter().filter(|(_, was)| *was == from).map(|(id, _)| id.to_string());
        let ids: Vec<String> = ids.collect();
        if !ids.is_empty() {
            fields.push((from.as_str().to_owned(), ids.join(" ")));
        }
    }
    Flash::good(text).undo(UNDO, fields)
}

pub async fn undo(State(pages): State<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    let now = Status::parse(form.text("status"))
        .map_err(|fault| Invalid::one("/status", fault.code, fault.detail))?;
    let groups = Status::ALL.map(|status| (status, form.text(status.as_str())));
    let bulk = BulkMove::back(groups, now)?;
    let done = pages.submit(&visitor, &form, MoveAccounts(bulk)).await;
    let Moved { moved, missed, .. } = done.map_err(|error| visitor.refused(error))?;
    let mut said = vec![format!("{} moved back.", accounts(moved.len()))];
    said.extend(
        (missed > 0).then(|| format!("Not moved back because changed meanwhile: {}.", accounts(missed))),
    );
    Ok(pages.done(&next(&form), Flash::good(said.join(" "))))
}

fn accounts(count: usize) -> String {
    counted(i64::try_from(count).unwrap_or(i64::MAX), "account", "accounts")
}

/// The page that the form was on.
fn next(form: &Form) -> String {
    let next = own_path(form.text("next"));
    let is_list = next == PATH || next.starts_with("/accounts?");
    if is_list { next } else { PATH.to_owned() }
}
