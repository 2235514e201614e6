//! Channels with their promo codes and figures.

use rapport_domain::channel::{Channel, ChannelCode, PromoCode};
use rapport_domain::channel_total::{CodeTotal, Counted};
use rapport_domain::exchange_rate::total::Rates;
use rapport_domain::id::ChannelId;
use rapport_store::{Error, Snapshot, channel, channel_total};

use crate::read::{Viewer, exchange_rate};

/// Every channel, and every code of each.
pub fn all(snapshot: &mut Snapshot) -> Result<(Vec<Channel>, Vec<ChannelCode>), Error> {
    Ok((channel::list(snapshot)?, channel::all_codes(snapshot)?))
}

/// Everything the page of channels shows.
pub struct ListPage {
    /// By name.
    pub channels: Vec<Channel>,
    pub codes: Vec<ChannelCode>,
    pub totals: Vec<CodeTotal>,
    /// For the values of the totals.
    pub rates: Rates,
    pub counted: Option<Counted>,
}

pub fn list_page(snapshot: &mut Snapshot, viewer: &Viewer) -> Result<ListPage, Error> {
    let (mut channels, codes) = all(snapshot)?;
    channels.sort_by_key(|channel| channel.name.to_lowercase());
    let (totals, counted) = (channel_total::all(snapshot)?, channel_total::counted(snapshot)?);
    let rates = rates_of(snapshot, viewer, &totals)?;
    Ok(ListPage { channels, codes, totals, rates, counted })
}

/// Everything a channel's page shows.
pub struct ChannelPage {
    pub channel: Channel,
    pub codes: Vec<ChannelCode>,
    pub totals: Vec<CodeTotal>,
    /// For the values of the totals.
    pub rates: Rates,
    pub counted: Option<Counted>,
}

pub fn page(snapshot: &mut Snapshot, viewer: &Viewer, id: ChannelId) -> Result<Option<ChannelPage>, Error> {
    let Some((channel, codes)) = one(snapshot, id)? else { return Ok(None) };
    let (totals, counted) = (channel_total::of_channel(snapshot, id)?, channel_total::counted(snapshot)?);
    let rates = rates_of(snapshot, viewer, &totals)?;
    Ok(Some(ChannelPage { channel, codes, totals, rates, counted }))
}

fn rates_of(snapshot: &mut Snapshot, viewer: &Viewer, totals: &[CodeTotal]) -> Result<Rates, Error> {
    exchange_rate::today(snapshot, viewer, totals.iter().filter_map(|total| total.currency))
}

/// A channel and its codes.
pub fn one(snapshot: &mut Snapshot, id: ChannelId) -> Result<Option<(Channel, Vec<ChannelCode>)>, Error> {
    let Some(found) = channel::get(snapshot, id)? else { return Ok(None) };
    Ok(Some((found, channel::codes(snapshot, id)?)))
}

/// A channel's code, in any case.
pub fn code(snapshot: &mut Snapshot, id: ChannelId, code: &PromoCode) -> Result<Option<ChannelCode>, Error> {
    let codes = channel::codes(snapshot, id)?;
    Ok(codes.into_iter().find(|found| found.code.folded() == code.folded()))
}
