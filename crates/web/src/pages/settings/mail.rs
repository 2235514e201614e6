//! Mail: the server, a test, and recent mail with its state.

use askama::Template;
use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::MailRoute;
use rapport_app::mail_test::SendTestMail;
use rapport_app::read::mail::{self, Mail};
use rapport_app::read::{DEFAULT_LIMIT, Page};
use rapport_domain::id::MailId;
use rapport_domain::mail::{Kind, State as MailState};

use super::{back_to, tabbed};
use crate::pages::kit::action::Action;
use crate::pages::kit::frame::{Frame, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit, show};
use crate::pages::{Pages, SETTINGS};

const PATH: &str = "/settings/mail";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(show::<MailPage, ()>))
        .route("/settings/mail/test", post(test).merge(back_to(PATH)))
}

#[derive(Template)]
#[template(path = "settings/mail.html")]
struct MailPage {
    frame: Frame,
    route: Option<MailRoute>,
    mails: Page<Mail>,
}
framed!("settings": MailPage);
tabbed!("mail": MailPage);

impl Load<()> for MailPage {
    async fn load(visit: &Visit) -> Result<Self, Refusal> {
        let before = visit.query.text("before").parse().ok();
        let found = visit.read(SETTINGS, move |snapshot, _| mail::list(snapshot, before, DEFAULT_LIMIT));
        let Shown { frame, reply: mails } = found.await?;
        let route = visit.pages.app().services().mail_route().cloned();
        Ok(Self { frame, route, mails })
    }
}

impl MailPage {
    fn older(&self) -> Option<MailId> {
        self.mails.items.last().filter(|_| self.mails.more).map(|mail| mail.id)
    }
}

const fn kind_label(kind: Kind) -> &'static str {
    match kind {
        Kind::Digest => "Weekly digest",
        Kind::Invitation => "Invitation",
        Kind::PasswordReset => "Password reset",
        Kind::WebhookDisabled => "Webhook disabled",
        Kind::BreakGlassUsed => "Login without single sign-on",
        Kind::Test => "Test",
        Kind::Notice => "Login notice",
        Kind::AddressChange => "New address",
        Kind::AddressNotice => "Notice about an address",
        Kind::CompanyDeletion => "Deletion of the company",
    }
}

/// The label and the class of a state.
const fn state_label(state: MailState) -> (&'static str, &'static str) {
    match state {
        MailState::Waiting => ("Waiting", "warn"),
        MailState::Sent => ("Sent", "good"),
        MailState::Failed => ("Failed", "bad"),
    }
}

async fn test(action: Action) -> Result<Response, Refusal> {
    let email = action.act::<MailPage, _>(SendTestMail).await?;
    let text = format!("Test mail to {} is on its way. The result appears below.", email.as_str());
    action.done(PATH, text)
}
