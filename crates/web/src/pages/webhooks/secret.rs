//! Shows a secret once, and how to verify signatures with it.

use askama::Template;
use rapport_domain::standard_webhook::library_secret;
use rapport_domain::webhook::Webhook;

use crate::pages::kit::frame::{Frame, framed};
use crate::pages::webhooks::place;
use crate::pages::webhooks::receiving::{SNIPPETS, Snippet};

#[derive(Template)]
#[template(path = "webhooks/secret.html")]
pub struct SecretPage {
    frame: Frame,
    webhook: Webhook,
    secret: String,
    is_new: bool,
    snippets: &'static [Snippet],
}
framed!("webhooks": SecretPage);

impl SecretPage {
    /// The secret of a new webhook.
    pub fn made(frame: Frame, webhook: Webhook, secret: String) -> Self {
        Self { frame, webhook, secret, is_new: true, snippets: &SNIPPETS }
    }

    /// The secret of a webhook after a rotation.
    pub fn rotated(frame: Frame, webhook: Webhook, secret: String) -> Self {
        Self { is_new: false, ..Self::made(frame, webhook, secret) }
    }

    fn place(&self) -> &str {
        place(&self.webhook)
    }

    fn library_secret(&self) -> String {
        library_secret(&self.secret)
    }
}
