//! The signature checker. It explains why a received request has an invalid signature, and stores nothing.

use askama::Template;
use axum::response::Response;
use rapport_app::read::delivery::choices;
use rapport_app::signature::{self, Change, Check, Finding, Mistake, Secret};
use rapport_domain::signature::Malformed;
use rapport_domain::webhook::Webhook;

use crate::pages::WEBHOOKS;
use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;
use crate::pages::webhooks::place;

#[derive(Template)]
#[template(path = "webhooks/check.html")]
struct CheckPage {
    frame: Frame,
    webhooks: Vec<Webhook>,
    draft: Draft,
    finding: Option<Finding>,
}
framed!("webhooks": CheckPage);

impl CheckPage {
    fn verdict(&self) -> Option<(bool, &'static str, String)> {
        self.finding.as_ref().map(words)
    }
}

pub async fn show(visit: Visit) -> Result<Response, Refusal> {
    let chosen = visit.query.text("webhook").to_owned();
    let Shown { frame, reply: webhooks } = visit.read(WEBHOOKS, |snapshot, _| choices(snapshot)).await?;
    let draft = Draft::new([("webhook", chosen)]);
    Ok(CheckPage { frame, webhooks, draft, finding: None }.respond())
}

pub async fn check(action: Action) -> Result<Response, Refusal> {
    // The secret is never shown again.
    let kept = ["webhook", "signature", "body"].map(|name| (name, action.form.text(name).to_owned()));
    let draft = Draft::new(kept);
    let secret = match action.form.text("webhook").parse() {
        Ok(id) => Secret::Kept(id),
        Err(_) => Secret::Typed(action.form.text("secret").to_owned()),
    };
    let check = Check {
        header: action.form.text("signature").to_owned(),
        body: action.form.text("body").to_owned(),
        secret,
    };
    let services = std::sync::Arc::clone(action.pages.app().services());
    let found = action.read(WEBHOOKS, move |snapshot, _| {
        Ok((signature::check(&services, snapshot, &check)?, choices(snapshot)?))
    });
    let Shown { frame, reply: (finding, webhooks) } = found.await?;
    Ok(CheckPage { frame, webhooks, draft, finding: Some(finding) }.respond())
}

/// Whether the signature is valid, with a title and an explanation.
fn words(finding: &Finding) -> (bool, &'static str, String) {
    let (title, text) = match finding {
        Finding::Genuine => {
            return (true, "Valid signature", "The body was signed with this secret.".to_owned());
        }
        Finding::Malformed(malformed) => ("Malformed header", malformed_words(*malformed)),
        Finding::BodyChanged(change) => ("Changed body", change_words(*change).to_owned()),
        Finding::WrongSecret(mistake) => ("Wrong secret", mistake_words(mistake)),
        Finding::NoSecret => (
            "No secret to check with",
            "The webhook was deleted, or the server can’t decrypt its secret. Paste the secret instead.".to_owned(),
        ),
        Finding::Unclear => (
            "Invalid signature",
            "Either the secret is wrong or the body was changed. Paste the body exactly as it arrived, before parsing. If \
             it contains the id of one of your events, we can tell which of the two it is."
                .to_owned(),
        ),
    };
    (false, title, text)
}

fn malformed_words(malformed: Malformed) -> String {
    match malformed {
        Malformed::Empty => "Paste the value of X-Service-Signature.".to_owned(),
        Malformed::NoScheme => "It must start with “sha256=”.".to_owned(),
        Malformed::Length(found) => {
            format!("“sha256=” must be followed by 64 characters, but there are {found}. Was it cut off?")
        }
        Malformed::UpperCase => "The letters a to f must be lower case.".to_owned(),
        Malformed::NotHexadecimal => "Only 0 to 9 and a to f may follow “sha256=”.".to_owned(),
    }
}

const fn change_words(change: Change) -> &'static str {
    match change {
        Change::Ends => {
            "The secret is correct. Spaces or line breaks at the start or end of the body were added or removed after it was \
             signed."
        }
        Change::Layout => {
            "The secret is correct. The body was parsed and serialized again. Verify the raw bytes before parsing them."
        }
        Change::Content => "The secret is correct, but this isn’t the body that was sent for this event.",
    }
}

fn mistake_words(mistake: &Mistake) -> String {
    match mistake {
        Mistake::Blanks => "It has spaces around it. Without them the signature is valid.".to_owned(),
        Mistake::Prefix => {
            "The prefix “whs_” is part of the secret. With it the signature is valid.".to_owned()
        }
        Mistake::Other(webhook) => {
            format!("The signature was made with the secret of another webhook: {}.", place(webhook))
        }
        Mistake::Unknown => {
            "The body is exactly what was sent, so it was signed with a different secret, perhaps one from before a \
             rotation."
                .to_owned()
        }
    }
}
