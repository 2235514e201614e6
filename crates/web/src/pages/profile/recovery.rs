//! New recovery codes.

use askama::Template;
use axum::Router;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use rapport_app::recovery_code::MakeRecoveryCodes;

use super::holder::{adding, next, show_codes};
use crate::pages::Pages;
use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::frame::{PlainFrame, html};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;

pub fn routes() -> Router<Pages> {
    Router::new().route("/profile/recovery-codes", get(show).post(renew))
}

#[derive(Template)]
#[template(path = "profile/recovery.html")]
struct RecoveryPage {
    frame: PlainFrame,
    draft: Draft,
}

impl RecoveryPage {
    fn new<I>(visit: &Visit<I>) -> Self {
        Self { frame: PlainFrame::of(&visit.visitor.look, &visit.pages), draft: Draft::default() }
    }
}

async fn show(visit: Visit) -> Result<Response, Refusal> {
    adding(&visit).await?;
    Ok(html(StatusCode::OK, RecoveryPage::new(&visit).render()))
}

async fn renew(action: Action) -> Result<Response, Refusal> {
    match action.submit(MakeRecoveryCodes).await {
        Ok(codes) => Ok(show_codes(&action, codes, next(&action.form))),
        Err(error) => {
            let draft = action.refused(error).await?;
            let page = RecoveryPage { draft, ..RecoveryPage::new(&action) };
            Ok(html(StatusCode::UNPROCESSABLE_ENTITY, page.render()))
        }
    }
}
