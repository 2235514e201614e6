//! Requests that a check turned away, in the log: credentials that aren't valid, forms from other sites, requests over a
//! limit, and invalid input from programs.
//!
//! A network gets a line a minute for each check, with how many there were since the line before, so that a flood of
//! requests doesn't become a flood of lines. Each process counts for itself.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::edge::rate_limit::network;

const BETWEEN_LINES: Duration = Duration::from_mins(1);
/// How many networks and checks have lines of their own. All others share one for each check.
const MAX_REMEMBERED: usize = 1_000;
/// Nothing is waiting for its line.
const NEVER: u64 = u64::MAX;

/// The check that turned a request away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Check {
    /// The token or key isn't valid.
    Credential,
    /// The form was sent from another site.
    Site,
    /// There were too many requests, attempts or mails.
    Limit,
    /// A program sent something that we don't accept.
    Input,
}

impl Check {
    const fn message(self) -> &'static str {
        match self {
            Self::Credential => "credential refused",
            Self::Site => "form from another site refused",
            Self::Limit => "request over a limit refused",
            Self::Input => "invalid input refused",
        }
    }
}

/// Several requests that one check turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Several {
    check: Check,
    /// `None` stands for all networks without a line of their own.
    network: Option<IpAddr>,
    count: u64,
}

/// What was turned away during the last minute. Times are those of `App::passed`.
pub struct TurnedAway {
    /// When the next line may be due, in milliseconds. Most requests read nothing else.
    due: AtomicU64,
    seen: Mutex<HashMap<(Check, Option<IpAddr>), Seen>>,
}

struct Seen {
    /// When the last line was written.
    line_at: Duration,
    /// How many there were since.
    more: u64,
}

impl Default for TurnedAway {
    fn default() -> Self {
        Self { due: AtomicU64::new(NEVER), seen: Mutex::default() }
    }
}

impl TurnedAway {
    /// Logs a request, unless its network had a line a moment ago. Then it is counted for the next one.
    pub fn log(&self, check: Check, client: IpAddr, now: Duration) {
        if self.is_first(check, client, now) {
            tracing::info!(client = %client.to_canonical(), count = 1, "{}", check.message());
        }
    }

    /// Logs what was counted, once its minute is over. Every request calls this, whatever it is about.
    pub fn catch_up(&self, now: impl FnOnce() -> Duration) {
        if self.due.load(Ordering::Relaxed) == NEVER {
            return;
        }
        for Several { check, network, count } in self.waiting(now()) {
            tracing::info!(client = network.map(tracing::field::display), count, "{}", check.message());
        }
    }

    fn is_first(&self, check: Check, client: IpAddr, now: Duration) -> bool {
        let mut seen = self.seen.lock();
        let own = (check, Some(network(client)));
        let is_crowded = seen.len() >= MAX_REMEMBERED && !seen.contains_key(&own);
        let is_first = match seen.entry(if is_crowded { (check, None) } else { own }) {
            Entry::Occupied(mut place) => {
                place.get_mut().more += 1;
                false
            }
            Entry::Vacant(place) => {
                place.insert(Seen { line_at: now, more: 0 });
                true
            }
        };
        self.due.fetch_min(millis(now + BETWEEN_LINES), Ordering::Relaxed);
        is_first
    }

    /// Takes what waits for a line that is due, and forgets the networks that had no more.
    fn waiting(&self, now: Duration) -> Vec<Several> {
        let mut waiting = Vec::new();
        if millis(now) < self.due.load(Ordering::Relaxed) {
            return waiting;
        }
        let mut seen = self.seen.lock();
        seen.retain(|(check, network), seen| {
            if seen.line_at + BETWEEN_LINES > now {
                return true;
            }
            let count = std::mem::take(&mut seen.more);
            if count > 0 {
                waiting.push(Several { check: *check, network: *network, count });
                seen.line_at = now;
            }
            count > 0
        });
        let next = seen.values().map(|seen| millis(seen.line_at + BETWEEN_LINES)).min();
        self.due.store(next.unwrap_or(NEVER), Ordering::Relaxed);
        waiting
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const START: Duration = Duration::from_hours(1);
    const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn after(seconds: u64) -> Duration {
        START + Duration::from_secs(seconds)
    }

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    fn several(check: Check, network: Option<IpAddr>, count: u64) -> Several {
        Several { check, network, count }
    }

    #[test]
    fn a_network_has_one_line_a_minute_for_each_check_and_nothing_is_lost() {
        let turned = TurnedAway::default();
        assert!(turned.is_first(Check::Credential, HOME, START));
        assert!(turned.is_first(Check::Limit, HOME, START), "another check");
        assert!(turned.is_first(Check::Credential, address(7), START), "another network");
        for second in 1..=500 {
            assert!(!turned.is_first(Check::Credential, HOME, START + Duration::from_millis(second * 100)));
        }
        assert_eq!(turned.waiting(after(59)), []);
        assert_eq!(turned.waiting(after(60)), [several(Check::Credential, Some(HOME), 500)]);
        assert!(!turned.is_first(Check::Credential, HOME, after(61)), "it just had its line");
        assert!(turned.is_first(Check::Limit, HOME, after(61)), "that minute is over");
        assert_eq!(turned.waiting(after(119)), []);
        assert_eq!(turned.waiting(after(120)), [several(Check::Credential, Some(HOME), 1)]);
        assert_eq!(turned.waiting(after(300)), []);
        assert!(turned.seen.lock().is_empty());
        assert_eq!(turned.due.load(Ordering::Relaxed), NEVER);
        assert!(turned.is_first(Check::Credential, HOME, after(301)));
    }

    #[test]
    fn networks_are_those_of_the_limits() {
        let turned = TurnedAway::default();
        let [one, other]: [IpAddr; 2] = ["2001:db8::1", "2001:db8::2"].map(|text| text.parse().unwrap());
        assert!(turned.is_first(Check::Limit, one, START));
        assert!(!turned.is_first(Check::Limit, other, START));
        let network: IpAddr = "2001:db8::".parse().unwrap();
        assert_eq!(turned.waiting(after(60)), [several(Check::Limit, Some(network), 1)]);
    }

    #[test]
    fn many_networks_share_a_line() {
        let turned = TurnedAway::default();
        let most = u32::try_from(MAX_REMEMBERED).unwrap();
        assert!((0..most).all(|number| turned.is_first(Check::Limit, address(number), START)));
        let lines = (most..2 * most).filter(|number| turned.is_first(Check::Limit, address(*number), START));
        assert_eq!(lines.count(), 1);
        let rest = u64::from(most) - 1;
        assert_eq!(turned.waiting(after(60)), [several(Check::Limit, None, rest)]);
        assert_eq!(turned.seen.lock().len(), 1);
    }
}
