//! The list of channels.

use askama::Template;
use axum::extract::{RawQuery, State as Shared};
use axum::response::Response;
use rapport_app::channel::CreateChannel;
use rapport_app::read::channel::{self, ListPage};
use rapport_domain::channel::{Channel, ChannelCode, MAX_NAME};
use rapport_domain::channel_total::{CodeTotal, Counted};
use rapport_domain::id::ChannelId;
use rapport_domain::invalid::{Invalid, Members, as_text};

use crate::pages::channels::figures::{CodeRow, Shown as Figures, State, code_rows};
use crate::pages::channels::{path_of, refused};
use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{ADMIN, MEMBER, Pages};

/// How many channels a page shows, and how many codes of each.
const MOST: usize = 25;
const MOST_CODES: usize = 6;

#[derive(Template)]
#[template(path = "channels/list.html")]
struct ChannelsPage {
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
    fn new(channel: Channel, codes: &[ChannelCode], totals: &[CodeTotal]) -> Self {
        let own: Vec<CodeTotal> =
            totals.iter().filter(|total| total.channel == channel.id).cloned().collect();
        let codes: Vec<ChannelCode> =
            codes.iter().filter(|code| code.channel == channel.id).cloned().collect();
        let mut rows = code_rows(&codes, &own);
        let more = rows.len().saturating_sub(MOST_CODES);
        rows.truncate(MOST_CODES);
        Self { figures: Figures::of(&own), channel, codes: rows, more }
    }
}

impl ChannelsPage {
    async fn load(
        pages: &Pages,
        visitor: &Visitor,
        after: Option<ChannelId>,
        draft: Draft,
    ) -> Result<Self, Refusal> {
        // Only those who may send the form see it again.
        let needs = if draft.has_faults() { ADMIN } else { MEMBER };
        let found = pages.show(visitor, needs, |snapshot, _| channel::list_page(snapshot));
        let Shown { frame, reply: ListPage { mut channels, codes, totals, counted } } = found.await?;
        let place = after.and_then(|after| channels.iter().position(|channel| channel.id == after));
        let mut shown: Vec<Channel> = channels.split_off(place.map_or(0, |place| place + 1));
        let is_last = shown.len() <= MOST;
        shown.truncate(MOST);
        let next = shown.last().filter(|_| !is_last).map(|last| last.id);
        let channels = shown.into_iter().map(|channel| Listed::new(channel, &codes, &totals)).collect();
        Ok(Self { frame, channels, counted, is_first: place.is_none(), next, draft })
    }
}

pub async fn show(
    Shared(pages): Shared<Pages>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let after = Form::of_query(query.as_deref()).text("after").parse().ok();
    Ok(ChannelsPage::load(&pages, &visitor, after, Draft::default()).await?.respond())
}

pub async fn create(Shared(pages): Shared<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    let created = match parse_name(&form) {
        Ok(name) => pages.submit(&visitor, &form, CreateChannel { name }).await,
        Err(invalid) => Err(invalid.into()),
    };
    match created {
        Ok(channel) => {
            let flash = Flash::good(format!("“{}” created. Next, add a promo code.", channel.name));
            Ok(pages.done(&path_of(channel.id), flash))
        }
        Err(error) => {
            let draft = refused(&visitor, &form, error)?;
            Ok(ChannelsPage::load(&pages, &visitor, None, draft).await?.refuse())
        }
    }
}

/// Parses the name of a channel as the API does.
pub fn parse_name(form: &Form) -> Result<String, Invalid> {
    let members = form.members(&[("name", As::Text)]);
    let mut members = Members::of(&members);
    let name = members.required("name", |value| as_text(value, MAX_NAME));
    members.finish().map(|()| name.unwrap_or_default())
}
