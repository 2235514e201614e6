//! Changes an account's status by hand.

use axum::extract::{Path, State};
use axum::response::Response;
use rapport_app::account::{ChangeStatus, StatusChanged};
use rapport_domain::account::StatusChange;

use super::page::AccountPage;
use super::words::short;
use super::{account_id, back, path_of, run};
use crate::pages::Pages;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;

pub async fn change_status(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id = account_id(&id)?;
    let change = StatusChange::parse(&form.members(&[("status", As::Text), ("note", As::Text)]));
    let command = change.map(|change| ChangeStatus { id, change });
    match run(&pages, &visitor, &form, command).await {
        Ok(StatusChanged { account, moved, from }) => {
            let (name, status) = (short(&account.reply.name), account.reply.status.label());
            let flash = if moved {
                let fields = vec![
                    ("status".to_owned(), from.as_str().to_owned()),
                    ("next".to_owned(), form.text("next").to_owned()),
                ];
                Flash::good(format!("{name} moved to {status}."))
                    .undo(format!("{}/move", path_of(id)), fields)
            } else {
                Flash::good(format!("{name} is already in {status}."))
            };
            Ok(pages.done(&back(&form, id), flash))
        }
        Err(error) => {
            let put = |page: &mut AccountPage, draft| page.forms.status = draft;
            AccountPage::again(&pages, &visitor, id, (&form, error), put).await
        }
    }
}
