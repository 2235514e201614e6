//! The cadence: how often to contact clients, and which stages are tracked. A preview shows the effect of new settings
//! before they are saved.

use askama::Template;
use axum::Router;
use axum::extract::{RawQuery, State};
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
use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{ADMIN, Pages};

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
    async fn load(
        pages: &Pages,
        visitor: &Visitor,
        members: Option<Map<String, Value>>,
    ) -> Result<(Self, Option<Invalid>), Refusal> {
        let found = pages.show(visitor, ADMIN, move |snapshot, viewer| {
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

async fn show(
    State(pages): State<Pages>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let form = Form::of_query(query.as_deref());
    if !form.is_ticked("cadence_days") {
        return Ok(CadencePage::load(&pages, &visitor, None).await?.0.respond());
    }
    let (page, invalid) = CadencePage::load(&pages, &visitor, Some(members(&form))).await?;
    if let Some(invalid) = invalid {
        let draft = Draft::refused(&form, invalid.into()).map_err(|error| visitor.refused(error))?;
        return Ok(CadencePage { draft, ..page }.refuse());
    }
    let draft = Draft::new(form.fields().map(|(name, value)| (name, value.to_owned())));
    Ok(CadencePage { draft, ..page }.respond())
}

async fn save(State(pages): State<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    match pages.submit(&visitor, &form, PatchSettings(members(&form))).await {
        Ok(_) => Ok(pages.done(PATH, Flash::good("Cadence saved.").link("View clients", "/clients"))),
        Err(error) => {
            let draft = Draft::refused(&form, error).map_err(|error| visitor.refused(error))?;
            let (page, _) = CadencePage::load(&pages, &visitor, None).await?;
            Ok(CadencePage { draft, ..page }.refuse())
        }
    }
}

fn members(form: &Form) -> Map<String, Value> {
    let mut members = form.members(&[("cadence_days", As::Number), ("tracked_stages", As::Ticks)]);
    // An empty field is an invalid number, not a missing member.
    members.entry("cadence_days").or_insert_with(|| Value::from(""));
    members
}
