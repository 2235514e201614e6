//! The ingest and inbound keys, examples of how to use them, and recently rejected events.

use askama::Template;
use axum::Router;
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
use crate::pages::kit::action::Action;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit, show};
use crate::pages::{KEYS, Pages};

const PATH: &str = "/settings/ingest";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(show::<IngestPage, ()>))
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

impl Load<()> for IngestPage {
    async fn load(visit: &Visit) -> Result<Self, Refusal> {
        let before = visit.query.text("before").parse().ok();
        let found = visit.read(KEYS, move |snapshot, _| ingest::page(snapshot, before));
        let Shown { frame, reply: (Keys { ingest, inbound }, rejects) } = found.await?;
        Ok(Self { frame, ingest_key: ingest, inbound_key: inbound, rejects, made: None })
    }
}

impl IngestPage {
    const MAX_EVENTS: usize = MAX_EVENTS;
    const MAX_OF_BATCH: usize = MAX_REJECTS_OF_BATCH;
    const MAX_KEPT: usize = MAX_REJECTS_KEPT;

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

async fn rotate_ingest_key(action: Action) -> Result<Response, Refusal> {
    rotate(&action, Key::Ingest).await
}

async fn rotate_inbound_key(action: Action) -> Result<Response, Refusal> {
    rotate(&action, Key::Inbound).await
}

async fn rotate(action: &Action, key: Key) -> Result<Response, Refusal> {
    let made = action.act::<IngestPage, _>(RotateKey(key)).await?;
    let page = IngestPage::load(action).await?;
    Ok(IngestPage { made: Some((key, made.text)), ..page }.respond())
}
