//! The open live streams, limited in total, per address and per session.
//!
//! When a session opens one too many, its oldest stream ends with a message that says so. The newest is the page that a
//! person just opened or came back to. A page that lost its stream doesn't ask for another one until they come back to
//! it, so pages never compete for streams; until then it polls.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use rapport_domain::credential::SecretHash;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::edge::shares::{Shares, half};

/// A browser keeps at most six connections to a host over HTTP/1.1, so four streams leave two for its pages.
const PER_SESSION: usize = 4;

pub struct Streams {
    all: Arc<Semaphore>,
    addresses: Shares<IpAddr>,
    sessions: Arc<Mutex<Sessions>>,
}

#[derive(Default)]
struct Sessions {
    /// The open streams of each session, oldest first.
    open: HashMap<SecretHash, VecDeque<Open>>,
    next: u64,
}

struct Open {
    number: u64,
    over: CancellationToken,
    places: Places,
}

type Places = [OwnedSemaphorePermit; 2];

/// An open stream. Dropping it gives its place back.
pub struct Stream {
    session: SecretHash,
    number: u64,
    /// Cancelled when a newer stream of the session replaces it.
    pub over: CancellationToken,
    sessions: Arc<Mutex<Sessions>>,
}

impl Streams {
    pub fn new(total: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(total)),
            addresses: Shares::new(half(total)),
            sessions: Arc::default(),
        }
    }

    /// Opens a stream for a session, and ends its oldest if it has too many. None if there is no place left.
    pub fn open(&self, session: SecretHash, address: IpAddr) -> Option<Stream> {
        let mut sessions = self.sessions.lock();
        let oldest = match sessions.open.get_mut(&session) {
            Some(open) if open.len() >= PER_SESSION => open.pop_front(),
            _ => None,
        };
        // Its place is free immediately, even if its connection ends later.
        if let Some(Open { over, places, .. }) = oldest {
            over.cancel();
            drop(places);
        }
        let places = [
            Arc::clone(&self.all).try_acquire_owned().ok()?,
            self.addresses.of(address).try_acquire_owned().ok()?,
        ];
        let (number, over) = (sessions.next, CancellationToken::new());
        sessions.next += 1;
        sessions.open.entry(session).or_default().push_back(Open { number, over: over.clone(), places });
        Some(Stream { session, number, over, sessions: Arc::clone(&self.sessions) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut sessions = self.sessions.lock();
        if let Some(open) = sessions.open.get_mut(&self.session) {
            open.retain(|other| other.number != self.number);
            if open.is_empty() {
                sessions.open.remove(&self.session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const AWAY: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

    fn session(number: u8) -> SecretHash {
        SecretHash::from_bytes([number; 32])
    }

    #[test]
    fn a_session_keeps_its_newest_streams() {
        let streams = Streams::new(100);
        let open: Vec<Stream> =
            (0..=PER_SESSION).map(|_| streams.open(session(1), HOME).expect("a place")).collect();
        let other = streams.open(session(2), HOME).expect("a place");
        let over: Vec<bool> = open.iter().map(|stream| stream.over.is_cancelled()).collect();
        assert_eq!(over, [true, false, false, false, false]);
        assert!(!other.over.is_cancelled(), "another session is not affected");
        drop(open);
        drop(other);
        assert!(streams.sessions.lock().open.is_empty(), "nothing is left behind");
        assert_eq!(streams.all.available_permits(), 100);
    }

    #[test]
    fn one_session_never_fills_all_places_and_one_address_half_of_them() {
        let streams = Streams::new(8);
        let mine: Vec<Option<Stream>> = (0..1000).map(|_| streams.open(session(1), HOME)).collect();
        assert!(mine.iter().all(Option::is_some), "the newest gets a place");
        assert_eq!(streams.all.available_permits(), 4);
        assert!(streams.open(session(2), HOME).is_none(), "an address may use half of the places");
        let theirs = streams.open(session(2), AWAY);
        assert!(theirs.is_some());
    }
}
