//! Campaigns with the accounts they include, and how many they exclude.

use rapport_domain::campaign::{Aim, Campaign};
use rapport_domain::caps;
use rapport_domain::channel::Channel;
use rapport_domain::id::CampaignId;
use rapport_store::{Error, Query as _, Snapshot, account_field, campaign, channel};

use crate::read::accounts::{AccountPage, Cursor, ListAccounts, Sort, nothing};
use crate::read::export::{self, Begun};
use crate::read::{DEFAULT_LIMIT, Page, Viewer};

pub use rapport_store::campaign::{Counts, list};

/// How many names of custom fields a form with conditions suggests.
pub(super) const NAMES: i64 = 200;
/// The order of the accounts on a campaign's page.
pub const PAGE_SORT: Sort = Sort::NEWEST;

/// A page of campaigns, newest first, and the channels that their filters name.
pub fn list_page(
    snapshot: &mut Snapshot,
    before: Option<CampaignId>,
) -> Result<(Page<Campaign>, Vec<Channel>), Error> {
    Ok((list(snapshot, before, DEFAULT_LIMIT)?, channel::list(snapshot)?))
}

/// How many accounts an aim includes and excludes.
pub fn counts(snapshot: &mut Snapshot, viewer: &Viewer, aim: &Aim) -> Result<Counts, Error> {
    campaign::count(snapshot, aim, viewer.now)
}

/// The same at a glance, counted less far.
pub fn glance(snapshot: &mut Snapshot, viewer: &Viewer, aim: &Aim) -> Result<Counts, Error> {
    campaign::count_up_to(snapshot, aim, viewer.now, caps::ON_A_PAGE)
}

/// A campaign with its counts.
pub fn one(
    snapshot: &mut Snapshot,
    viewer: &Viewer,
    id: CampaignId,
) -> Result<Option<(Campaign, Counts)>, Error> {
    let Some(found) = campaign::get(snapshot, id)? else { return Ok(None) };
    let counts = counts(snapshot, viewer, &found.aim)?;
    Ok(Some((found, counts)))
}

/// Everything a campaign's page shows.
pub struct CampaignPage {
    pub campaign: Campaign,
    pub counts: Counts,
    pub members: AccountPage,
    pub channels: Vec<Channel>,
}

pub fn page(
    snapshot: &mut Snapshot,
    viewer: &Viewer,
    id: CampaignId,
    cursor: Option<Cursor>,
) -> Result<Option<CampaignPage>, Error> {
    let Some(campaign) = campaign::get(snapshot, id)? else { return Ok(None) };
    let part = Part { sort: PAGE_SORT, cursor, limit: DEFAULT_LIMIT };
    Ok(Some(CampaignPage {
        members: included(snapshot, viewer, &campaign.aim, part)?,
        counts: glance(snapshot, viewer, &campaign.aim)?,
        channels: channel::list(snapshot)?,
        campaign,
    }))
}

/// Which of a campaign's accounts to list.
pub struct Part {
    pub sort: Sort,
    pub cursor: Option<Cursor>,
    pub limit: i64,
}

/// Some of the accounts that a campaign includes, and its counts.
pub fn members(
    snapshot: &mut Snapshot,
    viewer: &Viewer,
    id: CampaignId,
    part: Part,
) -> Result<Option<(AccountPage, Counts)>, Error> {
    let Some(Campaign { aim, .. }) = campaign::get(snapshot, id)? else { return Ok(None) };
    Ok(Some((included(snapshot, viewer, &aim, part)?, counts(snapshot, viewer, &aim)?)))
}

fn included(snapshot: &mut Snapshot, viewer: &Viewer, aim: &Aim, part: Part) -> Result<AccountPage, Error> {
    let Some(filter) = aim.members() else { return Ok(nothing()) };
    let Part { sort, cursor, limit } = part;
    ListAccounts { filter, sort, cursor, limit, now: viewer.now }.run(snapshot)
}

/// The beginning of a campaign's export, and its name.
pub fn export(
    snapshot: &mut Snapshot,
    viewer: &Viewer,
    id: CampaignId,
) -> Result<Option<(String, Begun)>, Error> {
    let Some(Campaign { name, aim, .. }) = campaign::get(snapshot, id)? else { return Ok(None) };
    Ok(Some((name, export::begin(snapshot, viewer, aim.members())?)))
}

/// What the form of a campaign offers.
pub struct Form {
    /// The campaign that is edited. None for a new one.
    pub existing: Option<Campaign>,
    pub channels: Vec<Channel>,
    /// Names of custom fields.
    pub names: Vec<String>,
}

pub fn form(snapshot: &mut Snapshot, id: Option<CampaignId>) -> Result<Option<Form>, Error> {
    let existing = match id {
        Some(id) => match campaign::get(snapshot, id)? {
            Some(found) => Some(found),
            None => return Ok(None),
        },
        None => None,
    };
    let (channels, names) = (channel::list(snapshot)?, account_field::names(snapshot, None, NAMES)?.items);
    Ok(Some(Form { existing, channels, names }))
}
