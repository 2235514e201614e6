//! This node among the others: how it shows that it is alive, and how it detects dead nodes.
//!
//! No clock is compared with another machine's. A beat changes a number in the table; to an observer, a node
//! is dead if that number hasn't changed for a while by the observer's own monotonic clock. A skewed clock, a
//! clock step or a database that moved to another machine can't make a live node look dead.
//!
//! The price is that an observer must have watched for that while. A node that was restarted alone would
//! always pay it, so a node stores the name of its place in the table (see `Config::identity`), and the next
//! incarnation at that place forgets it at once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rapport_app::{Access, App, Command, Context, Error, Needs};
use rapport_store::{Lane, Tx, node};

/// A node whose beat hasn't changed for this long is dead to the others; it stops sending a little earlier.
const DEAD_AFTER: Duration = Duration::from_secs(10);
const STOP_SENDING_AFTER: Duration = Duration::from_secs(8);
const FORGET_AFTER: Duration = Duration::from_hours(1);

/// Registers a new incarnation.
pub struct RegisterNode {
    pub identity: Option<String>,
    /// Whether it proved to be the only node of its database.
    pub alone: bool,
}

impl Command for RegisterNode {
    type Reply = i64;
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<i64, Error> {
        if self.alone {
            node::forget_all(tx)?;
        } else if let Some(identity) = &self.identity {
            node::forget_former(tx, identity)?;
        }
        Ok(node::register(tx, self.identity.as_deref(), cx.now)?)
    }
}

struct Beat {
    node: i64,
    identity: Option<String>,
}

impl Command for Beat {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Outcome;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        Ok(node::beat(tx, self.node, self.identity.as_deref(), cx.now)?)
    }
}

/// Removes a node that has been silent for long.
struct ForgetNode(node::Beat);

impl Command for ForgetNode {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<(), Error> {
        Ok(node::forget(tx, self.0)?)
    }
}

/// Whether the other nodes consider this node alive.
#[derive(Clone)]
pub struct Heartbeat {
    pub node: i64,
    pub alone: bool,
    identity: Option<String>,
    last: Arc<Mutex<Instant>>,
}

impl Heartbeat {
    pub fn new(node: i64, alone: bool, identity: Option<String>) -> Self {
        Self { node, alone, identity, last: Arc::new(Mutex::new(Instant::now())) }
    }

    /// A node past its own deadline starts nothing, because another may have taken over.
    pub fn may_send(&self) -> bool {
        self.alone || self.last.lock().elapsed() < STOP_SENDING_AFTER
    }

    /// Beats, if there may be others. A node alone also beats while the database fails: only a successful
    /// write ends an outage, and clients may not send one to a service that isn't ready.
    pub async fn beat(&self, app: &App) -> Result<(), Error> {
        if self.alone && app.store().health().is_ok() {
            return Ok(());
        }
        // The time it was sent, not stored: others may have seen it since then.
        let sent = Instant::now();
        let beat = Beat { node: self.node, identity: self.identity.clone() };
        app.write(&Access::NO_COMPANY, beat).await?;
        *self.last.lock() = sent;
        Ok(())
    }
}

/// What this node has seen of the others.
#[derive(Default)]
pub struct Watch {
    seen: HashMap<i64, Seen>,
}

struct Seen {
    beat: i64,
    /// When it was first seen, by this node's own clock.
    since: Duration,
}

impl Watch {
    /// Reads the table and returns the live nodes, `own` being this node.
    pub async fn alive(&mut self, app: &App, own: i64) -> Result<HashSet<i64>, Error> {
        let mut beats = app.read_across(node::beats).await?;
        beats.retain(|beat| beat.node != own);
        let now = app.passed();
        self.look(&beats, now);
        for silent in self.silent_for(now, FORGET_AFTER) {
            app.write(&Access::NO_COMPANY, ForgetNode(silent)).await?;
        }
        let dead: HashSet<i64> = self.silent_for(now, DEAD_AFTER).map(|silent| silent.node).collect();
        Ok(self.seen.keys().copied().filter(|node| !dead.contains(node)).collect())
    }

    fn look(&mut self, beats: &[node::Beat], now: Duration) {
        let there: HashSet<i64> = beats.iter().map(|beat| beat.node).collect();
        self.seen.retain(|node, _| there.contains(node));
        for &node::Beat { node, beat } in beats {
            let seen = self.seen.entry(node).or_insert(Seen { beat, since: now });
            if seen.beat != beat {
                *seen = Seen { beat, since: now };
            }
        }
    }

    fn silent_for(&self, now: Duration, limit: Duration) -> impl Iterator<Item = node::Beat> + '_ {
        let silent = move |seen: &Seen| now.saturating_sub(seen.since) >= limit;
        let silent = self.seen.iter().filter(move |(_, seen)| silent(seen));
        silent.map(|(&node, seen)| node::Beat { node, beat: seen.beat })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(watch: &Watch, seconds: u64) -> Vec<i64> {
        let mut dead: Vec<i64> =
            watch.silent_for(Duration::from_secs(seconds), DEAD_AFTER).map(|silent| silent.node).collect();
        dead.sort_unstable();
        dead
    }

    fn look(watch: &mut Watch, seconds: u64, beats: &[(i64, i64)]) {
        let beats: Vec<node::Beat> = beats.iter().map(|&(node, beat)| node::Beat { node, beat }).collect();
        watch.look(&beats, Duration::from_secs(seconds));
    }

    #[test]
    fn a_node_is_dead_when_its_beat_has_not_changed_for_ten_seconds_of_watching() {
        let mut watch = Watch::default();
        // The clocks behind these beats are years apart; all that counts is whether they change.
        look(&mut watch, 100, &[(1, 5), (2, 9_000_000)]);
        assert_eq!(dead(&watch, 109), Vec::<i64>::new());
        look(&mut watch, 109, &[(1, 6), (2, 9_000_000)]);
        assert_eq!(dead(&watch, 110), [2]);
        // A clock that was set back still beats.
        look(&mut watch, 111, &[(1, 6), (2, 1)]);
        assert_eq!(dead(&watch, 118), Vec::<i64>::new());
        assert_eq!(dead(&watch, 119), [1]);
        look(&mut watch, 119, &[(1, 6)]);
        look(&mut watch, 120, &[(1, 7), (2, 1)]);
        assert_eq!(dead(&watch, 129), Vec::<i64>::new(), "a node that comes back is watched anew");
    }
}
