//! The sender: from a committed delivery to a recorded attempt.
//!
//! One task owns the lanes and decides (`state`); attempts run as separate tasks (`attempt`). A commit hands
//! its deliveries over in memory, so the normal path needs no query. Deliveries without a place wait in the
//! database and are claimed when their webhook has room; so are retries, and what a dead node held.
//!
//! A request's slot is freed when the receiver has accepted it, its place in memory when the outcome is
//! committed: a slow disk limits memory, not the receivers' concurrency. After a failure the slot also waits
//! for the commit, because the twentieth in a row is the last.

mod attempt;
mod gathering;
mod state;
mod target;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use rapport_app::delivery::Recorded;
use rapport_app::dispatch::{Asking, Dispatch, Owned, Place, Sender};
use rapport_app::{Access, App, patiently};
use rapport_domain::delivery::Verdict;
use rapport_domain::id::{CompanyId, RedeliveryId, WebhookId};
use rapport_domain::standing::Standing;
use rapport_domain::time::Time;
use rapport_store::webhook;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::client::Client;
use crate::fan_out;
use crate::flights::{Slots, Ticket};
use crate::housekeeping;
use crate::lanes::{Item, Key, Lanes};
use crate::nodes::{Heartbeat, RegisterNode};
use crate::places::Gates;
use state::State;
use target::Target;

#[derive(Debug, Clone)]
pub struct Config {
    /// How many requests to healthy and new receivers may be in progress at once.
    pub slots: usize,
    /// How often due times are checked.
    pub tick: Duration,
    /// How often the database is searched for work this node doesn't know of.
    pub sweep: Duration,
    /// Whether a lock proves this to be the only node on its database, so that earlier incarnations are dead.
    pub alone: bool,
    /// The place this node runs from. The caller proves with a lock that no other process has it, so that
    /// earlier incarnations of the place are dead.
    pub identity: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            slots: 1024,
            tick: Duration::from_millis(100),
            sweep: Duration::from_secs(3),
            alone: false,
            identity: None,
        }
    }
}

impl Config {
    /// The most connections to receivers that can be open at once, including those that hang.
    pub fn most_connections(&self) -> usize {
        Slots { total: self.slots }.most_connections()
    }
}

/// Starts sending. It stops when `stop` is cancelled; await `tasks` for the rest.
pub async fn start(
    app: &App,
    client: Arc<Client>,
    config: Config,
    stop: CancellationToken,
    tasks: &TaskTracker,
) -> Result<(), rapport_app::Error> {
    let (identity, alone) = (config.identity.clone(), config.alone);
    let register = || RegisterNode { identity: identity.clone(), alone };
    let node = patiently(|| app.write(&Access::NO_COMPANY, register())).await?;
    let (mail, inbox) = mpsc::unbounded_channel();
    let gates = Arc::new(Gates::default());
    let mut lanes = Lanes::new(Slots { total: config.slots });
    for (company, webhook, standing) in patiently(|| app.read_across(webhook::standings)).await? {
        lanes.remember((company, webhook), standing);
        gates.set(webhook, false, standing);
    }
    let post_office = PostOffice { node, mail: mail.clone(), gates: Arc::clone(&gates) };
    app.services().set_sender(Arc::new(post_office));
    let beat = Heartbeat::new(node, alone, identity);
    let surroundings = housekeeping::Surroundings {
        app: app.clone(),
        beat: beat.clone(),
        gates: Arc::clone(&gates),
        mail: mail.clone(),
    };
    tasks.spawn(surroundings.run(config.sweep, stop.clone()));
    tasks.spawn(fan_out::run(app.clone(), stop.clone(), config.sweep));
    let state = State::new(app.clone(), client, node, lanes, gates, mail, beat);
    tasks.spawn(state.run(inbox, config.tick, stop));
    Ok(())
}

/// A message to the sender.
pub enum Message {
    HandOver(Vec<(Dispatch, Place)>),
    /// Something waits in the database, or the webhook was enabled or disabled.
    Wake(Key),
    WakeManual(CompanyId),
    /// Something of this webhook is due at that time.
    Due(Key, Time),
    Answered {
        key: Key,
        ticket: Ticket,
        verdict: Verdict,
    },
    Recorded {
        key: Key,
        ticket: Ticket,
        verdict: Verdict,
        recorded: Option<Recorded>,
    },
    Claimed {
        key: Key,
        items: Vec<Item>,
        more: bool,
        next_due: Option<Time>,
    },
    ClaimedManual {
        company: CompanyId,
        items: Vec<Item>,
        more: bool,
    },
    /// The read for a round of dispatches: what must be known right before they are sent.
    Ready {
        items: Vec<(Ticket, Item)>,
        checked: Checked,
    },
    /// The read failed: the items go back to their lanes.
    NotReady {
        items: Vec<(Ticket, Item)>,
    },
}

/// The current webhooks of a round of dispatches, and which of its manual attempts are still wanted.
#[derive(Default)]
pub struct Checked {
    pub targets: HashMap<WebhookId, Arc<Target>>,
    pub wanted: HashSet<RedeliveryId>,
    pub cancelled: HashSet<RedeliveryId>,
}

/// The sender as commands see it.
struct PostOffice {
    node: i64,
    mail: mpsc::UnboundedSender<Message>,
    gates: Arc<Gates>,
}

impl Sender for PostOffice {
    fn node(&self) -> i64 {
        self.node
    }

    fn reserve(&self, company: CompanyId, webhook: WebhookId, owned: Owned, asking: Asking) -> Option<Place> {
        self.gates.reserve(company, webhook, owned, asking)
    }

    fn standing(&self, webhook: WebhookId) -> Standing {
        self.gates.standing(webhook)
    }

    fn holds(&self, owned: Owned) -> bool {
        self.gates.holds(owned)
    }

    fn hand_over(&self, dispatches: Vec<(Dispatch, Place)>) {
        if !dispatches.is_empty() {
            let _ = self.mail.send(Message::HandOver(dispatches));
        }
    }

    fn wake(&self, company: CompanyId, webhook: WebhookId) {
        let _ = self.mail.send(Message::Wake((company, webhook)));
    }

    fn wake_manual(&self, company: CompanyId) {
        let _ = self.mail.send(Message::WakeManual(company));
    }
}
