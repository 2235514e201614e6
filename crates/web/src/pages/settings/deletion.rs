//! Everything that the company stored, as a file; and the deletion of the company. For owners only.

use askama::Template;
use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::company_deletion::{CancelDeletion, RequestDeletion};
use rapport_app::{Error, Services, person};
use rapport_domain::company_deletion::{Deletion, WAITING_DAYS};
use rapport_domain::file_format::Format;

use super::{back_to, tabbed};
use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::As;
use crate::pages::kit::frame::{Frame, framed};
use crate::pages::kit::password::Holder;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit, show};
use crate::pages::{COMPANY, Pages};
use crate::shared::full_export::Wanted;

const PATH: &str = "/settings/deletion";
const PASSWORD: &str = "current";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(show::<DeletionPage, ()>).post(request))
        .route("/settings/deletion/cancel", post(cancel).merge(back_to(PATH)))
        .route("/settings/export", get(export))
}

#[derive(Template)]
#[template(path = "settings/deletion.html")]
struct DeletionPage {
    frame: Frame,
    draft: Draft,
    waiting_days: i64,
}
framed!("settings": DeletionPage);
tabbed!("company": DeletionPage);

impl Load<()> for DeletionPage {
    async fn load(visit: &Visit) -> Result<Self, Refusal> {
        let frame = visit.frame(COMPANY).await?;
        Ok(Self { frame, draft: Draft::default(), waiting_days: WAITING_DAYS })
    }
}

async fn request(action: Action) -> Result<Response, Refusal> {
    let requested = try_request(&action).await;
    action.settle(requested, |page: &mut DeletionPage, draft| page.draft = draft).await?;
    action.done(PATH, "The owners and admins are told by mail, if this server sends mail.")
}

async fn try_request(action: &Action) -> Result<Deletion, Error> {
    // The command asks who logged in with single sign-on for another proof.
    if !action.pages.is_by_sso(&action.visitor).await? {
        let typed = (PASSWORD, action.form.text(PASSWORD));
        let check =
            |_: &Services, holder: &Holder, typed: &str| person::prove(&holder.login, typed, PASSWORD);
        action.pages.check_password(&action.visitor, typed, check).await?;
    }
    action.submit(RequestDeletion(action.form.members(&[("project", As::Text)]))).await
}

async fn cancel(action: Action) -> Result<Response, Refusal> {
    action.act::<DeletionPage, _>(CancelDeletion).await?;
    action.done(PATH, "Deletion cancelled. Nothing was deleted.")
}

async fn export(visit: Visit) -> Result<Response, Refusal> {
    let format = visit.query.format(Format::JsonLines)?;
    visit.export_whole(COMPANY, Wanted { account: None, format }).await
}
