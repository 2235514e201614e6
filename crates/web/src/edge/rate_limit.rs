//! Rate limits: a token bucket per credential, and one per address for callers without a valid one.
//!
//! A credential counts before it is verified, because verifying is the expensive part. Callers who invent
//! credentials are limited by their address: each invalid credential is charged to the address, and once its
//! bucket is empty, only credentials already known to be valid pass.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::{BuildHasher, Hash};
use std::net::IpAddr;

use axum::http::HeaderMap;
use axum::http::header::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use rapport_domain::credential::SecretHash;
use rapport_domain::time::Time;

use crate::edge::guessing::Guessing;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

const SHARDS: usize = 16;
/// About ten megabytes at most in total.
const MAX_BUCKETS_PER_SHARD: usize = 4096;
/// A bucket counts in millionths of a request, so that a rate times microseconds needs no division.
const ONE: i64 = 1_000_000;

/// How fast a bucket fills, and how much it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub per_second: u32,
    pub burst: u32,
}

impl Rate {
    fn capacity(self) -> i64 {
        i64::from(self.burst) * ONE
    }

    fn micros_to_gain(self, level: i64) -> i64 {
        let per_micro = i64::from(self.per_second.max(1));
        (level + per_micro - 1) / per_micro
    }
}

/// What a caller is told about its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub limit: u32,
    pub remaining: u32,
    /// Seconds until the bucket is full.
    pub reset: u64,
}

impl Standing {
    pub fn write(self, headers: &mut HeaderMap) {
        headers.insert(LIMIT, HeaderValue::from(self.limit));
        headers.insert(REMAINING, HeaderValue::from(self.remaining));
        headers.insert(RESET, HeaderValue::from(self.reset));
    }
}

/// Whether a request may proceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Pass(Standing),
    /// Try again after this many seconds.
    Wait(Standing, u64),
}

impl Verdict {
    pub fn standing(self) -> Standing {
        match self {
            Self::Pass(standing) | Self::Wait(standing, _) => standing,
        }
    }
}

pub struct RateLimiter {
    credentials: Buckets<SecretHash>,
    addresses: Buckets<IpAddr>,
    strangers: Buckets<IpAddr>,
    pub guessing: Guessing,
}

impl RateLimiter {
    pub fn new(per_credential: Rate, per_address: Rate, per_stranger: Rate) -> Self {
        Self {
            credentials: Buckets::new(per_credential),
            addresses: Buckets::new(per_address),
            strangers: Buckets::new(per_stranger),
            guessing: Guessing::default(),
        }
    }

    /// Counts a request to a path that anyone may call.
    pub fn admit_stranger(&self, address: IpAddr, now: Time) -> Verdict {
        self.strangers.take(network(address), now).0
    }

    /// Counts a request with a well-formed credential. Also returns whether it is known to be valid.
    pub fn admit_credential(&self, credential: &SecretHash, address: IpAddr, now: Time) -> (Verdict, bool) {
        let (verdict, verified) = self.credentials.take(*credential, now);
        if verified {
            return (verdict, true);
        }
        match self.addresses.look(network(address), now) {
            Verdict::Pass(_) => (verdict, false),
            refused @ Verdict::Wait(..) => (refused, false),
        }
    }

    /// Records whether a credential was valid. An invalid one is charged to the address.
    pub fn settle_credential(&self, credential: &SecretHash, address: IpAddr, valid: bool, now: Time) {
        self.credentials.mark(credential, valid);
        if !valid {
            self.addresses.take(network(address), now);
        }
    }

    /// Counts a request without a well-formed credential.
    pub fn admit_address(&self, address: IpAddr, now: Time) -> Verdict {
        self.addresses.take(network(address), now).0
    }
}

/// An IPv6 subscriber has a whole /64, so all its addresses count as one caller.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        address @ IpAddr::V4(_) => address,
    }
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    level: i64,
    at: Time,
    /// Whether the credential was valid when last used.
    verified: bool,
}

/// Buckets of one rate. Memory is bounded: a full bucket carries no information and is dropped when space is
/// needed.
pub struct Buckets<K> {
    rate: Rate,
    pub hasher: RandomState,
    shards: [Mutex<HashMap<K, Bucket, RandomState>>; SHARDS],
}

