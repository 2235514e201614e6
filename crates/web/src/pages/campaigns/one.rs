//! A campaign: its goal and filters, who is included, who is excluded and why; its export and deletion.

use askama::Template;
use axum::response::Response;
use rapport_app::Answer;
use rapport_app::campaign::DeleteCampaign;
use rapport_domain::campaign::Campaign;
use rapport_domain::caps;
use rapport_domain::channel::Channel;
use rapport_domain::id::CampaignId;
use rapport_store::account_list::{AccountPage, Cursor, ListAccounts, Sort};
use rapport_store::campaign::{self, Counts};
use rapport_store::page::DEFAULT_LIMIT;
use rapport_store::{Query as _, channel};

use super::edit::Counted;
use super::{PATH, words};
use crate::pages::MEMBER;
use crate::pages::kit::action::Action;
use crate::pages::kit::frame::{Frame, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit};
use crate::shared::export as csv;

const SORT: Sort = Sort::Newest;

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

struct Read {
    campaign: Campaign,
    counts: Counts,
    members: AccountPage,
    channels: Vec<Channel>,
}

impl Load<CampaignId> for ShowPage {
    async fn load(visit: &Visit<CampaignId>) -> Result<Self, Refusal> {
        let id = visit.id;
        // An invalid cursor leads to the beginning.
        let cursor = Cursor::parse(visit.query.text("cursor"), SORT).ok();
        let (is_later, now) = (cursor.is_some(), visit.pages.app().now());
        let found = visit.read(MEMBER, move |snapshot| {
            let Some(found) = campaign::get(snapshot, id)? else { return Ok(None) };
            let members = match found.aim.members() {
                Some(filter) => {
                    ListAccounts { filter, sort: SORT, cursor, limit: DEFAULT_LIMIT, now }.run(snapshot)?
                }
                None => AccountPage { items: Vec::new(), next: None },
            };
            let counts = campaign::count_up_to(snapshot, &found.aim, now, caps::ON_A_PAGE)?;
            Ok(Some(Read { campaign: found, counts, members, channels: channel::list(snapshot)? }))
        });
        let Shown { frame, reply } = found.await?;
        let Read { campaign, counts, members, channels } =
            reply.ok_or_else(|| Refusal::not_found("campaign"))?;
        let counted = Counted { aim: campaign.aim.clone(), counts };
        Ok(Self { frame, campaign, counted, members, channels, is_later })
    }
}

/// The members as CSV.
pub async fn export(visit: Visit<CampaignId>) -> Result<Response, Refusal> {
    let (app, access, id) = (visit.pages.app(), visit.visitor.access(), visit.id);
    let now = app.now();
    let found = app.read(&access, MEMBER, move |snapshot| {
        let Some(found) = campaign::get(snapshot, id)? else { return Ok(None) };
        Ok(Some((found.name, csv::begin(snapshot, found.aim.members(), now)?)))
    });
    let Answer { reply, company, now } = found.await.map_err(|error| visit.visitor.refused(error))?;
    let (name, begun) = reply.ok_or_else(|| Refusal::not_found("campaign"))?;
    Ok(csv::respond(app, access, &format!("campaign {name}"), Answer { reply: begun, company, now }))
}

pub async fn delete(action: Action<CampaignId>) -> Result<Response, Refusal> {
    action.act::<ShowPage, _>(DeleteCampaign(action.id)).await?;
    action.done(PATH, "Campaign deleted. Its accounts stay.")
}
