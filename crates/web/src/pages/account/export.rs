//! Everything about an account, as a file.

use axum::response::Response;
use rapport_domain::file_format::Format;
use rapport_domain::id::AccountId;

use crate::pages::ACCOUNT_DATA;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;
use crate::shared::full_export::Wanted;

pub async fn export(visit: Visit<AccountId>) -> Result<Response, Refusal> {
    let format = visit.query.format(Format::JsonLines)?;
    visit.export_whole(ACCOUNT_DATA, Wanted { account: Some(visit.id), format }).await
}
