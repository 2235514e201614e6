//! Commands on webhooks, built as the API builds them: the application's own check judges the destination.

use rapport_app::App;
use rapport_app::webhook::{Changes, CreateWebhook, PatchWebhook};
use rapport_domain::id::WebhookId;
use rapport_domain::webhook::{Create, Patch};
use serde_json::Value;

use crate::block_on;

/// The command that creates the webhook in `body`, which must be one that the API accepts.
pub fn create_webhook(app: &App, body: &Value) -> CreateWebhook {
    let create = Create::parse(body.as_object().expect("an object"));
    let create = create.unwrap_or_else(|error| panic!("{body} is no webhook: {error:?}"));
    let checked = block_on(CreateWebhook::checked(app.services(), create));
    checked.unwrap_or_else(|error| panic!("{body} was refused: {error:?}"))
}

/// The command that edits a webhook.
pub fn patch_webhook(app: &App, id: WebhookId, body: &Value) -> PatchWebhook {
    let patch = Patch::parse(body.as_object().expect("an object"));
    let patch = patch.unwrap_or_else(|error| panic!("{body} is no edit: {error:?}"));
    let checked = block_on(Changes::checked(app.services(), patch));
    PatchWebhook { id, changes: checked.unwrap_or_else(|error| panic!("{body} was refused: {error:?}")) }
}
