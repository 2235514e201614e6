//! Webhooks: list, create, edit, test, enable, disable and delete them, and rotate their secrets.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rapport_app::Viewer;
use rapport_app::read::webhook::{self, Choice, Described};
use rapport_app::webhook::{
    Changes, CreateWebhook, DeleteWebhook, DisableWebhook, EnableWebhook, NewSecret, PatchWebhook,
    RotateSecret, TestWebhook,
};
use rapport_domain::event::Kind;
use rapport_domain::id::WebhookId;
use rapport_domain::standard_webhook::library_secret;
use rapport_domain::time::Time;
use rapport_domain::webhook::{Create, Held, LastTest, Patch, Selection, Switch, Webhook};
use rapport_domain::webhook_header::Header;
use rapport_store::Snapshot;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Call, Caller, Id, OptionalCall, PlainCall};
use crate::api::conditional::{Conditions, versioned};
use crate::api::deliveries::{self, DeliveryDetail};
use crate::api::{Api, WEBHOOKS, requests};
use crate::edge::json::{self, Rendered};
use crate::edge::problem::Problem;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor, write_cursor};

const LIST: u8 = b'w';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(list_webhooks, create_webhook))
        .routes(routes!(get_webhook, patch_webhook, delete_webhook))
        .routes(routes!(test_webhook))
        .routes(routes!(rotate_secret))
        .routes(routes!(enable_webhook))
        .routes(routes!(disable_webhook))
}

/// A receiver of events.
#[derive(Serialize, ToSchema)]
#[schema(as = Webhook)]
struct WebhookView {
    #[schema(value_type = String, example = "whk_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: WebhookId,
    #[schema(example = "https://hooks.acme.example/rapport")]
    url: String,
    description: String,
    #[schema(inline, value_type = Selection)]
    events: Vec<&'static str>,
    /// Conditions that an event must meet to be sent. Empty without any.
    #[schema(value_type = requests::EventFilters)]
    filters: Value,
    headers: Vec<HeaderView>,
    enabled: bool,
    /// When it was auto-disabled after 20 consecutive failed attempts. Null if it was not.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    auto_disabled_at: Option<Time>,
    /// Consecutive failed attempts since the last success.
    failure_streak: i64,
    /// Deliveries waiting for it to be enabled, counted up to 100,000.
    held_count: i64,
    #[schema(required = true)]
    last_test: Option<TestView>,
    /// The visible part of the secret.
    #[schema(example = "whs_…7d4e")]
    secret_prefix: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

/// A header that is sent with every delivery.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookHeader)]
struct HeaderView {
    #[schema(example = "Authorization")]
    name: String,
    /// Null if it is secret.
    #[schema(required = true)]
    value: Option<String>,
    secret: bool,
}

impl From<Header> for HeaderView {
    fn from(Header { name, value }: Header) -> Self {
        Self { name, secret: value.is_none(), value }
    }
}

/// The last test event and its outcome.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookTest)]
struct TestView {
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    succeeded: bool,
}

/// A webhook with its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = NewWebhookSecret)]
struct NewSecretView {
    #[serde(flatten)]
    view: WebhookView,
    /// The key for signatures, exactly as shown here. It is shown only once.
    #[schema(example = "whs_0000000000000g7d4e…")]
    secret: String,
    /// The same secret in the form that Standard Webhooks libraries take: `whsec_` and the base64 of `secret`.
    #[schema(example = "whsec_d2hzXzAwMDAwMDAwMDAwMDBnN2Q0ZQ…")]
    standard_secret: String,
}

impl NewSecretView {
    fn new(view: WebhookView, secret: String) -> Self {
        Self { view, standard_secret: library_secret(&secret), secret }
    }
}

impl WebhookView {
    fn new(webhook: Webhook, choice: Choice, held_count: i64, secret_prefix: String) -> Self {
        let auto_disabled_at = match webhook.switch {
            Switch::AutoDisabled { at } => Some(at),
            Switch::Enabled | Switch::DisabledByHand => None,
        };
        Self {
            id: webhook.id,
            url: webhook.url,
            description: webhook.description,
            events: webhook.events.kinds().iter().copied().map(Kind::as_str).collect(),
            filters: choice.filter.to_json(),
            headers: choice.headers.into_iter().map(HeaderView::from).collect(),
            enabled: webhook.switch.is_enabled(),
            auto_disabled_at,
            failure_streak: webhook.failure_streak,
            held_count,
            last_test: webhook.last_test.map(|LastTest { at, succeeded }| TestView { at, succeeded }),
            secret_prefix,
            created_at: webhook.created_at,
            updated_at: webhook.updated_at,
        }
    }
}

impl From<Described> for WebhookView {
    fn from(Described { webhook, held, secret_shown, choice }: Described) -> Self {
        Self::new(webhook, choice, held.count, secret_shown)
    }
}

/// List webhooks
///
/// Requires the admin role, like everything about webhooks.
#[utoipa::path(
    get,
    path = "/api/webhooks/",
    tag = "Webhooks",
    params(requests::PageParameters),
    responses((status = 200, description = "A page of webhooks, without their secrets.", body = Page<WebhookView>)),
    security(("token" = ["webhooks"])),
)]
async fn list_webhooks(
    State(api): State<Api>,
    caller: Caller,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let after = parameters.cursor(|text| read_cursor(LIST, text).map(WebhookId::from_bytes));
    let limit = parameters.limit();
    let found = api.read(&caller, WEBHOOKS, parameters.finish(), move |snapshot, _, ()| {
        let cursor = |id: WebhookId| write_cursor(LIST, id.as_bytes());
        let all = webhook::all(snapshot)?;
        let Page { items, next_cursor } = Page::cut(all, |webhook| webhook.id, after.as_ref(), limit, cursor);
        let items = items.into_iter().map(|item| webhook::describe(snapshot, item).map(WebhookView::from));
        Ok(Page { items: items.collect::<Result<Vec<_>, _>>()?, next_cursor })
    });
    Ok(json::respond(StatusCode::OK, &found.await?.reply))
}

