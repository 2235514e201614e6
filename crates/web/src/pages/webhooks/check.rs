//! The signature checker. It explains why a received request has an invalid signature, and stores nothing.

use askama::Template;
use axum::response::Response;
use rapport_app::read::delivery::choices;
use rapport_app::signature::{self, Check, Finding, Report, Secret};
use rapport_domain::standard_webhook::TOLERANCE_SECONDS;
use rapport_domain::webhook::Webhook;

use crate::pages::WEBHOOKS;
use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;

#[derive(Template)]
#[template(path = "webhooks/check.html")]
struct CheckPage {
    frame: Frame,
    webhooks: Vec<Webhook>,
    draft: Draft,
    report: Option<Report>,
}
framed!("webhooks": CheckPage);

impl CheckPage {
    #[expect(clippy::unused_self, reason = "templates call it on the page")]
    const fn tolerance_minutes(&self) -> i64 {
        TOLERANCE_SECONDS / 60
    }

    fn verdict(&self) -> Option<Verdict> {
        self.report.as_ref().map(Verdict::of)
    }
}

pub async fn show(visit: Visit) -> Result<Response, Refusal> {
    let chosen = visit.query.text("webhook").to_owned();
    let Shown { frame, reply: webhooks } = visit.read(WEBHOOKS, |snapshot, _| choices(snapshot)).await?;
    let draft = Draft::new([("webhook", chosen)]);
    Ok(CheckPage { frame, webhooks, draft, report: None }.respond())
}

pub async fn check(action: Action) -> Result<Response, Refusal> {
    // The secret is never shown again.
    let text = |name: &str| action.form.text(name).to_owned();
    let kept = ["webhook", "signature", "id", "timestamp", "body"].map(|name| (name, text(name)));
    let draft = Draft::new(kept);
    let secret = match action.form.text("webhook").parse() {
        Ok(id) => Secret::Kept(id),
        Err(_) => Secret::Typed(text("secret")),
    };
    let check = Check {
        signature: text("signature"),
        id: text("id"),
        timestamp: text("timestamp"),
        body: text("body"),
        secret,
    };
    let services = std::sync::Arc::clone(action.pages.app().services());
    let found = action.read(WEBHOOKS, move |snapshot, viewer| {
        Ok((signature::check(&services, snapshot, &check, viewer.now)?, choices(snapshot)?))
    });
    let Shown { frame, reply: (report, webhooks) } = found.await?;
    Ok(CheckPage { frame, webhooks, draft, report: Some(report) }.respond())
}

/// What the page says about a signature.
struct Verdict {
    is_valid: bool,
    title: &'static str,
    text: String,
    /// The header that was checked.
    header: &'static str,
}

impl Verdict {
    fn of(report: &Report) -> Self {
        let (title, mut text) = report.words();
        if report.finding == Finding::Unclear {
            text.push_str(
                " Paste the body exactly as it arrived, before parsing. If it contains the id of one of your events, we \
                 can tell which of the two it is.",
            );
        }
        Self { is_valid: report.is_valid(), title, text, header: report.scheme.header() }
    }
}
