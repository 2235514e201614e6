//! Saved views of the list, shared by the whole company.

use axum::extract::State;
use axum::response::Response;
use rapport_app::Error;
use rapport_app::saved_view::{DeleteView, RenameView, SaveView};
use rapport_domain::saved_view::{self, Save, SavedView};
use serde_json::Value;

use crate::pages::Pages;
use crate::pages::accounts::PATH;
use crate::pages::accounts::asked::Asked;
use crate::pages::accounts::list::AccountsPage;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::Page as _;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;

pub async fn save(State(pages): State<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    let asked = Asked::of_query(form.text("query"));
    let mut members = form.members(&[("name", As::Text), ("replace", As::Ticked)]);
    members.insert("query".to_owned(), Value::from(asked.query()));
    let saved = match Save::parse(&members) {
        Ok(save) => {
            let name = save.name.clone();
            pages.submit(&visitor, &form, SaveView(save)).await.map(|()| name)
        }
        Err(invalid) => Err(invalid.into()),
    };
    match saved {
        Ok(name) => Ok(pages.done(&asked.href(), Flash::good(format!("View “{name}” saved for everyone.")))),
        Err(error) => {
            let saving = Draft::refused(&form, error).map_err(|error| visitor.refused(error))?;
            let mut page = AccountsPage::load(&pages, &visitor, asked).await?;
            page.saving = saving;
            Ok(page.refuse())
        }
    }
}

pub async fn rename(State(pages): State<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    let asked = Asked::of_query(form.text("query"));
    let renamed = match saved_view::parse_name(&form.members(&[("name", As::Text)])) {
        Ok(to) => {
            let command = RenameView { from: form.text("view").to_owned(), to };
            pages.submit(&visitor, &form, command).await
        }
        Err(invalid) => Err(Error::from(invalid)),
    };
    match renamed {
        Ok(()) => Ok(pages.done(&asked.href(), Flash::good("View renamed."))),
        Err(error) => {
            let renaming = Draft::refused(&form, error).map_err(|error| visitor.refused(error))?;
            let mut page = AccountsPage::load(&pages, &visitor, asked).await?;
            page.renaming = renaming;
            Ok(page.refuse())
        }
    }
}

pub async fn delete(State(pages): State<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    let deleted = pages.submit(&visitor, &form, DeleteView(form.text("view").to_owned())).await;
    let SavedView { name, query, .. } = deleted.map_err(|error| visitor.refused(error))?;
    let flash = Flash::good(format!("View “{name}” deleted."));
    let fields = vec![("name".to_owned(), name), ("query".to_owned(), query)];
    Ok(pages.done(PATH, flash.undo("/accounts/views", fields)))
}
