//! Requests in progress, and the pools they count against.
//!
//! Proven, new and failing receivers have separate pools, so that none waits for another's slots. A request
//! that takes long moves from its pool to the slow one: a receiver that hangs costs a socket for a while, but
//! no slot that a healthy one could use. Requests made by people (tests, single redeliveries) have a small
//! pool that nothing else touches. One company gets at most half of every pool except the proven one.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rapport_domain::id::CompanyId;
use rapport_domain::standing::Standing;

use crate::lanes::Key;

/// How many requests may be in progress at once.
#[derive(Debug, Clone, Copy)]
pub struct Slots {
    pub total: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    Proven,
    New,
    Failing,
    Urgent,
    Slow,
}

const POOLS: usize = 5;

impl From<Standing> for Pool {
    fn from(standing: Standing) -> Self {
        match standing {
            Standing::Proven => Self::Proven,
            Standing::New => Self::New,
            Standing::Failing => Self::Failing,
        }
    }
}

impl Slots {
    fn most(self, pool: Pool) -> usize {
        let most = match pool {
            Pool::Proven => self.total,
            Pool::New => self.total / 4,
            Pool::Failing => self.total / 2,
            Pool::Urgent => self.total / 16,
            Pool::Slow => self.total * 2,
        };
        most.max(1)
    }

    fn most_of_company(self, pool: Pool) -> usize {
        let most = self.most(pool);
        if pool == Pool::Proven { most } else { (most / 2).max(1) }
    }

    /// The most sockets that requests can use: new and proven ones share `total`.
    pub fn most_connections(self) -> usize {
        self.total
            + [Pool::Failing, Pool::Urgent, Pool::Slow].map(|pool| self.most(pool)).iter().sum::<usize>()
    }
}

/// Identifies a request in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(u64);

#[derive(Debug, Clone, Copy)]
pub struct Flight {
    pub key: Key,
    pub pool: Pool,
    pub urgent: bool,
    pub since: Instant,
}

pub struct Flights {
    slots: Slots,
    under_way: HashMap<Ticket, Flight>,
    counts: [usize; POOLS],
    of_company: HashMap<CompanyId, [usize; POOLS]>,
    started: u64,
}

impl Flights {
    pub fn new(slots: Slots) -> Self {
        Self { slots, under_way: HashMap::new(), counts: [0; POOLS], of_company: HashMap::new(), started: 0 }
    }

    /// Whether a company may have one more request in a pool.
    pub fn has_room(&self, company: CompanyId, pool: Pool) -> bool {
        let shared = self.counts[Pool::Proven as usize] + self.counts[Pool::New as usize];
        if matches!(pool, Pool::Proven | Pool::New) && shared >= self.slots.total {
            return false;
        }
        let of_company = self.of_company.get(&company).map_or(0, |counts| counts[pool as usize]);
        self.counts[pool as usize] < self.slots.most(pool) && of_company < self.slots.most_of_company(pool)
    }

    pub fn start(&mut self, key: Key, pool: Pool, now: Instant) -> Ticket {
        self.started += 1;
        let ticket = Ticket(self.started);
        self.under_way.insert(ticket, Flight { key, pool, urgent: pool == Pool::Urgent, since: now });
        self.count(key.0, pool);
        ticket
    }

    pub fn get(&self, ticket: Ticket) -> Option<Flight> {
        self.under_way.get(&ticket).copied()
    }

    pub fn end(&mut self, ticket: Ticket) -> Option<Flight> {
        let flight = self.under_way.remove(&ticket)?;
        self.discount(flight.key.0, flight.pool);
        Some(flight)
    }

