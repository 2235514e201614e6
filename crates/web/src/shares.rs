//! What all clients share, divided so that none of them can take all of it.
//!
//! Behind a proxy every client has the proxy's address, so the share of an address is a large part of the whole: it
//! keeps one client from shutting out all others, and is no limit for a company.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// What one client may have of something that there is `total` of: half, so that others find the rest.
pub fn half(total: usize) -> usize {
    (total / 2).max(1)
}

/// The places of each client, by what tells clients apart.
pub struct Shares<K> {
    each: usize,
    clients: Mutex<Clients<K>>,
}

struct Clients<K> {
    /// A client is forgotten some time after its last place was given back.
    places: HashMap<K, Weak<Semaphore>>,
    /// At this many the forgotten ones are removed.
    crowded: usize,
}

const FIRST_CLEANUP: usize = 64;

impl<K: Eq + Hash> Shares<K> {
    /// Every client gets so many places.
    pub fn new(each: usize) -> Self {
        Self { each, clients: Mutex::new(Clients { places: HashMap::new(), crowded: FIRST_CLEANUP }) }
    }

    /// The places of a client.
    pub fn of(&self, client: K) -> Arc<Semaphore> {
        let mut clients = self.clients.lock();
        if let Some(places) = clients.places.get(&client).and_then(Weak::upgrade) {
            return places;
        }
        if clients.places.len() >= clients.crowded {
            clients.places.retain(|_, places| places.strong_count() > 0);
            clients.crowded = (clients.places.len() * 2).max(FIRST_CLEANUP);
        }
        let places = Arc::new(Semaphore::new(self.each));
        clients.places.insert(client, Arc::downgrade(&places));
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_its_share_and_no_more_until_it_gives_some_back() {
        let shares = Shares::new(2);
        let mut held: Vec<_> = (0..2).map(|_| shares.of("a").try_acquire_owned().expect("a place")).collect();
        assert!(shares.of("a").try_acquire_owned().is_err());
        assert!(shares.of("b").try_acquire_owned().is_ok(), "another one has its own");
        held.pop();
        assert!(shares.of("a").try_acquire_owned().is_ok());
    }

    #[test]
    fn clients_that_hold_nothing_are_forgotten() {
        let shares = Shares::new(1);
        let held: Vec<_> = (0..10).map(|client| shares.of(client).try_acquire_owned()).collect();
        for client in 10..10_000 {
            drop(shares.of(client).try_acquire_owned());
        }
        assert!(shares.clients.lock().places.len() <= FIRST_CLEANUP);
        assert!(shares.of(0).try_acquire_owned().is_err(), "those who hold something are not");
        drop(held);
    }
}
