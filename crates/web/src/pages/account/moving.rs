//! Changes an account's status by hand.

use axum::response::Response;
use rapport_app::account::{ChangeStatus, StatusChanged};
use rapport_domain::account::StatusChange;
use rapport_domain::id::AccountId;

use super::page::AccountPage;
use super::words::short;
use super::{back, path_of};
use crate::pages::kit::action::Action;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::As;
use crate::pages::kit::refusal::Refusal;

pub async fn change_status(action: Action<AccountId>) -> Result<Response, Refusal> {
    let change = StatusChange::parse(&action.form.members(&[("status", As::Text), ("note", As::Text)]));
    let command = change.map(|change| ChangeStatus { id: action.id, change });
    let done = action.run(command, |page: &mut AccountPage, draft| page.forms.status = draft).await?;
    let StatusChanged { account, moved, from } = done;
    let (name, status) = (short(&account.reply.name), account.reply.status.label());
    if !moved {
        return action.done(&back(&action), format!("{name} is already in {status}."));
    }
    let fields = vec![
        ("status".to_owned(), from.as_str().to_owned()),
        ("next".to_owned(), action.form.text("next").to_owned()),
    ];
    let flash = Flash::good(format!("{name} moved to {status}."));
    action.done(&back(&action), flash.undo(format!("{}/move", path_of(action.id)), fields))
}
