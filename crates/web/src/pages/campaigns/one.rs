//! A campaign: its goal and filters, who is included, who is excluded and why; its export and deletion.

use askama::Template;
use axum::response::Response;
use rapport_app::Answer;
use rapport_app::campaign::DeleteCampaign;
use rapport_app::export::RecordExport;
use rapport_app::read::accounts::{AccountPage, Cursor};
use rapport_app::read::campaign::{self, CampaignPage, PAGE_SORT};
use rapport_domain::campaign::Campaign;
use rapport_domain::channel::Channel;
use rapport_domain::id::CampaignId;

use super::edit::Counted;
use super::{PATH, words};
use crate::pages::kit::action::Action;
use crate::pages::kit::frame::{Frame, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit};
use crate::pages::{EXPORT, READ};
use crate::shared::export as csv;

#[derive(Template)]
#[template(path = "campaigns/show.html")]
pub struct ShowPage {
    frame: Frame,
    campaign: Campaign,
    counted: Counted,
    members: AccountPage,
    channels: Vec<Channel>,
    /// Not the first page.
    is_later: bool,
}
framed!("campaigns": ShowPage);

impl ShowPage {
    fn filters(&self) -> Vec<(&'static str, String)> {
        words::filters(&self.campaign.aim.filters, &self.channels, self.frame.zone())
    }
}

impl Load<CampaignId> for ShowPage {
    async fn load(visit: &Visit<CampaignId>) -> Result<Self, Refusal> {
        // An invalid cursor leads to the beginning.
        let cursor = Cursor::parse(visit.query.text("cursor"), PAGE_SORT).ok();
        let (id, is_later) = (visit.id, cursor.is_some());
        let found = visit.read(READ, move |snapshot, viewer| campaign::page(snapshot, viewer, id, cursor));
        let Shown { frame, reply } = found.await?;
        let CampaignPage { campaign, counts, members, channels } =
            reply.ok_or_else(|| Refusal::not_found("campaign"))?;
        let counted = Counted { aim: campaign.aim.clone(), counts };
        Ok(Self { frame, campaign, counted, members, channels, is_later })
    }
}

/// The members as CSV.
pub async fn export(visit: Visit<CampaignId>) -> Result<Response, Refusal> {
    let (app, access, id) = (visit.pages.app(), visit.visitor.access(), visit.id);
    let found = app.read(&access, EXPORT, move |snapshot, viewer| campaign::export(snapshot, viewer, id));
    let Answer { reply, company, now } = found.await.map_err(|error| visit.visitor.refused(error))?;
    let (name, begun) = reply.ok_or_else(|| Refusal::not_found("campaign"))?;
    visit.write(RecordExport::of_campaign(id)).await?;
    let begun = Answer { reply: begun.into(), company, now };
    Ok(csv::respond(app, access, &format!("campaign {name}"), begun))
}

pub async fn delete(action: Action<CampaignId>) -> Result<Response, Refusal> {
    action.act::<ShowPage, _>(DeleteCampaign(action.id)).await?;
    action.done(PATH, "Campaign deleted. Its accounts stay.")
}
