//! The form of a new or existing campaign, with live counts. The Count button and the script ask for the counts, and
//! neither saves anything.

use askama::Template;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use rapport_app::Error;
use rapport_app::campaign::{CreateCampaign, PatchCampaign};
use rapport_app::read::campaign::{self, Counts};
use rapport_domain::audience::Filter;
use rapport_domain::campaign::{Aim, Campaign, Goal, Rule};
use rapport_domain::channel::Channel;
use rapport_domain::id::CampaignId;
use rapport_domain::invalid::Invalid;
use rapport_domain::pipeline::Status;

use super::fields::{self, FieldRow};
use super::{PATH, id_of};
use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{MEMBER, Pages};

/// Empty rows for custom fields at the end of the form.
const SPARE_ROWS: usize = 2;

#[derive(Template)]
#[template(path = "campaigns/edit.html")]
struct EditPage {
    frame: Frame,
    existing: Option<Campaign>,
    draft: Draft,
    rows: Vec<FieldRow>,
    channels: Vec<Channel>,
    /// Selected channels that were deleted. Dropping the last one would include everyone.
    gone: Vec<String>,
    names: Vec<String>,
    counted: Option<Counted>,
}
framed!("campaigns": EditPage);

pub struct Counted {
    pub aim: Aim,
    pub counts: Counts,
}

impl Counted {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
    pub fn excluded_by(&self, rule: &Rule) -> Vec<Filter> {
        self.aim.excluded_by(*rule)
    }
}

impl EditPage {
    /// Loads the form with what was typed, else with the campaign, else with defaults.
    async fn load(
        pages: &Pages,
        visitor: &Visitor,
        id: Option<CampaignId>,
        form: Form,
    ) -> Result<(Self, Option<Invalid>), Refusal> {
        let found = pages.show(visitor, MEMBER, move |snapshot, viewer| {
            let Some(offered) = campaign::form(snapshot, id)? else { return Ok(None) };
            let zone = viewer.zone();
            let form = match &offered.existing {
                _ if !fields::is_blank(&form) => form,
                Some(existing) => fields::of_campaign(existing, zone),
                None => fields::blank(),
            };
            let parsed = match fields::aim(&form, zone) {
                Ok(aim) => Ok(Counted { counts: campaign::glance(snapshot, viewer, &aim)?, aim }),
                Err(invalid) => Err(invalid),
            };
            Ok(Some((offered, form, parsed)))
        });
        let Shown { frame, reply } = found.await?;
        let (offered, form, parsed) = reply.ok_or_else(|| Refusal::not_found("campaign"))?;
        let campaign::Form { existing, channels, names } = offered;
        let (counted, invalid) = match parsed {
            Ok(counted) => (Some(counted), None),
            Err(invalid) => (None, Some(invalid)),
        };
        let mut rows = fields::rows(&form);
        rows.extend(vec![FieldRow::default(); SPARE_ROWS]);
        let is_there = |id: &str| channels.iter().any(|channel| channel.id.to_string() == id);
        let gone = form.all("channel").filter(|id| !is_there(id)).map(str::to_owned).collect();
        let draft = Draft::new(form.fields().map(|(name, value)| (name, value.to_owned())));
        Ok((Self { frame, existing, draft, rows, channels, gone, names, counted }, invalid))
    }

    fn path(&self) -> String {
        self.existing
            .as_ref()
            .map_or_else(|| format!("{PATH}/new"), |existing| format!("{PATH}/{}/edit", existing.id))
    }

    /// A date field for a day, and a text field for a time set through the API.
    fn input_type(&self, name: &str) -> &'static str {
        let text = self.draft.value(name);
        if text.is_empty() || text.parse::<jiff::civil::Date>().is_ok() && text.len() == 10 {
            "date"
        } else {
            "text"
        }
    }

    fn refused(mut self, form: &Form, error: Error, visitor: &Visitor) -> Result<Response, Refusal> {
        self.draft = Draft::refused(form, error).map_err(|error| visitor.refused(error))?;
        Ok(self.refuse())
    }
}

pub async fn show_new(
    State(pages): State<Pages>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    show(&pages, &visitor, None, query.as_deref()).await
}

pub async fn show_existing(
    State(pages): State<Pages>,
    visitor: Visitor,
    id: Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    show(&pages, &visitor, Some(id_of(&id)?), query.as_deref()).await
}

async fn show(
    pages: &Pages,
    visitor: &Visitor,
    id: Option<CampaignId>,
    query: Option<&str>,
) -> Result<Response, Refusal> {
    let form = Form::of_query(query);
    let (page, invalid) = EditPage::load(pages, visitor, id, form.clone()).await?;
    match invalid {
        None => Ok(page.respond()),
        Some(invalid) => page.refused(&form, invalid.into(), visitor),
    }
}

pub async fn create(State(pages): State<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    let (page, _) = EditPage::load(&pages, &visitor, None, form.clone()).await?;
    let done = match fields::draft(&form, page.frame.zone()) {
        Ok(draft) => pages.submit(&visitor, &form, CreateCampaign(draft)).await,
        Err(invalid) => Err(invalid.into()),
    };
    match done {
        Ok(created) => {
            let flash = Flash::good(format!("{} saved.", created.name));
            Ok(pages.done(&format!("{PATH}/{}", created.id), flash))
        }
        Err(error) => page.refused(&form, named(error), &visitor),
    }
}

pub async fn change(
    State(pages): State<Pages>,
    visitor: Visitor,
    id: Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id = id_of(&id)?;
    let (page, _) = EditPage::load(&pages, &visitor, Some(id), form.clone()).await?;
    let done = match fields::patch(&form, page.frame.zone()) {
        Ok(patch) => pages.submit(&visitor, &form, PatchCampaign { id, patch }).await,
        Err(invalid) => Err(invalid.into()),
    };
    match done {
        Ok(changed) => {
            let flash = Flash::good(format!("{} saved.", changed.name));
            Ok(pages.done(&format!("{PATH}/{id}"), flash))
        }
        Err(error) => page.refused(&form, named(error), &visitor),
    }
}

/// Reports a taken name as a fault of the name.
fn named(error: Error) -> Error {
    match error {
        Error::Conflict { code: "name_taken", detail } => Invalid::one("/name", "name_taken", detail).into(),
        error => error,
    }
}
