//! The form of a new or existing campaign, with live counts. The Count button and the script ask for the counts, and
//! neither saves anything.

use askama::Template;
use axum::response::Response;
use rapport_app::campaign::{CreateCampaign, PatchCampaign};
use rapport_app::read::campaign::{self, Counts};
use rapport_domain::audience::Filter;
use rapport_domain::campaign::{Aim, Campaign, Goal, Rule};
use rapport_domain::channel::Channel;
use rapport_domain::id::CampaignId;
use rapport_domain::invalid::Invalid;
use rapport_domain::pipeline::Status;

use super::PATH;
use super::fields;
use crate::pages::WORK;
use crate::pages::kit::action::Action;
use crate::pages::kit::conditions::{self, FieldRow};
use crate::pages::kit::draft::Draft;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit};

#[derive(Template)]
#[template(path = "campaigns/edit.html")]
pub struct EditPage {
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
    /// Loads the form with what the query says, else with the campaign, else with defaults. Also returns the faults
    /// of the query.
    async fn typed<I: Sync>(
        visit: &Visit<I>,
        id: Option<CampaignId>,
    ) -> Result<(Self, Option<Invalid>), Refusal> {
        let form = visit.query.clone();
        let found = visit.read(WORK, move |snapshot, viewer| {
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
        let (rows, gone) = (conditions::rows_to_fill(&form), conditions::gone(&form, &channels));
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
}

/// The form of a new campaign.
impl Load<()> for EditPage {
    async fn load(visit: &Visit) -> Result<Self, Refusal> {
        Ok(Self::typed(visit, None).await?.0)
    }
}

/// The form of an existing campaign.
impl Load<CampaignId> for EditPage {
    async fn load(visit: &Visit<CampaignId>) -> Result<Self, Refusal> {
        Ok(Self::typed(visit, Some(visit.id)).await?.0)
    }
}

pub async fn show_new(visit: Visit) -> Result<Response, Refusal> {
    count(&visit, None).await
}

pub async fn show_existing(visit: Visit<CampaignId>) -> Result<Response, Refusal> {
    count(&visit, Some(visit.id)).await
}

/// Shows the form and the counts of what the query says, or its faults.
async fn count<I: Sync>(visit: &Visit<I>, id: Option<CampaignId>) -> Result<Response, Refusal> {
    let (page, invalid) = EditPage::typed(visit, id).await?;
    let Some(invalid) = invalid else { return Ok(page.respond()) };
    let draft = Draft::refused(&visit.query, invalid.into());
    let draft = draft.map_err(|error| visit.visitor.refused(error))?;
    Ok(EditPage { draft, ..page }.refuse())
}

pub async fn create(action: Action) -> Result<Response, Refusal> {
    let action = typed_on_page(action);
    let zone = action.frame(WORK).await?.zone().clone();
    let command = fields::draft(&action.form, &zone).map(CreateCampaign);
    let created = action.run(command, |page: &mut EditPage, draft| page.draft = draft).await?;
    action.done(&format!("{PATH}/{}", created.id), format!("{} saved.", created.name))
}

pub async fn change(action: Action<CampaignId>) -> Result<Response, Refusal> {
    let action = typed_on_page(action);
    let (id, zone) = (action.id, action.frame(WORK).await?.zone().clone());
    let command = fields::patch(&action.form, &zone).map(|patch| PatchCampaign { id, patch });
    let changed = action.run(command, |page: &mut EditPage, draft| page.draft = draft).await?;
    action.done(&format!("{PATH}/{id}"), format!("{} saved.", changed.name))
}

/// What was typed is counted, even if it can't be saved.
fn typed_on_page<I: Send + Sync>(action: Action<I>) -> Action<I> {
    let typed = action.form.clone();
    action.on_page(typed)
}