/// Create a webhook
///
/// Returns its secret, once. The URL must use `https` and must not lead to a private or otherwise reserved
/// address.
#[utoipa::path(
    post,
    path = "/api/webhooks/",
    tag = "Webhooks",
    request_body = requests::WebhookCreate,
    responses((status = 201, description = "The webhook with its secret.", body = NewSecretView)),
    security(("token" = ["webhooks"])),
)]
async fn create_webhook(State(api): State<Api>, call: Call) -> Result<Response, Problem> {
    let (caller, create) = call.parse(Create::parse);
    let command = match create {
        Ok(create) => {
            // First, so that strangers cannot use the service to resolve names.
            api.verify(&caller, WEBHOOKS).await?;
            if let Some(response) = api.recalled(&caller, WEBHOOKS).await? {
                return Ok(response);
            }
            Ok(CreateWebhook::checked(api.app().services(), create).await?)
        }
        Err(problem) => Err(problem),
    };
    let render = |NewSecret { webhook, choice, secret, shown }| {
        let view = WebhookView::new(webhook, choice, 0, shown);
        json::render(StatusCode::CREATED, &NewSecretView::new(view, secret)).with_secret()
    };
    api.act(&caller, command, render).await
}

/// Get a webhook
///
/// Without its secret.
#[utoipa::path(
    get,
    path = "/api/webhooks/{id}/",
    tag = "Webhooks",
    params(("id" = String, Path, description = "The webhook's id.")),
    responses((status = 200, description = "The webhook.", body = WebhookView)),
    security(("token" = ["webhooks"])),
)]
async fn get_webhook(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<WebhookId>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    conditions.answer(show(&api, &caller, id).await?)
}

async fn show(api: &Api, caller: &Caller, id: Result<WebhookId, Problem>) -> Result<Rendered, Problem> {
    let found = api.read(caller, WEBHOOKS, id, |snapshot, _, id| webhook::described(snapshot, id));
    let found = found.await?.reply.ok_or_else(|| Problem::not_found("webhook"))?;
    Ok(json::render(StatusCode::OK, &WebhookView::from(found)))
}

/// The webhook as `get_webhook` shows it.
fn current(
    snapshot: &mut Snapshot,
    _: &Viewer,
    id: WebhookId,
) -> Result<Option<Rendered>, rapport_store::Error> {
    let found = webhook::described(snapshot, id)?;
    Ok(found.map(|found| json::render(StatusCode::OK, &WebhookView::from(found))))
}

/// Renders a webhook after a change.
fn changed(snapshot: &mut Snapshot, _: &Viewer, changed: Webhook) -> Result<Rendered, rapport_store::Error> {
    Ok(json::render(StatusCode::OK, &WebhookView::from(webhook::describe(snapshot, changed)?)))
}

/// Edit a webhook
///
/// Only the fields you send are changed. Pending deliveries go to the new URL, with the new headers. The choice of
/// events and the filters apply to events that happen from now on. If the URL leads to another host, send `headers` with
/// the values of secret ones again: they aren't sent to a host they weren't entered for.
#[utoipa::path(
    patch,
    path = "/api/webhooks/{id}/",
    tag = "Webhooks",
    params(("id" = String, Path, description = "The webhook's id.")),
    request_body = requests::WebhookPatch,
    responses((status = 200, description = "The webhook.", body = WebhookView)),
    security(("token" = ["webhooks"])),
)]
async fn patch_webhook(
    State(api): State<Api>,
    Id(id): Id<WebhookId>,
    conditions: Conditions,
    call: Call,
) -> Result<Response, Problem> {
    let (caller, patch) = call.parse(Patch::parse);
    let changes = match patch {
        Ok(patch) => {
            if patch.url.is_some() {
                api.verify(&caller, WEBHOOKS).await?;
            }
            Ok(Changes::checked(api.app().services(), patch).await?)
        }
        Err(problem) => Err(problem),
    };
    let command = id.and_then(|id| changes.map(|changes| (id, PatchWebhook { id, changes })));
    let patched = api.change(&caller, conditions, command, current).await?;
    Ok(versioned(show(&api, &caller, Ok(patched.id)).await?))
}

