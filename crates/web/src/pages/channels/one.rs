//! A channel: its figures and its codes.

use askama::Template;
use axum::extract::{Path, RawQuery, State as Shared};
use axum::response::Response;
use rapport_app::read::channel;
use rapport_domain::channel::Channel;
use rapport_domain::channel_total::Counted;
use rapport_domain::id::ChannelId;

use crate::pages::channels::figures::{CodeRow, Shown as Figures, State, code_rows};
use crate::pages::channels::path_of;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{ADMIN, MEMBER, Pages};

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
    pub deleting: Draft,
}
framed!("channels": ChannelPage);

impl ChannelPage {
    /// Loads the codes after `after`, or from the beginning. Only admins see forms that were refused.
    pub async fn load(
        pages: &Pages,
        visitor: &Visitor,
        id: ChannelId,
        after: Option<&str>,
        is_form: bool,
    ) -> Result<Self, Refusal> {
        let needs = if is_form { ADMIN } else { MEMBER };
        let found = pages.show(visitor, needs, move |snapshot, _| channel::page(snapshot, id));
        let Shown { frame, reply } = found.await?;
        let channel::ChannelPage { channel, codes, totals, counted } =
            reply.ok_or_else(|| Refusal::not_found("channel"))?;
        let mut rows = code_rows(&codes, &totals);
        let place = after.and_then(|after| rows.iter().position(|row| row.code == after));
        let mut codes = rows.split_off(place.map_or(0, |place| place + 1));
        let is_last = codes.len() <= MOST;
        codes.truncate(MOST);
        Ok(Self {
            frame,
            channel,
            figures: Figures::of(&totals),
            next: codes.last().filter(|_| !is_last).map(|last| last.code.clone()),
            codes,
            counted,
            is_first: place.is_none(),
            renaming: Draft::default(),
            adding: Draft::default(),
            deleting: Draft::default(),
        })
    }

    fn path(&self) -> String {
        path_of(self.channel.id)
    }

    fn name(&self) -> &str {
        if self.renaming.has_faults() { self.renaming.value("name") } else { &self.channel.name }
    }
}

pub async fn show(
    Shared(pages): Shared<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let query = Form::of_query(query.as_deref());
    let page = ChannelPage::load(&pages, &visitor, read_id(&id)?, query.given("after"), false);
    Ok(page.await?.respond())
}

pub fn read_id(text: &str) -> Result<ChannelId, Refusal> {
    text.parse().map_err(|_| Refusal::not_found("channel"))
}
