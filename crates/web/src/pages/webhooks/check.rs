//! The signature checker: what somebody received, and what is wrong with it. Nothing of it is kept.

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use rapport_app::signature::{self, Change, Check, Finding, Mistake, Secret};
use rapport_domain::signature::Malformed;
use rapport_domain::webhook::Webhook;
use rapport_store::webhook;

use crate::pages::draft::Draft;
use crate::pages::form::Form;
use crate::pages::frame::{Frame, Page as _, Shown, framed};
use crate::pages::refusal::Refusal;
use crate::pages::visitor::Visitor;
use crate::pages::webhooks::place;
use crate::pages::{ADMIN, Pages};

/// Webhooks to choose from.
const MAX_CHOICES: usize = 200;

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

pub async fn show(
    State(pages): State<Pages>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let chosen = Form::of_query(query.as_deref()).text("webhook").to_owned();
    let Shown { frame, reply: webhooks } = pages.show(&visitor, ADMIN, webhook::list).await?;
    Ok(CheckPage { frame, webhooks: some(webhooks), draft: Draft::new([("webhook", chosen)]), finding: None }
        .respond())
}

pub async fn check(State(pages): State<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    // The secret is not among what is shown again.
    let kept = ["webhook", "signature", "body"].map(|name| (name, form.text(name).to_owned()));
    let draft = Draft::new(kept);
    let secret = match form.text("webhook").parse() {
        Ok(id) => Secret::Kept(id),
        Err(_) => Secret::Typed(form.text("secret").to_owned()),
    };
    let check =
        Check { header: form.text("signature").to_owned(), body: form.text("body").to_owned(), secret };
    let services = std::sync::Arc::clone(pages.app().services());
    let found = pages.show(&visitor, ADMIN, move |snapshot| {
        Ok((signature::check(&services, snapshot, &check)?, webhook::list(snapshot)?))
    });
    let Shown { frame, reply: (finding, webhooks) } = found.await?;
    Ok(CheckPage { frame, webhooks: some(webhooks), draft, finding: Some(finding) }.respond())
}

fn some(mut webhooks: Vec<Webhook>) -> Vec<Webhook> {
    webhooks.truncate(MAX_CHOICES);
    webhooks
}

/// Whether it is valid, what it is, and what to do about it.
fn words(finding: &Finding) -> (bool, &'static str, String) {
    let (title, text) = match finding {
        Finding::Genuine => {
            return (true, "The signature is valid", "The body is what was signed with this secret.".to_owned());
        }
        Finding::Malformed(malformed) => ("The header is malformed", malformed_words(*malformed)),
        Finding::BodyChanged(change) => ("The body was changed", change_words(*change).to_owned()),
        Finding::WrongSecret(mistake) => ("The secret is wrong", mistake_words(mistake)),
        Finding::NoSecret => (
            "There is no secret to check with",
            "The webhook was deleted, or the server cannot open its secret. Paste the secret instead.".to_owned(),
        ),
        Finding::Unclear => (
            "The signature is not valid",
            "The secret is another one, or the body was changed. Paste the body exactly as it arrived, before \
             anything parses it; one that names an event of yours says which of the two it is."
                .to_owned(),
        ),
    };
    (false, title, text)
}

fn malformed_words(malformed: Malformed) -> String {
    match malformed {
        Malformed::Empty => "Paste the value of X-Service-Signature.".to_owned(),
        Malformed::NoScheme => "It must begin with “sha256=”.".to_owned(),
        Malformed::Length(found) => {
            format!("64 characters must follow “sha256=”; here are {found}. Was it cut?")
        }
        Malformed::UpperCase => "The letters must be lower case: a to f.".to_owned(),
        Malformed::NotHexadecimal => "Only 0 to 9 and a to f may follow “sha256=”.".to_owned(),
    }
}

const fn change_words(change: Change) -> &'static str {
    match change {
        Change::Ends => {
            "The secret is right. There are blanks or line breaks at the ends of the body that were not there when \
             it was signed, or some are missing."
        }
        Change::Layout => {
            "The secret is right. The body was parsed and written again: verify the raw bytes before parsing them."
        }
        Change::Content => "The secret is right, but this is not the body that was sent for this event.",
    }
}

fn mistake_words(mistake: &Mistake) -> String {
    match mistake {
        Mistake::Blanks => "There are blanks around it; without them the signature is valid.".to_owned(),
        Mistake::Prefix => {
            "The secret begins with “whs_”, which belongs to it; with it the signature is valid.".to_owned()
        }
        Mistake::Other(webhook) => {
            format!("The signature was made with the secret of another webhook: {}.", place(webhook))
        }
        Mistake::Unknown => {
            "The body is exactly what was sent, so it was signed with another secret: perhaps one from before it was \
             rotated."
                .to_owned()
        }
    }
}
