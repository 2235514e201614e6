//! A channel: its figures and its codes.

use askama::Template;
use rapport_app::read::channel;
use rapport_domain::channel::Channel;
use rapport_domain::channel_total::Counted;
use rapport_domain::id::ChannelId;

use crate::pages::READ;
use crate::pages::channels::figures::{CodeRow, Shown as Figures, State, code_rows};
use crate::pages::channels::path_of;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::frame::{Frame, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit};

/// How many codes a page shows.
const MOST: usize = 50;

#[derive(Template)]
#[template(path = "channels/one.html")]
pub struct ChannelPage {
    frame: Frame,
    channel: Channel,
    figures: Figures,
    codes: Vec<CodeRow>,
    counted: Option<Counted>,
    is_first: bool,
    next: Option<String>,
    pub renaming: Draft,
    pub adding: Draft,
}
framed!("channels": ChannelPage);

impl Load<ChannelId> for ChannelPage {
    /// Loads the codes after the one in the query, or from the beginning.
    async fn load(visit: &Visit<ChannelId>) -> Result<Self, Refusal> {
        let (id, after) = (visit.id, visit.query.given("after"));
        let found = visit.read(READ, move |snapshot, viewer| channel::page(snapshot, viewer, id));
        let Shown { frame, reply } = found.await?;
        let channel::ChannelPage { channel, codes, totals, rates, counted } =
            reply.ok_or_else(|| Refusal::not_found("channel"))?;
        let mut rows = code_rows(&codes, &totals, &rates);
        let place = after.and_then(|after| rows.iter().position(|row| row.code == after));
        let mut codes = rows.split_off(place.map_or(0, |place| place + 1));
        let is_last = codes.len() <= MOST;
        codes.truncate(MOST);
        Ok(Self {
            frame,
            channel,
            figures: Figures::of(&totals, &rates),
            next: codes.last().filter(|_| !is_last).map(|last| last.code.clone()),
            codes,
            counted,
            is_first: place.is_none(),
            renaming: Draft::default(),
            adding: Draft::default(),
        })
    }
}

impl ChannelPage {
    fn path(&self) -> String {
        path_of(self.channel.id)
    }

    fn name(&self) -> &str {
        if self.renaming.has_faults() { self.renaming.value("name") } else { &self.channel.name }
    }
}