/// Delete a webhook
///
/// Its open deliveries end as `failed` with the error `webhook_deleted`. Its history is kept for 90 days.
#[utoipa::path(
    delete,
    path = "/api/webhooks/{id}/",
    tag = "Webhooks",
    params(("id" = String, Path, description = "The webhook's id.")),
    responses((status = 204, description = "Deleted.")),
    security(("token" = ["webhooks"])),
)]
async fn delete_webhook(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<WebhookId>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    api.change(&caller, conditions, id.map(|id| (id, DeleteWebhook(id))), current).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Send a test event
///
/// Sends a `webhook.test` event through the real pipeline, regardless of the webhook's choice of events and its filters.
/// This works for a disabled webhook too, with a single attempt.
#[utoipa::path(
    post,
    path = "/api/webhooks/{id}/test/",
    tag = "Webhooks",
    params(("id" = String, Path, description = "The webhook's id.")),
    responses((status = 202, description = "The delivery of the test event.", body = DeliveryDetail)),
    security(("token" = ["webhooks"])),
)]
async fn test_webhook(
    State(api): State<Api>,
    Id(id): Id<WebhookId>,
    call: PlainCall,
) -> Result<Response, Problem> {
    let (caller, plain) = call.command(());
    let command = id.and_then(|id| plain.map(|()| TestWebhook(id)));
    api.act_and_show(&caller, command, deliveries::accepted).await
}

/// Rotate a webhook's secret
///
/// Returns the new secret, once. From the next attempt on, deliveries are signed with the new secret.
#[utoipa::path(
    post,
    path = "/api/webhooks/{id}/rotate/",
    tag = "Webhooks",
    params(("id" = String, Path, description = "The webhook's id.")),
    responses((status = 200, description = "The webhook with its new secret.", body = NewSecretView)),
    security(("token" = ["webhooks"])),
)]
async fn rotate_secret(
    State(api): State<Api>,
    Id(id): Id<WebhookId>,
    call: PlainCall,
) -> Result<Response, Problem> {
    let (caller, plain) = call.command(());
    let command = id.and_then(|id| plain.map(|()| RotateSecret(id)));
    api.act_and_show(&caller, command, |snapshot, _, NewSecret { webhook, secret, .. }| {
        let view = match webhook::described(snapshot, webhook.id)? {
            Some(found) => WebhookView::from(found),
            None => return Ok(Rendered::from(&Problem::not_found("webhook"))),
        };
        Ok(json::render(StatusCode::OK, &NewSecretView::new(view, secret)).with_secret())
    })
    .await
}

/// Enable a webhook
///
/// Resets the failure streak. Held deliveries are sent, oldest first, or dropped. An auto-disabled webhook first needs
/// a successful test after it was disabled and after the last change of its URL.
#[utoipa::path(
    post,
    path = "/api/webhooks/{id}/enable/",
    tag = "Webhooks",
    params(("id" = String, Path, description = "The webhook's id.")),
    request_body(content = Option<requests::WebhookEnable>),
    responses(
        (status = 200, description = "The webhook.", body = WebhookView),
        (status = 409, description = "A test must succeed first (`test_required`)."),
    ),
    security(("token" = ["webhooks"])),
)]
async fn enable_webhook(
    State(api): State<Api>,
    Id(id): Id<WebhookId>,
    call: OptionalCall,
) -> Result<Response, Problem> {
    let (caller, held) = call.parse(Held::parse);
    let command = id.and_then(|id| held.map(|held| EnableWebhook { id, held }));
    api.act_and_show(&caller, command, changed).await
}

/// Disable a webhook
///
/// Open deliveries and events that happen while it is disabled are held.
#[utoipa::path(
    post,
    path = "/api/webhooks/{id}/disable/",
    tag = "Webhooks",
    params(("id" = String, Path, description = "The webhook's id.")),
    responses((status = 200, description = "The webhook.", body = WebhookView)),
    security(("token" = ["webhooks"])),
)]
async fn disable_webhook(
    State(api): State<Api>,
    Id(id): Id<WebhookId>,
    call: PlainCall,
) -> Result<Response, Problem> {
    let (caller, plain) = call.command(());
    let command = id.and_then(|id| plain.map(|()| DisableWebhook(id)));
    api.act_and_show(&caller, command, changed).await
}
