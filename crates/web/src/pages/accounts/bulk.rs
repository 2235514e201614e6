//! Moves several accounts of a page at once, and moves them back.

use axum::response::Response;
use rapport_app::bulk::{MoveAccounts, Moved};
use rapport_domain::account::StatusChange;
use rapport_domain::bulk::BulkMove;
use rapport_domain::invalid::Invalid;
use rapport_domain::pipeline::Status;

use crate::pages::accounts::PATH;
use crate::pages::accounts::list::AccountsPage;
use crate::pages::kit::action::{Action, banner};
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::origin::own_path;
use crate::pages::kit::refusal::Refusal;
use crate::pages::words::number::counted;

const UNDO: &str = "/accounts/bulk/undo";
/// A flash has little room, so the undo of a list with a longer address leads to the unfiltered list.
const MAX_NEXT: usize = 300;

pub async fn apply(action: Action) -> Result<Response, Refusal> {
    let (next, wanted) = (next(&action.form), wanted(&action.form));
    let action = action.on_page(Form::of_query(next.split_once('?').map(|(_, query)| query)));
    let status = wanted.as_ref().map_or(Status::Prospect, |(_, status)| *status);
    let command = wanted.map(|(bulk, _)| MoveAccounts(bulk));
    let moved = action.run(command, |page: &mut AccountsPage, draft| page.moving = draft).await?;
    action.done(&next, flash(&moved, status, &next))
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

pub async fn undo(action: Action) -> Result<Response, Refusal> {
    let form = &action.form;
    let now = Status::parse(form.text("status"));
    let now = now.map_err(|fault| Invalid::one("/status", fault.code, fault.detail));
    let groups = Status::ALL.map(|status| (status, form.text(status.as_str())));
    let command = now.and_then(|now| BulkMove::back(groups, now)).map(MoveAccounts);
    let Moved { moved, missed, .. } = action.run(command, banner::<AccountsPage>).await?;
    let mut said = vec![format!("{} moved back.", accounts(moved.len()))];
    said.extend(
        (missed > 0).then(|| format!("Not moved back because changed meanwhile: {}.", accounts(missed))),
    );
    action.done(&next(form), said.join(" "))
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
