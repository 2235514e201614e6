//! The list of imports, with the upload form.

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use rapport_app::read::import;
use rapport_domain::id::ImportId;
use rapport_domain::import::Import;

use super::words;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{ADMIN, Pages};

const PAGE: i64 = 50;

#[derive(Template)]
#[template(path = "imports/list.html")]
pub struct ListPage {
    frame: Frame,
    imports: Vec<Import>,
    /// The start of the next page.
    next: Option<ImportId>,
    is_first: bool,
    draft: Draft,
    max_bytes: u64,
    encodings: Vec<(&'static str, &'static str)>,
    delimiters: Vec<(&'static str, &'static str)>,
}
framed!("imports": ListPage);

impl ListPage {
    pub async fn load(
        pages: &Pages,
        visitor: &Visitor,
        before: Option<ImportId>,
        draft: Draft,
    ) -> Result<Self, Refusal> {
        let read = pages.show(visitor, ADMIN, move |snapshot, _| import::list(snapshot, before, PAGE));
        let Shown { frame, reply } = read.await?;
        let automatic = [("", "Detect automatically")];
        Ok(Self {
            next: reply.items.last().filter(|_| reply.more).map(|last| last.id),
            imports: reply.items,
            is_first: before.is_none(),
            draft,
            max_bytes: pages.0.max_import_bytes,
            encodings: automatic.into_iter().chain(words::ENCODINGS).collect(),
            delimiters: automatic.into_iter().chain(words::DELIMITERS).collect(),
            frame,
        })
    }
}

pub async fn show(
    State(pages): State<Pages>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let before = Form::of_query(query.as_deref()).text("before").parse().ok();
    Ok(ListPage::load(&pages, &visitor, before, Draft::default()).await?.respond())
}
