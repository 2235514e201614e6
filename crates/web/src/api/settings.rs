//! The company's settings and the rotation of its keys.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::credential::{Key, NewCredential, RotateKey};
use rapport_app::precondition::Subject;
use rapport_app::read::credential::{Keys, keys};
use rapport_app::read::settings::deletion;
use rapport_app::settings::PatchSettings;
use rapport_app::{Answer, Viewer};
use rapport_domain::company::{Company, Weekday, time_zone_name};
use rapport_domain::company_deletion::Deletion;
use rapport_domain::credential::Credential;
use rapport_domain::pipeline::Status;
use rapport_domain::right::Grant;
use rapport_domain::time::Time;
use rapport_store::Snapshot;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Call, Caller, PlainCall};
use crate::api::conditional::{Conditions, versioned};
use crate::api::{Api, READ, requests};
use crate::edge::json::{self, Rendered};
use crate::edge::problem::Problem;

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(get_settings, patch_settings))
        .routes(routes!(rotate_ingest_key))
        .routes(routes!(rotate_inbound_key))
}

/// The company and its settings.
#[derive(Serialize, ToSchema)]
#[schema(as = Settings)]
#[expect(clippy::struct_excessive_bools, reason = "each member of the response is independent")]
struct SettingsView {
    /// The company's slug, which is `project` in upserts.
    #[schema(example = "acme")]
    project: String,
    #[schema(example = "Acme")]
    name: String,
    /// The number of days between contacts.
    #[schema(example = 42)]
    cadence_days: i64,
    /// Accounts in these stages are clients to keep in touch with.
    tracked_stages: Vec<Status>,
    digest_enabled: bool,
    #[schema(value_type = Weekday)]
    digest_weekday: &'static str,
    /// An IANA name.
    #[schema(example = "Europe/Berlin")]
    time_zone: String,
    /// An ISO 4217 code.
    #[schema(example = "USD")]
    default_currency: &'static str,
    /// The number of days that the audit log is kept.
    #[schema(example = 730)]
    audit_days: i64,
    /// The lowest role that may export.
    export_role: Grant,
    /// The lowest role that may delete accounts and erase payloads.
    delete_role: Grant,
    /// The number of minutes after which a session that nobody uses ends.
    #[schema(example = 20160)]
    session_idle_minutes: i64,
    /// The number of minutes after which every session ends. Not below `session_idle_minutes`.
    #[schema(example = 129_600)]
    session_max_minutes: i64,
    /// Whether members need a second factor to log in. API tokens aren't affected.
    second_factor_required: bool,
    /// Whether a lifecycle event that is older than the account's latest move still moves the account.
    late_events_move: bool,
    /// Null if there is no key.
    #[schema(required = true)]
    ingest_key: Option<KeyView>,
    /// Null if there is no key yet. Rotate it to create one.
    #[schema(required = true)]
    inbound_key: Option<KeyView>,
    /// Whether the server can send mail. If not, invitations and password resets are links to pass on, and digests
    /// are only stored.
    mail_configured: bool,
    /// Null unless an owner asked to delete the company.
    #[schema(required = true)]
    deletion: Option<DeletionView>,
}

/// The company will be deleted, unless an owner cancels it.
#[derive(Serialize, ToSchema)]
#[schema(as = CompanyDeletion)]
struct DeletionView {
    #[schema(value_type = String, format = DateTime)]
    requested_at: Time,
    /// The owner who asked. Null for the server's administrator.
    #[schema(required = true)]
    requested_by: Option<String>,
    /// When the company will be deleted.
    #[schema(value_type = String, format = DateTime)]
    at: Time,
}

impl From<Deletion> for DeletionView {
    fn from(Deletion { requested_at, requested_by, at, .. }: Deletion) -> Self {
        Self { requested_at, requested_by, at }
    }
}

/// A key without its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = Key)]
struct KeyView {
    /// The visible part of the key.
    #[schema(example = "rik_…7d4e")]
    prefix: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    last_used_at: Option<Time>,
}

impl From<Credential> for KeyView {
    fn from(Credential { shown, created_at, last_used_at, .. }: Credential) -> Self {
        Self { prefix: shown, created_at, last_used_at }
    }
}

impl SettingsView {
    fn new(
        company: Company,
        ingest_key: Option<Credential>,
        inbound_key: Option<Credential>,
        mail_configured: bool,
        deletion: Option<Deletion>,
    ) -> Self {
        let Company { slug, name, settings, .. } = company;
        Self {
            project: slug.as_str().to_owned(),
            name,
            cadence_days: settings.cadence_days,
            tracked_stages: settings.tracked_stages.statuses(),
            digest_enabled: settings.digest_enabled,
            digest_weekday: settings.digest_weekday.as_str(),
            time_zone: time_zone_name(&settings.time_zone).to_owned(),
            default_currency: settings.default_currency.code(),
            audit_days: settings.audit_days,
            export_role: settings.grants.export,
            delete_role: settings.grants.delete,
            session_idle_minutes: settings.sessions.idle_minutes,
            session_max_minutes: settings.sessions.max_minutes,
            second_factor_required: settings.second_factor_required,
            late_events_move: settings.late_events_move,
            ingest_key: ingest_key.map(KeyView::from),
            inbound_key: inbound_key.map(KeyView::from),
            mail_configured,
            deletion: deletion.map(DeletionView::from),
        }
    }
}

