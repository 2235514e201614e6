//! The list of imports, with the upload form.

use askama::Template;
use rapport_app::read::import;
use rapport_domain::id::ImportId;
use rapport_domain::import::Import;

use super::words;
use crate::pages::IMPORT;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::frame::{Frame, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit};

const PAGE: i64 = 50;

#[derive(Template)]
#[template(path = "imports/list.html")]
pub struct ListPage {
    frame: Frame,
    imports: Vec<Import>,
    /// The start of the next page.
    next: Option<ImportId>,
    is_first: bool,
    pub draft: Draft,
    max_bytes: u64,
    encodings: Vec<(&'static str, &'static str)>,
    delimiters: Vec<(&'static str, &'static str)>,
}
framed!("imports": ListPage);

impl Load<()> for ListPage {
    async fn load(visit: &Visit) -> Result<Self, Refusal> {
        let before = visit.query.text("before").parse().ok();
        let read = visit.read(IMPORT, move |snapshot, _| import::list(snapshot, before, PAGE));
        let Shown { frame, reply } = read.await?;
        let automatic = [("", "Detect automatically")];
        Ok(Self {
            next: reply.items.last().filter(|_| reply.more).map(|last| last.id),
            imports: reply.items,
            is_first: before.is_none(),
            draft: Draft::default(),
            max_bytes: visit.pages.0.max_import_bytes,
            encodings: automatic.into_iter().chain(words::ENCODINGS).collect(),
            delimiters: automatic.into_iter().chain(words::DELIMITERS).collect(),
            frame,
        })
    }
}
