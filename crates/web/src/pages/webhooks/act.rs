//! Tests, rotates, enables, disables and deletes a webhook.

use axum::extract::{Path, State};
use axum::response::Response;
use rapport_app::webhook::{
    DeleteWebhook, DisableWebhook, EnableWebhook, Held, NewSecret, RotateSecret, TestWebhook,
};
use rapport_domain::delivery::HISTORY_DAYS;
use rapport_domain::id::WebhookId;

use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{Page as _, Shown};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::webhooks::secret::SecretPage;
use crate::pages::webhooks::{PATH, named, settle};
use crate::pages::{ADMIN, Pages};

const WHAT: &str = "webhook";

pub async fn test(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id: WebhookId = named(&id, WHAT)?;
    let sent = pages.submit(&visitor, &form, TestWebhook(id)).await;
    let flash = sent.map(|delivery| {
        let flash = Flash::good("Test sent. The result appears below in a moment.");
        flash.link("View test", format!("/deliveries/{}", delivery.id))
    });
    settle(&pages, &visitor, &own(id), flash)
}

pub async fn rotate(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id: WebhookId = named(&id, WHAT)?;
    match pages.submit(&visitor, &form, RotateSecret(id)).await {
        Ok(NewSecret { webhook, secret, .. }) => {
            let Shown { frame, .. } = pages.show(&visitor, ADMIN, |_, _| Ok(())).await?;
            Ok(SecretPage::rotated(frame, webhook, secret).respond())
        }
        Err(error) => settle(&pages, &visitor, &own(id), Err(error)),
    }
}

pub async fn enable(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id: WebhookId = named(&id, WHAT)?;
    let (held, text) = match form.text("held") {
        "drop" => (Held::Drop, "Webhook enabled. Held deliveries were dropped."),
        _ => (Held::Send, "Webhook enabled. Held deliveries are being sent, oldest first."),
    };
    let enabled = pages.submit(&visitor, &form, EnableWebhook { id, held }).await;
    settle(&pages, &visitor, &own(id), enabled.map(|_| Flash::good(text)))
}

pub async fn disable(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id: WebhookId = named(&id, WHAT)?;
    let disabled = pages.submit(&visitor, &form, DisableWebhook(id)).await;
    let flash = disabled.map(|_| {
        let flash = Flash::good("Webhook disabled. New events are held.");
        flash.undo(format!("{}/enable", own(id)), vec![("held".to_owned(), "send".to_owned())])
    });
    settle(&pages, &visitor, &own(id), flash)
}

pub async fn delete(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id: WebhookId = named(&id, WHAT)?;
    let deleted = pages.submit(&visitor, &form, DeleteWebhook(id)).await;
    let text = format!("Webhook deleted. Its deliveries stay in the log for {HISTORY_DAYS} days.");
    settle(&pages, &visitor, PATH, deleted.map(|()| Flash::good(text)))
}

fn own(id: WebhookId) -> String {
    format!("{PATH}/{id}")
}
