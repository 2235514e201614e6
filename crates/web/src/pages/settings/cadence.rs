//! The cadence: how often to contact clients, and which stages are tracked. A preview shows the effect of new settings
//! before they are saved.

use askama::Template;
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use rapport_app::read::CappedCount;
use rapport_app::read::settings::{self, Difference};
use rapport_app::settings::PatchSettings;
use rapport_domain::company::{CADENCE_DAYS, TrackedStages};
use rapport_domain::invalid::Invalid;
use rapport_domain::pipeline::Status;
use serde_json::{Map, Value};

use super::tabbed;
use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit};
use crate::pages::{Pages, SETTINGS};

const PATH: &str = "/settings/cadence";

pub fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(show).post(save))
}

#[derive(Template)]
#[template(path = "settings/cadence.html")]
struct CadencePage {
    frame: Frame,
    draft: Draft,
    stages: [Status; 3],
    longest: i64,
    /// The number of clients that are overdue now.
    overdue: CappedCount,
    /// The effect of the typed settings.
    preview: Option<Difference>,
}
framed!("settings": CadencePage);
tabbed!("cadence": CadencePage);

impl CadencePage {
    /// Loads the page, with a preview of these members if they are given.
    async fn preview(
        visit: &Visit,
        members: Option<Map<String, Value>>,
    ) -> Result<(Self, Option<Invalid>), Refusal> {
        let found = visit.read(SETTINGS, move |snapshot, viewer| {
            settings::cadence_page(snapshot, viewer, members.as_ref())
        });
        let Shown { frame, reply: settings::CadencePage { overdue, preview } } = found.await?;
        let settings = &frame.company.settings;
        let stages = settings.tracked_stages.statuses().into_iter();
        let stages = stages.map(|stage| ("tracked_stages", stage.as_str().to_owned()));
        let days = ("cadence_days", settings.cadence_days.to_string());
        let draft = Draft::new(std::iter::once(days).chain(stages));
        let (preview, invalid) = match preview {
            Some(Ok(difference)) => (Some(difference), None),
            Some(Err(invalid)) => (None, Some(invalid)),
            None => (None, None),
        };
        let (stages, longest) = (TrackedStages::ALLOWED, *CADENCE_DAYS.end());
        Ok((Self { frame, draft, stages, longest, overdue, preview }, invalid))
    }
}

impl Load<()> for CadencePage {
    async fn load(visit: &Visit) -> Result<Self, Refusal> {
        Ok(Self::preview(visit, None).await?.0)
    }
}

async fn show(visit: Visit) -> Result<Response, Refusal> {
    let form = &visit.query;
    if !form.is_ticked("cadence_days") {
        return Ok(CadencePage::load(&visit).await?.respond());
    }
    let (page, invalid) = CadencePage::preview(&visit, Some(members(form))).await?;
    if let Some(invalid) = invalid {
        let draft = Draft::refused(form, invalid.into()).map_err(|error| visit.visitor.refused(error))?;
        return Ok(CadencePage { draft, ..page }.refuse());
    }
    let draft = Draft::new(form.fields().map(|(name, value)| (name, value.to_owned())));
    Ok(CadencePage { draft, ..page }.respond())
}

async fn save(action: Action) -> Result<Response, Refusal> {
    let command = PatchSettings(members(&action.form));
    action.send(command, |page: &mut CadencePage, draft| page.draft = draft).await?;
    action.done(PATH, Flash::good("Cadence saved.").link("View clients", "/clients"))
}

fn members(form: &Form) -> Map<String, Value> {
    let mut members = form.members(&[("cadence_days", As::Number), ("tracked_stages", As::Ticks)]);
    // An empty field is an invalid number, not a missing member.
    members.entry("cadence_days").or_insert_with(|| Value::from(""));
    members
}
