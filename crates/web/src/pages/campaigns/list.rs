//! The list of campaigns, newest first. It shows no counts, because each would have to count accounts.

use askama::Template;
use axum::response::Response;
use rapport_app::read::Page;
use rapport_app::read::campaign::list_page;
use rapport_domain::campaign::Campaign;
use rapport_domain::channel::Channel;

use super::words;
use crate::pages::READ;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;

#[derive(Template)]
#[template(path = "campaigns/list.html")]
struct ListPage {
    frame: Frame,
    campaigns: Page<Campaign>,
    channels: Vec<Channel>,
    /// Not the first page.
    is_later: bool,
}
framed!("campaigns": ListPage);

impl ListPage {
    /// The campaign's filters in one line.
    fn summary(&self, campaign: &Campaign) -> String {
        let filters = words::filters(&campaign.aim.filters, &self.channels, self.frame.zone());
        let parts: Vec<String> =
            filters.into_iter().map(|(what, text)| format!("{}: {text}", what.to_lowercase())).collect();
        if parts.is_empty() { "All accounts".to_owned() } else { parts.join("; ") }
    }
}

pub async fn show(visit: Visit) -> Result<Response, Refusal> {
    let before = visit.query.text("before").parse().ok();
    let found = visit.read(READ, move |snapshot, _| list_page(snapshot, before));
    let Shown { frame, reply: (campaigns, channels) } = found.await?;
    Ok(ListPage { frame, campaigns, channels, is_later: before.is_some() }.respond())
}
