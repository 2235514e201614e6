//! Saved views of the list, shared by the whole company.

use axum::response::Response;
use rapport_app::saved_view::{DeleteView, RenameView, SaveView};
use rapport_domain::saved_view::{self, Save, SavedView};
use serde_json::Value;

use crate::pages::accounts::PATH;
use crate::pages::accounts::asked::Asked;
use crate::pages::accounts::list::AccountsPage;
use crate::pages::kit::action::Action;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::refusal::Refusal;

pub async fn save(action: Action) -> Result<Response, Refusal> {
    let (asked, action) = on_list(action);
    let mut members = action.form.members(&[("name", As::Text), ("replace", As::Ticked)]);
    members.insert("query".to_owned(), Value::from(asked.query()));
    let command = Save::parse(&members).map(SaveView);
    action.run(command, |page: &mut AccountsPage, draft| page.saving = draft).await?;
    let name = action.form.text("name").trim();
    action.done(&asked.href(), format!("View “{name}” saved for everyone."))
}

pub async fn rename(action: Action) -> Result<Response, Refusal> {
    let (asked, action) = on_list(action);
    let from = action.form.text("view").to_owned();
    let name = saved_view::parse_name(&action.form.members(&[("name", As::Text)]));
    let command = name.map(|to| RenameView { from, to });
    action.run(command, |page: &mut AccountsPage, draft| page.renaming = draft).await?;
    action.done(&asked.href(), "View renamed.")
}

pub async fn delete(action: Action) -> Result<Response, Refusal> {
    let command = DeleteView(action.form.text("view").to_owned());
    let SavedView { name, query, .. } = action.act::<AccountsPage, _>(command).await?;
    let flash = Flash::good(format!("View “{name}” deleted."));
    let fields = vec![("name".to_owned(), name), ("query".to_owned(), query)];
    action.done(PATH, flash.undo("/accounts/views", fields))
}

/// The list that a form was on.
fn on_list(action: Action) -> (Asked, Action) {
    let asked = Asked::of_query(action.form.text("query"));
    let action = action.on_page(Form::of_query(Some(&asked.query())));
    (asked, action)
}
