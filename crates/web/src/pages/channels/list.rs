//! The list of channels.

use askama::Template;
use axum::response::Response;
use rapport_app::channel::CreateChannel;
use rapport_app::read::channel::{self, ListPage};
use rapport_domain::channel::{Channel, ChannelCode};
use rapport_domain::channel_total::{CodeTotal, Counted};
use rapport_domain::exchange_rate::total::Rates;
use rapport_domain::id::ChannelId;
use rapport_domain::invalid::Invalid;

use crate::pages::READ;
use crate::pages::channels::figures::{CodeRow, Shown as Figures, State, code_rows};
use crate::pages::channels::path_of;
use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{Frame, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit};

/// How many channels a page shows, and how many codes of each.
const MOST: usize = 25;
const MOST_CODES: usize = 6;

#[derive(Template)]
#[template(path = "channels/list.html")]
pub struct ChannelsPage {
    frame: Frame,
    channels: Vec<Listed>,
    counted: Option<Counted>,
    is_first: bool,
    next: Option<ChannelId>,
    draft: Draft,
}
framed!("channels": ChannelsPage);

struct Listed {
    channel: Channel,
    figures: Figures,
    codes: Vec<CodeRow>,
    /// How many codes are shown only on the channel's page.
    more: usize,
}

impl Listed {
    fn new(channel: Channel, codes: &[ChannelCode], totals: &[CodeTotal], rates: &Rates) -> Self {
        let own: Vec<CodeTotal> =
            totals.iter().filter(|total| total.channel == channel.id).cloned().collect();
        let codes: Vec<ChannelCode> =
            codes.iter().filter(|code| code.channel == channel.id).cloned().collect();
        let mut rows = code_rows(&codes, &own, rates);
        let more = rows.len().saturating_sub(MOST_CODES);
        rows.truncate(MOST_CODES);
        Self { figures: Figures::of(&own, rates), channel, codes: rows, more }
    }
}

impl Load<()> for ChannelsPage {
    async fn load(visit: &Visit) -> Result<Self, Refusal> {
        let after = visit.query.text("after").parse().ok();
        let found = visit.read(READ, channel::list_page);
        let Shown { frame, reply: ListPage { mut channels, codes, totals, rates, counted } } = found.await?;
        let place =
            after.and_then(|after: ChannelId| channels.iter().position(|channel| channel.id == after));
        let mut shown: Vec<Channel> = channels.split_off(place.map_or(0, |place| place + 1));
        let is_last = shown.len() <= MOST;
        shown.truncate(MOST);
        let next = shown.last().filter(|_| !is_last).map(|last| last.id);
        let listed = |channel| Listed::new(channel, &codes, &totals, &rates);
        let channels = shown.into_iter().map(listed).collect();
        Ok(Self { frame, channels, counted, is_first: place.is_none(), next, draft: Draft::default() })
    }
}

pub async fn create(action: Action) -> Result<Response, Refusal> {
    let command = parse_name(&action.form).map(|name| CreateChannel { name });
    let channel = action.run(command, |page: &mut ChannelsPage, draft| page.draft = draft).await?;
    action.done(&path_of(channel.id), format!("“{}” created. Next, add a promo code.", channel.name))
}

/// Parses the name of a channel as the API does.
pub fn parse_name(form: &Form) -> Result<String, Invalid> {
    rapport_domain::channel::parse_name(&form.members(&[("name", As::Text)]))
}
