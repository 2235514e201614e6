//! The weekly digest: preview it, send it now, and list past digests.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::digest::{Rendered, preview, written};
use rapport_app::read::digest::{self, Counts, Digest, Sent};
use rapport_domain::digest::{Audience, Week};
use rapport_domain::time::Time;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Caller, Id, OptionalCall};
use crate::api::{Api, READ, SETTINGS, requests};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor, write_cursor};

const LIST: u8 = b'w';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(preview_digest))
        .routes(routes!(send_digest))
        .routes(routes!(list_digests))
        .routes(routes!(get_digest))
}

/// The text of a digest.
#[derive(Serialize, ToSchema)]
struct DigestText {
    #[schema(example = "Acme: 3 clients are overdue for contact")]
    subject: String,
    text: String,
    html: String,
    /// How many clients are overdue.
    overdue: i64,
}

/// Preview the digest
///
/// Returns the digest as it would be sent now.
#[utoipa::path(
    get,
    path = "/api/digest/preview/",
    tag = "Digest",
    responses((status = 200, description = "The digest.", body = DigestText)),
    security(("token" = ["read"])),
)]
async fn preview_digest(State(api): State<Api>, caller: Caller) -> Result<Response, Problem> {
    let found = preview(api.app(), &caller.access()).await;
    let Rendered { subject, plain: text, html, overdue } = api.settle(&caller, found)?;
    Ok(json::respond(StatusCode::OK, &DigestText { subject, text, html, overdue }))
}

/// How many mails are on their way.
#[derive(Serialize, ToSchema)]
struct DigestSent {
    mails: usize,
}

/// Send the digest now
///
/// Sends it to every active member or to one. This doesn't replace the weekly digest. Requires the admin role.
#[utoipa::path(
    post,
    path = "/api/digest/send/",
    tag = "Digest",
    request_body(content = Option<requests::DigestSend>),
    responses(
        (status = 202, description = "The mails are on their way.", body = DigestSent),
        (status = 404, description = "No such active member."),
        (status = 409, description = "The server has no mail configured."),
    ),
    security(("token" = ["settings"])),
)]
async fn send_digest(State(api): State<Api>, call: OptionalCall) -> Result<Response, Problem> {
    let (caller, audience) = call.parse(Audience::parse);
    api.verify(&caller, SETTINGS).await?;
    let written = written(api.app(), &caller.access(), audience?).await;
    let command = api.settle(&caller, written)?;
    api.act(&caller, Ok(command), |mails| json::render(StatusCode::ACCEPTED, &DigestSent { mails })).await
}

/// A past digest without its content.
#[derive(Serialize, ToSchema)]
#[schema(as = Digest)]
struct DigestView {
    /// The ISO week.
    #[schema(example = "2026-W03")]
    week: String,
    subject: String,
    /// How many clients were overdue.
    overdue: i64,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// The state of its mails. All zero if the server had no mail configured.
    mails: MailCounts,
}

#[derive(Serialize, ToSchema)]
struct MailCounts {
    waiting: i64,
    sent: i64,
    failed: i64,
}

impl DigestView {
    fn new(digest: Digest, Counts { waiting, sent, failed }: Counts) -> Self {
        Self {
            week: digest.week.to_string(),
            subject: digest.subject,
            overdue: digest.overdue,
            created_at: digest.created_at,
            mails: MailCounts { waiting, sent, failed },
        }
    }
}

/// A digest with its content.
#[derive(Serialize, ToSchema)]
struct WholeDigest {
    #[serde(flatten)]
    view: DigestView,
    text: String,
    html: String,
}

/// List digests
///
/// The latest week first, kept for 90 days.
#[utoipa::path(
    get,
    path = "/api/digests/",
    tag = "Digest",
    params(requests::PageParameters),
    responses((status = 200, description = "A page of digests.", body = Page<DigestView>)),
    security(("token" = ["read"])),
)]
async fn list_digests(
    State(api): State<Api>,
    caller: Caller,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let before = parameters.cursor(read_place);
    let limit = parameters.limit();
    let found = api.read(&caller, READ, parameters.finish(), move |snapshot, _, ()| {
        digest::past(snapshot, before, limit)
    });
    let page = found.await?.reply;
    let next_cursor = page.items.last().filter(|_| page.more).map(|(last, _)| write_place(last.week));
    let items: Vec<DigestView> =
        page.items.into_iter().map(|(digest, counts)| DigestView::new(digest, counts)).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor }))
}

fn write_place(week: Week) -> String {
    write_cursor(LIST, week.to_string().as_bytes())
}

fn read_place(text: &str) -> Option<Week> {
    let bytes: [u8; 8] = read_cursor(LIST, text)?;
    Week::parse(std::str::from_utf8(&bytes).ok()?)
}

/// Get a digest
///
/// With its text and HTML, as it was or would have been mailed.
#[utoipa::path(
    get,
    path = "/api/digests/{week}/",
    tag = "Digest",
    params(("week" = String, Path, description = "The ISO week, such as 2026-W03.")),
    responses(
        (status = 200, description = "The digest.", body = WholeDigest),
        (status = 404, description = "No digest for this week."),
    ),
    security(("token" = ["read"])),
)]
async fn get_digest(State(api): State<Api>, caller: Caller, Id(week): Id<Week>) -> Result<Response, Problem> {
    let found = api.read(&caller, READ, week, |snapshot, _, week| digest::of_week(snapshot, week));
    let Sent { digest, counts, content } = found.await?.reply.ok_or_else(|| Problem::not_found("digest"))?;
    let view = DigestView::new(digest, counts);
    let whole = WholeDigest { view, text: content.plain, html: content.html };
    Ok(json::respond(StatusCode::OK, &whole))
}
