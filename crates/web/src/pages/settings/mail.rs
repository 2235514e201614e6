//! Mail: the server, a test, and recent mail with its state.

use askama::Template;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::MailRoute;
use rapport_app::mail_test::SendTestMail;
use rapport_app::read::mail::{self, Mail};
use rapport_app::read::{DEFAULT_LIMIT, Page};
use rapport_domain::id::MailId;
use rapport_domain::mail::{Kind, State as MailState};

use super::{back_to, tabbed};
use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{ADMIN, Pages};

const PATH: &str = "/settings/mail";

pub fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(show)).route("/settings/mail/test", post(test).merge(back_to(PATH)))
}

#[derive(Template)]
#[template(path = "settings/mail.html")]
struct MailPage {
    frame: Frame,
    route: Option<MailRoute>,
    mails: Page<Mail>,
    acted: Draft,
}
framed!("settings": MailPage);
tabbed!("mail": MailPage);

impl MailPage {
    async fn load(pages: &Pages, visitor: &Visitor, before: Option<MailId>) -> Result<Self, Refusal> {
        let found = pages
            .show(visitor, ADMIN, move |snapshot, _| mail::list(snapshot, before, DEFAULT_LIMIT))
            .await?;
        let Shown { frame, reply: mails } = found;
        let route = pages.app().services().mail_route().cloned();
        Ok(Self { frame, route, mails, acted: Draft::default() })
    }

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
        Kind::Test => "Test",
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

async fn show(
    State(pages): State<Pages>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let before = Form::of_query(query.as_deref()).text("before").parse().ok();
    Ok(MailPage::load(&pages, &visitor, before).await?.respond())
}

async fn test(State(pages): State<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    match pages.submit(&visitor, &form, SendTestMail).await {
        Ok(email) => {
            let text = format!("Test mail to {} is on its way. The result appears below.", email.as_str());
            Ok(pages.done(PATH, Flash::good(text)))
        }
        Err(error) => {
            let acted = Draft::refused(&form, error).map_err(|error| visitor.refused(error))?;
            Ok(MailPage { acted, ..MailPage::load(&pages, &visitor, None).await? }.refuse())
        }
    }
}