/// Get the settings
///
/// Of the company that the token belongs to.
#[utoipa::path(
    get,
    path = "/api/settings/",
    tag = "Settings",
    responses((status = 200, description = "The company and its settings.", body = SettingsView)),
    security(("token" = ["read"])),
)]
async fn get_settings(
    State(api): State<Api>,
    caller: Caller,
    conditions: Conditions,
) -> Result<Response, Problem> {
    conditions.answer(show(&api, &caller).await?)
}

/// Change the settings
///
/// Only the fields you send are changed. `project` can't be changed. Shorter sessions end immediately if they are too
/// old already.
#[utoipa::path(
    patch,
    path = "/api/settings/",
    tag = "Settings",
    request_body = requests::SettingsPatch,
    responses((status = 200, description = "The company and its settings.", body = SettingsView)),
    security(("token" = ["settings"])),
)]
async fn patch_settings(
    State(api): State<Api>,
    conditions: Conditions,
    Call { caller, body }: Call,
) -> Result<Response, Problem> {
    let command = body.map(|object| (Subject::Company, PatchSettings(object.members)));
    let mail_configured = api.app().services().outside().mail_configured;
    let current = move |snapshot: &mut Snapshot, viewer: &Viewer, _| {
        let company = viewer.caller.company.clone();
        Ok(Some(rendered(company, kept_with(snapshot)?, mail_configured)))
    };
    api.change(&caller, conditions, command, current).await?;
    Ok(versioned(show(&api, &caller).await?))
}

/// What the settings show that other tables keep.
fn kept_with(snapshot: &mut Snapshot) -> Result<(Keys, Option<Deletion>), rapport_store::Error> {
    Ok((keys(snapshot)?, deletion(snapshot)?))
}

async fn show(api: &Api, caller: &Caller) -> Result<Rendered, Problem> {
    let found = api.read(caller, READ, Ok(()), |snapshot, _, ()| kept_with(snapshot));
    let Answer { reply, company, .. } = found.await?;
    Ok(rendered(company, reply, api.app().services().outside().mail_configured))
}

fn rendered(
    company: Company,
    (Keys { ingest, inbound }, deletion): (Keys, Option<Deletion>),
    mail_configured: bool,
) -> Rendered {
    let view = SettingsView::new(company, ingest, inbound, mail_configured, deletion);
    json::render(StatusCode::OK, &view)
}

/// A new ingest key, shown only once.
#[derive(Serialize, ToSchema)]
struct NewIngestKey<'a> {
    ingest_key: &'a str,
    #[serde(flatten)]
    key: NewKey<'a>,
}

/// Rotate the ingest key
///
/// Returns the new key, once. The old key stops working immediately. Requires the admin role.
#[utoipa::path(
    post,
    path = "/api/settings/ingest-key/rotate/",
    tag = "Settings",
    responses((status = 200, description = "The new key.", body = NewIngestKey)),
    security(("token" = ["keys"])),
)]
async fn rotate_ingest_key(State(api): State<Api>, call: PlainCall) -> Result<Response, Problem> {
    rotate(&api, call, Key::Ingest, |made| {
        json::render(StatusCode::OK, &NewIngestKey { ingest_key: &made.text, key: NewKey::of(made) })
    })
    .await
}

/// A new inbound key, shown only once.
#[derive(Serialize, ToSchema)]
struct NewInboundKey<'a> {
    inbound_key: &'a str,
    #[serde(flatten)]
    key: NewKey<'a>,
}

/// Rotate the inbound key
///
/// Returns the new key, once. The old key, if any, stops working immediately. Requires the admin role.
#[utoipa::path(
    post,
    path = "/api/settings/inbound-key/rotate/",
    tag = "Settings",
    responses((status = 200, description = "The new key.", body = NewInboundKey)),
    security(("token" = ["keys"])),
)]
async fn rotate_inbound_key(State(api): State<Api>, call: PlainCall) -> Result<Response, Problem> {
    rotate(&api, call, Key::Inbound, |made| {
        json::render(StatusCode::OK, &NewInboundKey { inbound_key: &made.text, key: NewKey::of(made) })
    })
    .await
}

async fn rotate(
    api: &Api,
    call: PlainCall,
    key: Key,
    render: fn(&NewCredential) -> Rendered,
) -> Result<Response, Problem> {
    let (caller, command) = call.command(RotateKey(key));
    api.act(&caller, command, move |made| render(&made).with_secret()).await
}

/// A new key, for the one response that shows it.
#[derive(Serialize, ToSchema)]
struct NewKey<'a> {
    /// The same key.
    key: &'a str,
    prefix: &'a str,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
}

impl<'a> NewKey<'a> {
    fn of(made: &'a NewCredential) -> Self {
        Self { key: &made.text, prefix: &made.credential.shown, created_at: made.credential.created_at }
    }
}
