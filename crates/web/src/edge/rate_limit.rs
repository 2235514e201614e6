//! Rate limits: a token bucket per credential, and one per address for callers without a valid one.
//!
//! A credential counts before it is verified, because verifying is the expensive part. Callers who invent
//! credentials are limited by their address: each invalid credential is charged to the address, and once its
//! bucket is empty, only credentials already known to be valid pass.
//!
//! A token can have a limit of its own below that of all credentials. It is known once the token is verified.
//!
//! Every response says where its caller stands: in `X-RateLimit-*`, and in `RateLimit` and `RateLimit-Policy`
//! (draft-ietf-httpapi-ratelimit-headers). A caller without a valid credential is told the limit of its network.

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
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STANDING: HeaderName = HeaderName::from_static("ratelimit");

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

    /// Seconds until an empty bucket is full.
    fn window(self) -> u64 {
        whole_seconds(self.micros_to_gain(self.capacity()))
    }
}

/// Who shares a bucket, and so which limit a caller is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// One credential.
    Credential,
    /// One network, for callers without a valid credential.
    Network,
    /// One network, for the paths that anyone may call.
    Public,
}

impl Policy {
    const fn name(self) -> &'static str {
        match self {
            Self::Credential => "default",
            Self::Network => "network",
            Self::Public => "public",
        }
    }

    /// `"default";q=2000;w=1`: so many requests in so many seconds.
    fn describe(self, rate: Rate) -> HeaderValue {
        value(format!("\"{}\";q={};w={}", self.name(), rate.burst, rate.window()))
    }
}

/// What a caller is told about its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub policy: Policy,
    pub rate: Rate,
    pub remaining: u32,
    /// Seconds until the bucket is full.
    pub reset: u64,
}

fn value(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("plain ASCII")
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
    /// What `RateLimit-Policy` says, made once.
    policies: [(Policy, Rate, HeaderValue); 3],
}

impl RateLimiter {
    pub fn new(per_credential: Rate, per_address: Rate, per_stranger: Rate) -> Self {
        let policies = [
            (Policy::Credential, per_credential),
            (Policy::Network, per_address),
            (Policy::Public, per_stranger),
        ];
        Self {
            credentials: Buckets::new(per_credential),
            addresses: Buckets::shared_by(Policy::Network, per_address),
            strangers: Buckets::shared_by(Policy::Public, per_stranger),
            guessing: Guessing::default(),
            policies: policies.map(|(policy, rate)| (policy, rate, policy.describe(rate))),
        }
    }

    /// Tells a caller where it stands.
    pub fn write(&self, standing: Standing, headers: &mut HeaderMap) {
        let Standing { policy, rate, remaining, reset } = standing;
        headers.insert(LIMIT, HeaderValue::from(rate.per_second));
        headers.insert(REMAINING, HeaderValue::from(remaining));
        headers.insert(RESET, HeaderValue::from(reset));
        let mut known = self.policies.iter();
        let known = known.find(|known| (known.0, known.1) == (policy, rate));
        // Only a token with a limit of its own has another rate.
        headers.insert(POLICY, known.map_or_else(|| policy.describe(rate), |known| known.2.clone()));
        headers.insert(STANDING, value(format!("\"{}\";r={remaining};t={reset}", policy.name())));
    }

