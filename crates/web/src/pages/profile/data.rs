//! What is stored about the person who is logged in, as a file.

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use rapport_app::Answer;
use rapport_app::export::{Exported, RecordExport};
use rapport_app::read::own_data::login;

use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;
use crate::pages::{Pages, READ};
use crate::shared::own_data::respond;

pub fn routes() -> Router<Pages> {
    Router::new().route("/profile/data", get(download))
}

async fn download(visit: Visit) -> Result<Response, Refusal> {
    let (app, access) = (visit.pages.app(), visit.visitor.access());
    let found = app.read(&access, READ, login).await;
    let Answer { reply, company, now } = found.map_err(|error| visit.visitor.refused(error))?;
    let reply = reply.ok_or_else(|| Refusal::not_found("person"))?;
    visit.write(RecordExport::whole(Exported::OwnData, "json")).await?;
    Ok(respond(app, access, Answer { reply, company, now }))
}