    /// Moves requests that take longer than `limit` to the slow pool, as far as it has room. Returns their
    /// webhooks and whether a person waits for them. Failing receivers are expected to be slow and stay in
    /// their pool.
    pub fn set_slow_aside(&mut self, now: Instant, limit: impl Fn(Key) -> Duration) -> Vec<(Key, bool)> {
        let is_late = |flight: &Flight| {
            !matches!(flight.pool, Pool::Slow | Pool::Failing) && now - flight.since >= limit(flight.key)
        };
        let late = self.under_way.iter().filter(|(_, flight)| is_late(flight));
        let late: Vec<(Ticket, Flight)> = late.map(|(ticket, flight)| (*ticket, *flight)).collect();
        let mut moved = Vec::with_capacity(late.len());
        for (ticket, flight) in late {
            if !self.has_room(flight.key.0, Pool::Slow) {
                continue;
            }
            self.discount(flight.key.0, flight.pool);
            self.count(flight.key.0, Pool::Slow);
            if let Some(flight) = self.under_way.get_mut(&ticket) {
                flight.pool = Pool::Slow;
            }
            moved.push((flight.key, flight.urgent));
        }
        moved
    }

    fn count(&mut self, company: CompanyId, pool: Pool) {
        self.counts[pool as usize] += 1;
        self.of_company.entry(company).or_default()[pool as usize] += 1;
    }

    fn discount(&mut self, company: CompanyId, pool: Pool) {
        self.counts[pool as usize] -= 1;
        if let Some(counts) = self.of_company.get_mut(&company) {
            counts[pool as usize] -= 1;
            if *counts == [0; POOLS] {
                self.of_company.remove(&company);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rapport_domain::id::WebhookId;

    use super::*;

    fn key(company: i64) -> Key {
        (CompanyId(company), WebhookId::from_bytes([1; 16]))
    }

    fn fill(flights: &mut Flights, company: i64, pool: Pool, now: Instant) -> usize {
        let mut started = 0;
        while flights.has_room(CompanyId(company), pool) {
            flights.start(key(company), pool, now);
            started += 1;
        }
        started
    }

    #[test]
    fn a_company_has_at_most_half_of_what_new_failing_and_urgent_requests_may_take() {
        let now = Instant::now();
        let mut flights = Flights::new(Slots { total: 64 });
        for (pool, most) in [(Pool::New, 16), (Pool::Failing, 32), (Pool::Urgent, 4)] {
            assert_eq!(fill(&mut flights, 1, pool, now), most / 2, "{pool:?}");
            assert_eq!(fill(&mut flights, 2, pool, now), most / 2, "{pool:?}");
            assert_eq!(fill(&mut flights, 3, pool, now), 0, "{pool:?}");
        }
        assert_eq!(fill(&mut flights, 1, Pool::Proven, now), 64 - 16, "proven receivers get all the rest");
    }

    #[test]
    fn a_slow_request_makes_room_in_its_pool() {
        let now = Instant::now();
        let mut flights = Flights::new(Slots { total: 64 });
        assert_eq!(fill(&mut flights, 1, Pool::New, now), 8);
        let limit = |_| Duration::from_secs(1);
        assert!(flights.set_slow_aside(now, limit).is_empty());
        assert_eq!(flights.set_slow_aside(now + Duration::from_secs(1), limit).len(), 8);
        assert_eq!(fill(&mut flights, 1, Pool::New, now), 8);
        let ended: Vec<Ticket> = flights.under_way.keys().copied().collect();
        for ticket in ended {
            flights.end(ticket);
        }
        assert_eq!((flights.counts, flights.of_company.len()), ([0; POOLS], 0));
    }

    #[test]
    fn slow_requests_are_bounded_too() {
        let now = Instant::now();
        let mut flights = Flights::new(Slots { total: 8 });
        let later = now + Duration::from_secs(1);
        for _ in 0..50 {
            fill(&mut flights, 1, Pool::New, now);
            flights.set_slow_aside(later, |_| Duration::from_secs(1));
        }
        assert_eq!(flights.counts[Pool::Slow as usize], 8, "half of sixteen");
        assert!(!flights.has_room(CompanyId(1), Pool::New));
        assert!(flights.has_room(CompanyId(2), Pool::New));
    }
}