    /// Where a caller stands after a request with a credential that wasn't known to be valid before it.
    pub fn standing(&self, credential: &SecretHash, address: IpAddr, now: Time) -> Standing {
        match self.credentials.look(*credential, now) {
            (verdict, true) => verdict.standing(),
            (_, false) => self.addresses.look(network(address), now).0.standing(),
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
        match self.addresses.look(network(address), now).0 {
            Verdict::Pass(_) => (verdict, false),
            refused @ Verdict::Wait(..) => (refused, false),
        }
    }

    /// Records that a credential is valid, and the limit that it has of its own, in requests per second.
    pub fn accept_credential(&self, credential: &SecretHash, own: Option<i64>) {
        let own = own.map(|own| u32::try_from(own.max(1)).unwrap_or(u32::MAX));
        self.credentials.mark(credential, true, own);
    }

    /// Records that a credential is not valid, and charges it to the address.
    pub fn refuse_credential(&self, credential: &SecretHash, address: IpAddr, now: Time) {
        self.credentials.mark(credential, false, None);
        self.addresses.take(network(address), now);
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
    /// The token's own rate, if that is lower.
    own: Option<Rate>,
}

/// Buckets of one rate, or of a lower one for some keys. Memory is bounded: a full bucket carries no information and is dropped when space is
/// needed.
pub struct Buckets<K> {
    policy: Policy,
    rate: Rate,
    pub hasher: RandomState,
    shards: [Mutex<HashMap<K, Bucket, RandomState>>; SHARDS],
}

impl<K: Copy + Eq + Hash> Buckets<K> {
    pub fn new(rate: Rate) -> Self {
        Self::shared_by(Policy::Credential, rate)
    }

    fn shared_by(policy: Policy, rate: Rate) -> Self {
        Self { policy, rate, hasher: RandomState::new(), shards: std::array::from_fn(|_| Mutex::default()) }
    }

    fn rate_of(&self, bucket: &Bucket) -> Rate {
        bucket.own.unwrap_or(self.rate)
    }

    fn full(&self, now: Time) -> Bucket {
        Bucket { level: self.rate.capacity(), at: now, verified: false, own: None }
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
            Entry::Vacant(place) => place.insert(self.full(now)),
        };
        self.refill(bucket, now);
        let passes = bucket.level >= wanted;
        if passes {
            bucket.level -= wanted;
        }
        (self.verdict(bucket, wanted, passes), bucket.verified)
    }

    /// Puts back what was taken.
    pub fn give_back(&self, key: K, count: u32) {
        if let Some(bucket) = self.shard(&key).lock().get_mut(&key) {
            bucket.level = (bucket.level + i64::from(count) * ONE).min(self.rate_of(bucket).capacity());
        }
    }

    /// What `take` would return, without taking.
    fn look(&self, key: K, now: Time) -> (Verdict, bool) {
        let found = self.shard(&key).lock().get(&key).copied();
        let mut bucket = found.unwrap_or_else(|| self.full(now));
        self.refill(&mut bucket, now);
        (self.verdict(&bucket, ONE, bucket.level >= ONE), bucket.verified)
    }

    fn mark(&self, key: &K, verified: bool, own: Option<u32>) {
        let mut shard = self.shard(key).lock();
        let Some(bucket) = shard.get_mut(key) else { return };
        bucket.verified = verified;
        let lower = own.filter(|own| *own < self.rate.per_second && bucket.own.is_none());
        if let Some(per_second) = lower {
            let own = Rate { per_second, burst: per_second.min(self.rate.burst) };
            // Requests that were taken before the limit was known count.
            let taken = self.rate.capacity() - bucket.level;
            bucket.level = (own.capacity() - taken).max(0);
            bucket.own = Some(own);
        }
    }

    fn refill(&self, bucket: &mut Bucket, now: Time) {
        // If the clock stepped back, the level stays the same.
        let elapsed = now.micros_since(bucket.at).max(0);
        let rate = self.rate_of(bucket);
        let gained = elapsed.saturating_mul(i64::from(rate.per_second));
        bucket.level = bucket.level.saturating_add(gained).min(rate.capacity());
        bucket.at = now;
    }

    fn verdict(&self, bucket: &Bucket, wanted: i64, passes: bool) -> Verdict {
        let (rate, level) = (self.rate_of(bucket), bucket.level);
        let missing = rate.capacity() - level;
        let standing = Standing {
            policy: self.policy,
            rate,
            remaining: u32::try_from(level / ONE).unwrap_or(0),
            reset: whole_seconds(rate.micros_to_gain(missing)),
        };
        if passes {
            Verdict::Pass(standing)
        } else {
            Verdict::Wait(standing, whole_seconds(rate.micros_to_gain(wanted - level)).max(1))
        }
    }

    fn make_room(&self, shard: &mut HashMap<K, Bucket, RandomState>, now: Time) {
        shard.retain(|_, bucket| {
            self.refill(bucket, now);
            bucket.level < self.rate_of(bucket).capacity()
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
            assert_eq!((standing.rate.per_second, standing.remaining, standing.reset), (10, left, 1));
        }
        let refused = admit(&limiter, &credential(1), HOME, NOW);
        let rate = Rate { per_second: 10, burst: 10 };
        let empty = Standing { policy: Policy::Credential, rate, remaining: 0, reset: 1 };
        assert_eq!(refused, Verdict::Wait(empty, 1));
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
        limiter.accept_credential(&valid, None);
        for number in 1..=4 {
            assert!(passes(admit(&limiter, &credential(number), HOME, NOW)));
            limiter.refuse_credential(&credential(number), HOME, NOW);
        }
        assert!(!passes(admit(&limiter, &credential(5), HOME, NOW)));
        assert!(passes(admit(&limiter, &valid, HOME, NOW)));
        limiter.refuse_credential(&valid, HOME, NOW);
        assert!(
            !passes(admit(&limiter, &valid, HOME, NOW)),
            "a revoked credential is treated like an unknown one"
        );
    }

    #[test]
    fn a_token_with_its_own_limit_is_held_to_it_once_it_is_known() {
        let limiter = limiter();
        let token = credential(1);
        assert_eq!(admit(&limiter, &token, HOME, NOW).standing().remaining, 9, "not known yet");
        limiter.accept_credential(&token, Some(3));
        let standing = limiter.standing(&token, HOME, NOW);
        assert_eq!((standing.rate.per_second, standing.remaining), (3, 2), "what was taken counts");
        // Another request that began before the limit was known may end without it.
        limiter.accept_credential(&token, None);
        let passed: Vec<bool> = (0..4).map(|_| passes(admit(&limiter, &token, HOME, NOW))).collect();
        assert_eq!(passed, [true, true, false, false]);
        assert!(passes(admit(&limiter, &token, HOME, NOW.plus_millis(334))));
        assert!(!passes(admit(&limiter, &token, HOME, NOW.plus_millis(334))));
        let much_later = NOW.plus_seconds(3600);
        assert_eq!(admit(&limiter, &token, HOME, much_later).standing().remaining, 2);
        let other = credential(2);
        admit(&limiter, &other, HOME, NOW);
        limiter.accept_credential(&other, Some(1_000));
        assert_eq!(limiter.standing(&other, HOME, NOW).rate.per_second, 10, "never above that of all");
    }

    #[test]
    fn the_headers_name_the_limit_that_applies() {
        let limiter = limiter();
        let shown = |standing: Standing| {
            let mut headers = HeaderMap::new();
            limiter.write(standing, &mut headers);
            let names = [
                "x-ratelimit-limit",
                "x-ratelimit-remaining",
                "x-ratelimit-reset",
                "ratelimit-policy",
                "ratelimit",
            ];
            names.map(|name| headers[name].to_str().unwrap().to_owned()).join(" ")
        };
        let (valid, limited, unknown) = (credential(1), credential(2), credential(3));
        let verdict = admit(&limiter, &valid, HOME, NOW);
        assert_eq!(shown(verdict.standing()), r#"10 9 1 "default";q=10;w=1 "default";r=9;t=1"#);
        admit(&limiter, &limited, HOME, NOW);
        limiter.accept_credential(&limited, Some(5));
        let standing = limiter.standing(&limited, HOME, NOW);
        assert_eq!(shown(standing), r#"5 4 1 "default";q=5;w=1 "default";r=4;t=1"#);
        admit(&limiter, &unknown, HOME, NOW);
        limiter.refuse_credential(&unknown, HOME, NOW);
        let standing = limiter.standing(&unknown, HOME, NOW);
        assert_eq!(shown(standing), r#"2 3 1 "network";q=4;w=2 "network";r=3;t=1"#);
        let verdict = limiter.admit_address(HOME, NOW);
        assert_eq!(shown(verdict.standing()), r#"2 2 1 "network";q=4;w=2 "network";r=2;t=1"#);
        let verdict = limiter.admit_stranger(HOME, NOW);
        assert_eq!(shown(verdict.standing()), r#"1 1 1 "public";q=2;w=2 "public";r=1;t=1"#);
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