impl<K: Copy + Eq + Hash> Buckets<K> {
    pub fn new(rate: Rate) -> Self {
        Self { rate, hasher: RandomState::new(), shards: std::array::from_fn(|_| Mutex::default()) }
    }

    fn shard(&self, key: &K) -> &Mutex<HashMap<K, Bucket, RandomState>> {
        let hash = self.hasher.hash_one(key);
        &self.shards[usize::try_from(hash % SHARDS as u64).unwrap_or(0)]
    }

    /// Takes one request from the bucket if it has one. Also returns whether the key is verified.
    fn take(&self, key: K, now: Time) -> (Verdict, bool) {
        self.take_many(key, 1, now)
    }

    /// Takes this many requests from the bucket if it has them all.
    pub fn take_many(&self, key: K, count: u32, now: Time) -> (Verdict, bool) {
        let wanted = i64::from(count) * ONE;
        let mut shard = self.shard(&key).lock();
        if shard.len() >= MAX_BUCKETS_PER_SHARD && !shard.contains_key(&key) {
            self.make_room(&mut shard, now);
        }
        let bucket = match shard.entry(key) {
            Entry::Occupied(place) => place.into_mut(),
            Entry::Vacant(place) => {
                place.insert(Bucket { level: self.rate.capacity(), at: now, verified: false })
            }
        };
        self.refill(bucket, now);
        let passes = bucket.level >= wanted;
        if passes {
            bucket.level -= wanted;
        }
        (self.verdict(bucket.level, wanted, passes), bucket.verified)
    }

    /// Puts back what was taken.
    pub fn give_back(&self, key: K, count: u32) {
        if let Some(bucket) = self.shard(&key).lock().get_mut(&key) {
            bucket.level = (bucket.level + i64::from(count) * ONE).min(self.rate.capacity());
        }
    }

    /// The verdict that `take` would give, without taking.
    fn look(&self, key: K, now: Time) -> Verdict {
        let shard = self.shard(&key).lock();
        let level = shard.get(&key).map_or(self.rate.capacity(), |bucket| {
            let mut bucket = *bucket;
            self.refill(&mut bucket, now);
            bucket.level
        });
        self.verdict(level, ONE, level >= ONE)
    }

    fn mark(&self, key: &K, verified: bool) {
        if let Some(bucket) = self.shard(key).lock().get_mut(key) {
            bucket.verified = verified;
        }
    }

    fn refill(&self, bucket: &mut Bucket, now: Time) {
        // If the clock stepped back, the level stays the same.
        let elapsed = now.micros_since(bucket.at).max(0);
        let gained = elapsed.saturating_mul(i64::from(self.rate.per_second));
        bucket.level = bucket.level.saturating_add(gained).min(self.rate.capacity());
        bucket.at = now;
    }

    fn verdict(&self, level: i64, wanted: i64, passes: bool) -> Verdict {
        let missing = self.rate.capacity() - level;
        let standing = Standing {
            limit: self.rate.per_second,
            remaining: u32::try_from(level / ONE).unwrap_or(0),
            reset: whole_seconds(self.rate.micros_to_gain(missing)),
        };
        if passes {
            Verdict::Pass(standing)
        } else {
            Verdict::Wait(standing, whole_seconds(self.rate.micros_to_gain(wanted - level)).max(1))
        }
    }

    fn make_room(&self, shard: &mut HashMap<K, Bucket, RandomState>, now: Time) {
        shard.retain(|_, bucket| {
            self.refill(bucket, now);
            bucket.level < self.rate.capacity()
        });
        // All buckets are in use: reset one of them instead of using more memory.
        if shard.len() >= MAX_BUCKETS_PER_SHARD
            && let Some(key) = shard.keys().next().copied()
        {
            shard.remove(&key);
        }
    }
}

