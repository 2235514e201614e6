//! A sender without a free place, for tests of who is asked to send.

use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;
use rapport_app::dispatch::{Asking, Dispatch, Owned, Place, Sender};
use rapport_domain::id::{CompanyId, WebhookId};
use rapport_domain::standing::Standing;
use rapport_testkit::TestApp;

#[derive(Default)]
pub struct FullHouse {
    asked: Mutex<BTreeSet<WebhookId>>,
    standings: Mutex<HashMap<WebhookId, Standing>>,
}

impl FullHouse {
    /// The sender of this application from now on.
    pub fn of(app: &TestApp) -> Arc<Self> {
        let sender = Arc::new(Self::default());
        app.app().services().set_sender(Arc::clone(&sender) as Arc<dyn Sender>);
        sender
    }

    /// The webhooks it was asked to send to since the last call.
    pub fn take_asked(&self) -> BTreeSet<WebhookId> {
        mem::take(&mut *self.asked.lock())
    }

    pub fn knows(&self, webhook: WebhookId, standing: Standing) {
        self.standings.lock().insert(webhook, standing);
    }
}

impl Sender for FullHouse {
    fn node(&self) -> i64 {
        1
    }

    fn reserve(&self, _: CompanyId, webhook: WebhookId, _: Owned, _: Asking) -> Option<Place> {
        self.asked.lock().insert(webhook);
        None
    }

    fn standing(&self, webhook: WebhookId) -> Standing {
        self.standings.lock().get(&webhook).copied().unwrap_or(Standing::New)
    }

    fn holds(&self, _: Owned) -> bool {
        false
    }

    fn hand_over(&self, _: Vec<(Dispatch, Place)>) {}

    fn wake(&self, _: CompanyId, _: WebhookId) {}

    fn wake_manual(&self, _: CompanyId) {}
}
