//! A campaign: its goal and filters, who is included, who is excluded and why; its export and deletion.

use askama::Template;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use rapport_app::Answer;
use rapport_app::campaign::DeleteCampaign;
use rapport_app::read::accounts::{AccountPage, Cursor};
use rapport_app::read::campaign::{self, CampaignPage, PAGE_SORT};
use rapport_domain::campaign::Campaign;
use rapport_domain::channel::Channel;

use super::edit::Counted;
use super::{PATH, id_of, words};
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{MEMBER, Pages};
use crate::shared::export as csv;

#[derive(Template)]
#[template(path = "campaigns/show.html")]
struct ShowPage {
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

pub async fn show(
    State(pages): State<Pages>,
    visitor: Visitor,
    id: Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let id = id_of(&id)?;
    // An invalid cursor leads to the beginning.
    let cursor = Cursor::parse(Form::of_query(query.as_deref()).text("cursor"), PAGE_SORT).ok();
    let is_later = cursor.is_some();
    let found =
        pages.show(&visitor, MEMBER, move |snapshot, viewer| campaign::page(snapshot, viewer, id, cursor));
    let Shown { frame, reply } = found.await?;
    let CampaignPage { campaign, counts, members, channels } =
        reply.ok_or_else(|| Refusal::not_found("campaign"))?;
    let counted = Counted { aim: campaign.aim.clone(), counts };
    Ok(ShowPage { frame, campaign, counted, members, channels, is_later }.respond())
}

/// The members as CSV.
pub async fn export(
    State(pages): State<Pages>,
    visitor: Visitor,
    id: Path<String>,
) -> Result<Response, Refusal> {
    let id = id_of(&id)?;
    let access = visitor.access();
    let found =
        pages.app().read(&access, MEMBER, move |snapshot, viewer| campaign::export(snapshot, viewer, id));
    let Answer { reply, company, now } = found.await.map_err(|error| visitor.refused(error))?;
    let (name, begun) = reply.ok_or_else(|| Refusal::not_found("campaign"))?;
    let begun = Answer { reply: begun.into(), company, now };
    Ok(csv::respond(pages.app(), access, &format!("campaign {name}"), begun))
}

pub async fn delete(
    State(pages): State<Pages>,
    visitor: Visitor,
    id: Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let done = pages.submit(&visitor, &form, DeleteCampaign(id_of(&id)?)).await;
    done.map_err(|error| visitor.refused(error))?;
    Ok(pages.done(PATH, Flash::good("Campaign deleted. Its accounts stay.")))
}