fn whole_seconds(micros: i64) -> u64 {
    u64::try_from(micros).unwrap_or(0).div_ceil(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const NOW: Time = Time::from_micros(1_800_000_000_000_000);
    const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn limiter() -> RateLimiter {
        RateLimiter::new(
            Rate { per_second: 10, burst: 10 },
            Rate { per_second: 2, burst: 4 },
            Rate { per_second: 1, burst: 2 },
        )
    }

    fn credential(number: u32) -> SecretHash {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        SecretHash::from_bytes(bytes)
    }

    fn admit(limiter: &RateLimiter, credential: &SecretHash, address: IpAddr, now: Time) -> Verdict {
        limiter.admit_credential(credential, address, now).0
    }

    fn passes(verdict: Verdict) -> bool {
        matches!(verdict, Verdict::Pass(_))
    }

    #[test]
    fn a_credential_has_a_second_of_requests_and_gains_them_back() {
        let limiter = limiter();
        for left in (0..10).rev() {
            let Verdict::Pass(standing) = admit(&limiter, &credential(1), HOME, NOW) else {
                panic!("refused with {left} left")
            };
            assert_eq!((standing.limit, standing.remaining, standing.reset), (10, left, 1));
        }
        let refused = admit(&limiter, &credential(1), HOME, NOW);
        assert_eq!(refused, Verdict::Wait(Standing { limit: 10, remaining: 0, reset: 1 }, 1));
        assert!(passes(admit(&limiter, &credential(2), HOME, NOW)), "other credentials are not affected");
        let later = NOW.plus_millis(100);
        assert!(passes(admit(&limiter, &credential(1), HOME, later)));
        assert!(!passes(admit(&limiter, &credential(1), HOME, later)));
        let much_later = NOW.plus_seconds(3600);
        assert_eq!(admit(&limiter, &credential(1), HOME, much_later).standing().remaining, 9);
    }

    #[test]
    fn a_clock_that_steps_back_neither_fills_nor_locks() {
        let limiter = limiter();
        for _ in 0..10 {
            admit(&limiter, &credential(1), HOME, NOW);
        }
        assert!(!passes(admit(&limiter, &credential(1), HOME, NOW.plus_seconds(-3600))));
        assert!(passes(admit(&limiter, &credential(1), HOME, NOW.plus_seconds(-3599))));
    }

    #[test]
    fn callers_without_a_credential_share_their_address() {
        let limiter = limiter();
        for _ in 0..4 {
            assert!(passes(limiter.admit_address(HOME, NOW)));
        }
        assert!(!passes(limiter.admit_address(HOME, NOW)));
        assert!(passes(limiter.admit_address(HOME, NOW.plus_millis(500))));
        let mapped = IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped());
        assert!(
            !passes(limiter.admit_address(mapped, NOW.plus_millis(500))),
            "a mapped address counts as the same"
        );
        let neighbours =
            [1, 2, 3, 4, 5].map(|host| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, host)));
        let passed = neighbours.into_iter().filter(|host| passes(limiter.admit_address(*host, NOW))).count();
        assert_eq!(passed, 4, "a /64 is one caller");
    }

    #[test]
    fn made_up_credentials_exhaust_their_address_but_not_valid_ones() {
        let limiter = limiter();
        let valid = credential(0);
        assert!(passes(admit(&limiter, &valid, HOME, NOW)));
        limiter.settle_credential(&valid, HOME, true, NOW);
        for number in 1..=4 {
            assert!(passes(admit(&limiter, &credential(number), HOME, NOW)));
            limiter.settle_credential(&credential(number), HOME, false, NOW);
        }
        assert!(!passes(admit(&limiter, &credential(5), HOME, NOW)));
        assert!(passes(admit(&limiter, &valid, HOME, NOW)));
        limiter.settle_credential(&valid, HOME, false, NOW);
        assert!(
            !passes(admit(&limiter, &valid, HOME, NOW)),
            "a revoked credential is treated like an unknown one"
        );
    }

    #[test]
    fn memory_is_bounded() {
        let limiter = limiter();
        let most = u32::try_from(SHARDS * MAX_BUCKETS_PER_SHARD).unwrap();
        for number in 0..most + 10_000 {
            admit(&limiter, &credential(number), HOME, NOW);
        }
        let kept: usize = limiter.credentials.shards.iter().map(|shard| shard.lock().len()).sum();
        assert!(kept <= SHARDS * MAX_BUCKETS_PER_SHARD, "{kept}");
        let later = NOW.plus_seconds(10);
        for number in 0..50_000 {
            admit(&limiter, &credential(most * 2 + number), HOME, later);
        }
        let kept: usize = limiter.credentials.shards.iter().map(|shard| shard.lock().len()).sum();
        assert!(kept <= SHARDS * MAX_BUCKETS_PER_SHARD, "full buckets made room: {kept}");
    }
}
