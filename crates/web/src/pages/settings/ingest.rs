//! The ingest and inbound keys, examples of how to use them, and recently rejected events.

use askama::Template;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::credential::{Key, RotateKey};
use rapport_app::read::Page;
use rapport_app::read::credential::Keys;
use rapport_app::read::ingest::{self, Reject};
use rapport_domain::activity::{MAX_EVENTS, MAX_REJECTS_KEPT, MAX_REJECTS_OF_BATCH};
use rapport_domain::credential::Credential;
use rapport_domain::id::RejectId;

use super::{back_to, tabbed};
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{ADMIN, Pages};

const PATH: &str = "/settings/ingest";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(show))
        .route("/settings/ingest/key", post(rotate_ingest_key).merge(back_to(PATH)))
        .route("/settings/ingest/inbound-key", post(rotate_inbound_key).merge(back_to(PATH)))
}

#[derive(Template)]
#[template(path = "settings/ingest.html")]
struct IngestPage {
    frame: Frame,
    ingest_key: Option<Credential>,
    inbound_key: Option<Credential>,
    rejects: Page<Reject>,
    /// A key that was just created, shown only once.
    made: Option<(Key, String)>,
}
framed!("ingest": IngestPage);
tabbed!("ingest": IngestPage);

impl IngestPage {
    const MAX_EVENTS: usize = MAX_EVENTS;
    const MAX_OF_BATCH: usize = MAX_REJECTS_OF_BATCH;
    const MAX_KEPT: usize = MAX_REJECTS_KEPT;

    async fn load(pages: &Pages, visitor: &Visitor, before: Option<RejectId>) -> Result<Self, Refusal> {
        let found = pages.show(visitor, ADMIN, move |snapshot, _| ingest::page(snapshot, before));
        let Shown { frame, reply: (Keys { ingest, inbound }, rejects) } = found.await?;
        Ok(Self { frame, ingest_key: ingest, inbound_key: inbound, rejects, made: None })
    }

    /// The text of a key that was just created.
    fn made_of(&self, key: Key) -> Option<&str> {
        self.made.as_ref().filter(|(made, _)| *made == key).map(|(_, text)| text.as_str())
    }

    fn new_ingest_key(&self) -> Option<&str> {
        self.made_of(Key::Ingest)
    }

    fn new_inbound_key(&self) -> Option<&str> {
        self.made_of(Key::Inbound)
    }

    fn older(&self) -> Option<RejectId> {
        self.rejects.items.last().filter(|_| self.rejects.more).map(|reject| reject.id)
    }
}

async fn show(
    State(pages): State<Pages>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let before = Form::of_query(query.as_deref()).text("before").parse().ok();
    Ok(IngestPage::load(&pages, &visitor, before).await?.respond())
}

async fn rotate_ingest_key(
    State(pages): State<Pages>,
    visitor: Visitor,
    form: Form,
) -> Result<Response, Refusal> {
    rotate(&pages, &visitor, &form, Key::Ingest).await
}

async fn rotate_inbound_key(
    State(pages): State<Pages>,
    visitor: Visitor,
    form: Form,
) -> Result<Response, Refusal> {
    rotate(&pages, &visitor, &form, Key::Inbound).await
}

async fn rotate(pages: &Pages, visitor: &Visitor, form: &Form, key: Key) -> Result<Response, Refusal> {
    let made = pages.submit(visitor, form, RotateKey(key)).await;
    let made = made.map_err(|error| visitor.refused(error))?;
    let page = IngestPage::load(pages, visitor, None).await?;
    Ok(IngestPage { made: Some((key, made.text)), ..page }.respond())
}
