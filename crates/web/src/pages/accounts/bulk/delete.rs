//! Deletes several accounts of a page. That can't be undone, so the page asks first.

use askama::Template;
use axum::response::Response;
use rapport_app::Error;
use rapport_app::account::DeleteAccount;
use rapport_app::read::bulk;
use rapport_domain::account::Account;
use rapport_domain::id::AccountId;

use super::asked::picked;
use super::{accounts, next, on_bar, on_list};
use crate::pages::DELETE;
use crate::pages::kit::action::Action;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;

#[derive(Template)]
#[template(path = "accounts/bulk_delete.html")]
struct DeletePage {
    frame: Frame,
    found: Vec<Account>,
    missing: usize,
    next: String,
}
framed!("accounts": DeletePage);

/// How many accounts were deleted, and how many somebody else had deleted before.
#[derive(Default)]
struct Deleted {
    deleted: usize,
    missed: usize,
}

/// Shows what will be deleted, or deletes it if the person has confirmed.
pub async fn delete(action: Action) -> Result<Response, Refusal> {
    let next = next(&action.form);
    let action = on_list(action, &next);
    action.frame(DELETE).await?;
    let ids = action.settle(picked(&action.form).map_err(Error::from), on_bar).await?;
    if !action.form.is_ticked("confirmed") {
        return ask(&action, ids, next).await;
    }
    let Deleted { deleted, missed } = action.settle(delete_all(&action, &ids).await, on_bar).await?;
    let mut said = vec![format!("{} deleted.", accounts(deleted))];
    said.extend((missed > 0).then(|| format!("Deleted by somebody else meanwhile: {}.", accounts(missed))));
    action.done(&next, said.join(" "))
}

async fn ask(action: &Action, ids: Vec<AccountId>, next: String) -> Result<Response, Refusal> {
    let asked = ids.len();
    let found = action.read(DELETE, move |snapshot, _| bulk::accounts(snapshot, &ids));
    let Shown { frame, reply: found } = found.await?;
    let missing = asked - found.len();
    Ok(DeletePage { frame, found, missing, next }.respond())
}

/// Deletes one account after another, each in its own transaction. Only the first carries the form id.
async fn delete_all(action: &Action, ids: &[AccountId]) -> Result<Deleted, Error> {
    let visitor = &action.visitor;
    let mut done = Deleted::default();
    for id in ids {
        let command = DeleteAccount(*id);
        let deleted = if done.deleted == 0 {
            action.submit(command).await
        } else {
            action.pages.write_as(&visitor.access(), visitor.origin, command).await
        };
        match deleted {
            Ok(_) => done.deleted += 1,
            Err(Error::NotFound(_)) => done.missed += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

impl DeletePage {
    fn summary(&self) -> Vec<String> {
        let mut summary = vec![format!("{} will be deleted.", accounts(self.found.len()))];
        if self.missing > 0 {
            summary.push(format!("{} won’t, because already deleted.", accounts(self.missing)));
        }
        summary
    }

    fn button(&self) -> String {
        format!("Delete {}", accounts(self.found.len()))
    }
}
