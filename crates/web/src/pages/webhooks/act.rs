//! Tests, rotates, enables, disables and deletes a webhook.

use axum::response::Response;
use rapport_app::webhook::{
    DeleteWebhook, DisableWebhook, EnableWebhook, NewSecret, RotateSecret, TestWebhook,
};
use rapport_domain::delivery::HISTORY_DAYS;
use rapport_domain::id::WebhookId;
use rapport_domain::webhook::Held;

use crate::pages::WEBHOOKS;
use crate::pages::kit::action::{Action, banner};
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::As;
use crate::pages::kit::frame::Page as _;
use crate::pages::kit::refusal::Refusal;
use crate::pages::webhooks::one::WebhookPage;
use crate::pages::webhooks::secret::SecretPage;
use crate::pages::webhooks::{PATH, path_of};

pub async fn test(action: Action<WebhookId>) -> Result<Response, Refusal> {
    let sent = action.act::<WebhookPage, _>(TestWebhook(action.id)).await?;
    let flash = Flash::good("Test sent. The result appears below in a moment.");
    action.done(&path_of(action.id), flash.link("View test", format!("/deliveries/{}", sent.id)))
}

pub async fn rotate(action: Action<WebhookId>) -> Result<Response, Refusal> {
    let NewSecret { webhook, secret, .. } = action.act::<WebhookPage, _>(RotateSecret(action.id)).await?;
    Ok(SecretPage::rotated(action.frame(WEBHOOKS).await?, webhook, secret).respond())
}

pub async fn enable(action: Action<WebhookId>) -> Result<Response, Refusal> {
    let held = Held::parse(&action.form.members(&[("held", As::Text)]));
    let text = match held {
        Ok(Held::Drop) => "Webhook enabled. Held deliveries were dropped.",
        _ => "Webhook enabled. Held deliveries are being sent, oldest first.",
    };
    let command = held.map(|held| EnableWebhook { id: action.id, held });
    action.run(command, banner::<WebhookPage>).await?;
    action.done(&path_of(action.id), text)
}

pub async fn disable(action: Action<WebhookId>) -> Result<Response, Refusal> {
    action.act::<WebhookPage, _>(DisableWebhook(action.id)).await?;
    let path = path_of(action.id);
    let flash = Flash::good("Webhook disabled. New events are held.");
    action.done(&path, flash.undo(format!("{path}/enable"), vec![("held".to_owned(), "send".to_owned())]))
}

pub async fn delete(action: Action<WebhookId>) -> Result<Response, Refusal> {
    action.act::<WebhookPage, _>(DeleteWebhook(action.id)).await?;
    action.done(PATH, format!("Webhook deleted. Its deliveries stay in the log for {HISTORY_DAYS} days."))
}
