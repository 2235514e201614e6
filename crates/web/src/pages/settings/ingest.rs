//! The ingest and inbound keys, examples of how to use them, what late events do, and recently rejected events.

use askama::Template;
use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::credential::{Key, RotateKey};
use rapport_app::read::Page;
use rapport_app::read::credential::Keys;
use rapport_app::read::ingest::{self, Reject};
use rapport_app::settings::PatchSettings;
use rapport_domain::activity::{MAX_EVENTS, MAX_REJECTS_KEPT, MAX_REJECTS_OF_BATCH};
use rapport_domain::credential::Credential;
use rapport_domain::id::RejectId;

use super::{back_to, tabbed};
use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::As;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit, show};
use crate::pages::{KEYS, Pages};

const PATH: &str = "/settings/ingest";
const LATE_EVENTS: &str = "late_events_move";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(show::<IngestPage, ()>).post(save))
        .route("/settings/ingest/key", post(rotate_ingest_key).merge(back_to(PATH)))
        .route("/settings/ingest/inbound-key", post(rotate_inbound_key).merge(back_to(PATH)))
}

#[derive(Template)]
#[template(path = "settings/ingest.html")]
struct IngestPage {
    frame: Frame,
    draft: Draft,
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
        let late_events_move = frame.company.settings.late_events_move;
        let draft = Draft::new(late_events_move.then(|| (LATE_EVENTS, "yes".to_owned())));
        Ok(Self { frame, draft, ingest_key: ingest, inbound_key: inbound, rejects, made: None })
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

async fn save(action: Action) -> Result<Response, Refusal> {
    let command = PatchSettings(action.form.members(&[(LATE_EVENTS, As::Ticked)]));
    action.send(command, |page: &mut IngestPage, draft| page.draft = draft).await?;
    action.done(PATH, "Ingest settings saved.")
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
