//! A company's mails: who received what, and whether it was sent.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::read::mail::{self, Mail};
use rapport_domain::id::MailId;
use rapport_domain::time::Time;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::Caller;
use crate::api::{Api, SETTINGS, requests};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor, write_cursor};

const LIST: u8 = b'l';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list_mails))
}

/// A mail without its content.
#[derive(Serialize, ToSchema)]
#[schema(as = Mail)]
struct MailView {
    #[schema(value_type = String, example = "mai_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: MailId,
    /// `digest`, `invitation`, `password_reset`, `webhook_disabled`, `break_glass_used`, `test`, `notice`,
    /// `address_change`, `address_notice` or `company_deletion`.
    #[schema(example = "digest")]
    kind: &'static str,
    #[schema(example = "ana@acme.example")]
    recipient: String,
    subject: String,
    /// `waiting`, `sent` or `failed`.
    #[schema(example = "sent")]
    state: &'static str,
    attempts: i64,
    /// When the next attempt is due. Null unless the mail is waiting.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    next_at: Option<Time>,
    /// Why the last attempt failed, in the mail server's words.
    #[schema(required = true)]
    error: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was sent or abandoned.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    finished_at: Option<Time>,
}

impl From<Mail> for MailView {
    fn from(mail: Mail) -> Self {
        Self {
            id: mail.id,
            kind: mail.kind.as_str(),
            recipient: mail.recipient.as_str().to_owned(),
            subject: mail.subject,
            state: mail.state.as_str(),
            attempts: mail.attempts,
            next_at: mail.next_at,
            error: mail.error,
            created_at: mail.created_at,
            finished_at: mail.finished_at,
        }
    }
}

/// List mails
///
/// Newest first, kept for 90 days. Requires the admin role.
#[utoipa::path(
    get,
    path = "/api/mails/",
    tag = "Mail",
    params(requests::PageParameters),
    responses((status = 200, description = "A page of mails.", body = Page<MailView>)),
    security(("token" = ["settings"])),
)]
async fn list_mails(
    State(api): State<Api>,
    caller: Caller,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let before = parameters.cursor(|text| read_cursor(LIST, text).map(MailId::from_bytes));
    let limit = parameters.limit();
    let found = api.read(&caller, SETTINGS, parameters.finish(), move |snapshot, _, ()| {
        mail::list(snapshot, before, limit)
    });
    let page = found.await?.reply;
    let next_cursor =
        page.items.last().filter(|_| page.more).map(|last| write_cursor(LIST, last.id.as_bytes()));
    let items: Vec<MailView> = page.items.into_iter().map(MailView::from).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor }))
}
