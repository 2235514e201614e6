//! The dashboard: what needs attention today, and an overview of the company.

mod samples;

use askama::Template;
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use rapport_app::read::clients::Client;
use rapport_app::read::dashboard::{self, Delivered, Figures};
use rapport_app::read::first_steps::FirstSteps;
use rapport_domain::activity::PULSE_DAYS;
use rapport_domain::webhook::{MAX_STREAK, Webhook};

use crate::pages::chart::sparkline::Sparkline;
use crate::pages::chart::stages::StageBar;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;
use crate::pages::words::number::{counted, grouped};
use crate::pages::words::worth::Worth;
use crate::pages::{Pages, READ};

pub fn routes() -> Router<Pages> {
    Router::new().route("/", get(show)).merge(samples::routes())
}

#[derive(Template)]
#[template(path = "dashboard/page.html")]
struct DashboardPage {
    frame: Frame,
    figures: Figures,
    bars: Vec<StageBar>,
    /// What the stages are worth.
    worths: Vec<Option<Worth>>,
    activity: Sparkline,
    mail_configured: bool,
    steps: FirstSteps,
    base_url: String,
}

#[derive(Template)]
#[template(path = "dashboard/first_run.html")]
struct FirstRunPage {
    frame: Frame,
    steps: FirstSteps,
    base_url: String,
}
framed!("dashboard": DashboardPage, FirstRunPage);

impl DashboardPage {
    /// Whether the first steps are still shown. Others than admins can't take the remaining ones.
    fn has_guide(&self) -> bool {
        let Self { frame, steps, .. } = self;
        frame.may_change_settings() && !steps.are_done() && !frame.look.hides_guide
    }

    fn failing(&self) -> Vec<&Webhook> {
        let webhooks = self.figures.webhooks.iter();
        webhooks.filter(|webhook| webhook.switch.is_enabled() && webhook.failure_streak > 0).collect()
    }

    fn failed_deliveries(&self) -> String {
        grouped(self.figures.delivered.failed)
    }

    fn failed_mails(&self) -> String {
        counted(self.figures.failed_mails, "mail", "mails")
    }

    fn switched_off(&self) -> Vec<&Webhook> {
        self.figures.webhooks.iter().filter(|webhook| webhook.switch.is_auto_disabled()).collect()
    }
}

async fn show(visit: Visit) -> Result<Response, Refusal> {
    let Shown { frame, reply: figures } = visit.read(READ, dashboard::figures).await?;
    let steps = figures.first_steps;
    let base_url = visit.pages.app().services().outside().base_url.clone();
    if !steps.has_accounts && frame.company.sample_since.is_none() {
        return Ok(FirstRunPage { frame, steps, base_url }.respond());
    }
    let bars = StageBar::all(&figures.stages);
    let worths = figures.stages.iter().map(|stage| Worth::of(&figures.rates, &stage.values)).collect();
    let activity = Sparkline::new(&figures.days, frame.now.day_in(frame.zone()), PULSE_DAYS);
    let mail_configured = visit.pages.app().services().outside().mail_configured;
    Ok(DashboardPage { frame, figures, bars, worths, activity, mail_configured, steps, base_url }.respond())
}

fn days_overdue(client: &Client) -> String {
    counted(client.due.days_overdue, "day", "days")
}

/// A webhook's description, else its URL.
fn name_of(webhook: &Webhook) -> &str {
    if webhook.description.is_empty() { &webhook.url } else { &webhook.description }
}

/// The share of finished deliveries that succeeded, in percent. Rounded down, so that 100 means all.
fn success_share(delivered: &Delivered) -> Option<i64> {
    let ended = delivered.succeeded + delivered.failed;
    (ended > 0).then(|| delivered.succeeded * 100 / ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_all_is_a_hundred_percent() {
        let share = |succeeded, failed| success_share(&Delivered { succeeded, failed, open: 3 });
        assert_eq!(
            (share(0, 0), share(499, 1), share(500, 0), share(0, 2)),
            (None, Some(99), Some(100), Some(0))
        );
    }
}
