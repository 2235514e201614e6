//! Shares of a limited resource, so that no client can use all of it.
//!
//! Many people may share an address, such as an office or a proxy that isn't trusted to tell theirs, so each address
//! gets a large share. That keeps one client from shutting out all others without limiting a company in practice.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// One client's share of `total`: half, so that the rest is left for others.
pub fn half(total: usize) -> usize {
    (total / 2).max(1)
}

/// The places of each client, by a key that identifies the client.
pub struct Shares<K> {
    each: usize,
    clients: Mutex<Clients<K>>,
}

struct Clients<K> {
    /// A client is removed some time after it returns its last place.
    places: HashMap<K, Weak<Semaphore>>,
    /// Unused clients are removed when there are this many.
    crowded: usize,
}

const FIRST_CLEANUP: usize = 64;

impl<K: Eq + Hash> Shares<K> {
    /// Gives every client `each` places.
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
    fn a_client_gets_no_more_than_its_share_until_it_returns_some() {
        let shares = Shares::new(2);
        let mut held: Vec<_> = (0..2).map(|_| shares.of("a").try_acquire_owned().expect("a place")).collect();
        assert!(shares.of("a").try_acquire_owned().is_err());
        assert!(shares.of("b").try_acquire_owned().is_ok(), "other clients have their own share");
        held.pop();
        assert!(shares.of("a").try_acquire_owned().is_ok());
    }

    #[test]
    fn clients_without_places_are_removed() {
        let shares = Shares::new(1);
        let held: Vec<_> = (0..10).map(|client| shares.of(client).try_acquire_owned()).collect();
        for client in 10..10_000 {
            drop(shares.of(client).try_acquire_owned());
        }
        assert!(shares.clients.lock().places.len() <= FIRST_CLEANUP);
        assert!(shares.of(0).try_acquire_owned().is_err(), "clients that hold a place are kept");
        drop(held);
    }
}
