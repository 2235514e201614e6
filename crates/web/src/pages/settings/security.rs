//! How long sessions last, and whether members need a second factor.

use askama::Template;
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use rapport_app::settings::PatchSettings;
use rapport_domain::session::Limits;

use super::tabbed;
use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::As;
use crate::pages::kit::frame::{Frame, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit, show};
use crate::pages::words::number::counted;
use crate::pages::{Pages, SETTINGS};

const PATH: &str = "/settings/security";
const SECOND_FACTOR: &str = "second_factor_required";
const HOUR: i64 = 60;
const DAY: i64 = 24 * HOUR;
/// Suggestions, in minutes. The API takes every number between the first and the last.
const IDLE: [i64; 10] = [15, 30, HOUR, 4 * HOUR, 8 * HOUR, DAY, 7 * DAY, 14 * DAY, 30 * DAY, 90 * DAY];
const MAX: [i64; 9] = [HOUR, 8 * HOUR, 12 * HOUR, DAY, 7 * DAY, 30 * DAY, 90 * DAY, 180 * DAY, 365 * DAY];

pub fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(show::<SecurityPage, ()>).post(save))
}

#[derive(Template)]
#[template(path = "settings/security.html")]
struct SecurityPage {
    frame: Frame,
    draft: Draft,
    idle: Vec<(String, String)>,
    max: Vec<(String, String)>,
}
framed!("settings": SecurityPage);
tabbed!("security": SecurityPage);

impl Load<()> for SecurityPage {
    async fn load(visit: &Visit) -> Result<Self, Refusal> {
        let frame = visit.frame(SETTINGS).await?;
        let settings = &frame.company.settings;
        let Limits { idle_minutes, max_minutes } = settings.sessions;
        let mut values = vec![
            ("session_idle_minutes", idle_minutes.to_string()),
            ("session_max_minutes", max_minutes.to_string()),
        ];
        values.extend(settings.second_factor_required.then(|| (SECOND_FACTOR, "yes".to_owned())));
        let draft = Draft::new(values);
        Ok(Self { frame, draft, idle: options(&IDLE, idle_minutes), max: options(&MAX, max_minutes) })
    }
}

/// The suggestions, and the current value if it is another one.
fn options(suggested: &[i64], current: i64) -> Vec<(String, String)> {
    let mut minutes = suggested.to_vec();
    minutes.push(current);
    minutes.sort_unstable();
    minutes.dedup();
    minutes.into_iter().map(|minutes| (minutes.to_string(), span(minutes))).collect()
}

/// `15 minutes`, `4 hours`, `14 days`.
fn span(minutes: i64) -> String {
    match minutes {
        days if days % DAY == 0 => counted(days / DAY, "day", "days"),
        hours if hours % HOUR == 0 => counted(hours / HOUR, "hour", "hours"),
        minutes => counted(minutes, "minute", "minutes"),
    }
}

async fn save(action: Action) -> Result<Response, Refusal> {
    let members = [
        ("session_idle_minutes", As::Number),
        ("session_max_minutes", As::Number),
        (SECOND_FACTOR, As::Ticked),
    ];
    let command = PatchSettings(action.form.members(&members));
    action.send(command, |page: &mut SecurityPage, draft| page.draft = draft).await?;
    action.done(PATH, "Security settings saved. Sessions that are too old have ended.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapport_domain::session::{IDLE_MINUTES, MAX_MINUTES};

    #[test]
    fn times_are_told_in_the_largest_unit_that_fits() {
        let table =
            [(15, "15 minutes"), (60, "1 hour"), (90, "90 minutes"), (1_440, "1 day"), (20_160, "14 days")];
        for (minutes, expected) in table {
            assert_eq!(span(minutes), expected);
        }
    }

    #[test]
    fn suggestions_reach_from_bound_to_bound_and_include_the_current_value() {
        assert_eq!((IDLE[0], IDLE[9]), (*IDLE_MINUTES.start(), *IDLE_MINUTES.end()));
        assert_eq!((MAX[0], MAX[8]), (*MAX_MINUTES.start(), *MAX_MINUTES.end()));
        let values = |current| options(&MAX, current).into_iter().map(|(value, _)| value).collect::<Vec<_>>();
        assert_eq!(values(60).len(), 9);
        assert_eq!(values(90)[..2], ["60", "90"]);
    }
}
