//! Limits on guessing passwords, wherever one is asked for.
//!
//! A wrong password is charged to three buckets: the address it was tried for from this network, the address from
//! anywhere, and the network for any address. So one attacker soon has to wait, many attackers have to wait together,
//! and nobody tries one password on many addresses. It is charged before the password is checked, and given back if it
//! was right, so that a thousand guesses at once are no better than one after another.
//!
//! A browser in which this address has logged in before has a bucket of its own and none of these, so strangers can't
//! lock a person out of it.

use std::hash::BuildHasher as _;
use std::net::IpAddr;

use rapport_domain::member::Email;
use rapport_domain::time::Time;

use crate::edge::rate_limit::{Buckets, Rate, Verdict, network};

/// What a wrong password takes from a bucket: half a minute of one that gains one per second.
const COST: u32 = 30;
/// Ten wrong passwords at once, then one every half minute.
const FROM_ONE_NETWORK: Rate = Rate { per_second: 1, burst: 300 };
const FROM_ONE_BROWSER: Rate = FROM_ONE_NETWORK;
/// A hundred wrong passwords at once, then one every half minute.
const FROM_ANYWHERE: Rate = Rate { per_second: 1, burst: 3_000 };
/// An office may share one: a hundred at once, then one every three seconds.
const OF_ONE_NETWORK: Rate = Rate { per_second: 10, burst: 3_000 };

/// Somebody tries a password.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    pub email: &'a Email,
    pub address: IpAddr,
    /// A browser in which this email address has logged in before.
    pub browser: Option<&'a str>,
}

pub struct Guessing {
    from_one_network: Buckets<u64>,
    from_anywhere: Buckets<u64>,
    of_one_network: Buckets<u64>,
    from_one_browser: Buckets<u64>,
}

impl Default for Guessing {
    fn default() -> Self {
        Self {
            from_one_network: Buckets::new(FROM_ONE_NETWORK),
            from_anywhere: Buckets::new(FROM_ANYWHERE),
            of_one_network: Buckets::new(OF_ONE_NETWORK),
            from_one_browser: Buckets::new(FROM_ONE_BROWSER),
        }
    }
}

impl Guessing {
    /// Charges an attempt, if it may be made. If not, returns how many seconds to wait.
    pub fn admit(&self, attempt: Attempt, now: Time) -> Result<Guess<'_>, u64> {
        let (mut guess, mut longest) = (Guess { charged: Vec::new() }, None);
        for (buckets, key) in self.buckets(attempt).into_iter().flatten() {
            match buckets.take_many(key, COST, now).0 {
                Verdict::Pass(_) => guess.charged.push((buckets, key)),
                Verdict::Wait(_, seconds) => longest = longest.max(Some(seconds)),
            }
        }
        match longest {
            None => Ok(guess),
            Some(seconds) => {
                guess.give_back();
                Err(seconds)
            }
        }
    }

    fn buckets(&self, attempt: Attempt) -> [Option<(&Buckets<u64>, u64)>; 3] {
        let Attempt { email, address, browser } = attempt;
        let network = network(address);
        // Each kind of bucket has its own random hash, so a key is the hash that the kind gives it.
        match browser {
            Some(browser) => {
                let own = &self.from_one_browser;
                [Some((own, own.hasher.hash_one(browser))), None, None]
            }
            None => [
                Some((&self.from_one_network, self.from_one_network.hasher.hash_one((email, network)))),
                Some((&self.from_anywhere, self.from_anywhere.hasher.hash_one(email))),
                Some((&self.of_one_network, self.of_one_network.hasher.hash_one(network))),
            ],
        }
    }
}

/// An attempt that was charged as if the password were wrong.
#[must_use = "an attempt that wasn't a wrong guess is given back"]
pub struct Guess<'a> {
    charged: Vec<(&'a Buckets<u64>, u64)>,
}

impl Guess<'_> {
    /// Gives the charge back, unless the password was wrong.
    pub fn settle(self, was_wrong: bool) {
        if !was_wrong {
            self.give_back();
        }
    }

    fn give_back(self) {
        for (buckets, key) in self.charged {
            buckets.give_back(key, COST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_micros(1_800_000_000_000_000);

    fn email(name: &str) -> Email {
        Email::parse(&format!("{name}@acme.test")).expect("an address")
    }

    fn from(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    /// How many wrong passwords are admitted, of this many attempts.
    fn admitted<'a>(guessing: &Guessing, attempts: impl Iterator<Item = Attempt<'a>>) -> usize {
        let wrong = |guess: Result<Guess, u64>| guess.map(|guess| guess.settle(true)).is_ok();
        attempts.filter(|attempt| wrong(guessing.admit(*attempt, NOW))).count()
    }

    #[test]
    fn right_passwords_cost_nothing() {
        let (guessing, ana) = (Guessing::default(), email("ana"));
        let attempt = Attempt { email: &ana, address: from(1), browser: None };
        for _ in 0..500 {
            guessing.admit(attempt, NOW).expect("admitted").settle(false);
        }
        assert_eq!(admitted(&guessing, std::iter::repeat_n(attempt, 50)), 10);
    }

    #[test]
    fn guesses_at_once_are_limited_like_guesses_one_after_another() {
        let (guessing, ana) = (Guessing::default(), email("ana"));
        let attempt = Attempt { email: &ana, address: from(1), browser: None };
        let open: Vec<Guess> = (0..50).filter_map(|_| guessing.admit(attempt, NOW).ok()).collect();
        assert_eq!(open.len(), 10);
    }

    #[test]
    fn a_refused_attempt_is_not_charged_anywhere() {
        let (guessing, ana, ben) = (Guessing::default(), email("ana"), email("ben"));
        let ana_at_home = Attempt { email: &ana, address: from(1), browser: None };
        admitted(&guessing, std::iter::repeat_n(ana_at_home, 500));
        let ben_at_home = Attempt { email: &ben, ..ana_at_home };
        assert_eq!(admitted(&guessing, std::iter::once(ben_at_home)), 1);
    }

    #[test]
    fn one_network_tries_ten_passwords_for_an_address_then_one_every_half_minute() {
        let (guessing, ana) = (Guessing::default(), email("ana"));
        let attempt = Attempt { email: &ana, address: from(1), browser: None };
        assert_eq!(admitted(&guessing, std::iter::repeat_n(attempt, 50)), 10);
        assert_eq!(guessing.admit(attempt, NOW).err(), Some(30));
        assert!(guessing.admit(attempt, NOW.plus_seconds(30)).is_ok());
    }

    #[test]
    fn one_attacker_does_not_lock_out_the_person_elsewhere() {
        let (guessing, ana) = (Guessing::default(), email("ana"));
        let attacker = Attempt { email: &ana, address: from(1), browser: None };
        admitted(&guessing, std::iter::repeat_n(attacker, 50));
        assert!(guessing.admit(Attempt { address: from(2), ..attacker }, NOW).is_ok());
    }

    #[test]
    fn many_attackers_share_a_hundred_passwords_for_an_address() {
        let (guessing, ana) = (Guessing::default(), email("ana"));
        let attempts = (0..4_000_u32).map(|n| Attempt {
            email: &ana,
            address: IpAddr::from(n.to_be_bytes()),
            browser: None,
        });
        assert_eq!(admitted(&guessing, attempts), 100);
    }

    #[test]
    fn one_network_tries_a_hundred_addresses() {
        let guessing = Guessing::default();
        let emails: Vec<Email> = (0..500).map(|number| email(&number.to_string())).collect();
        let attempts = emails.iter().map(|email| Attempt { email, address: from(1), browser: None });
        assert_eq!(admitted(&guessing, attempts), 100);
    }

    #[test]
    fn a_known_browser_is_not_locked_out_but_limited_too() {
        let (guessing, ana) = (Guessing::default(), email("ana"));
        let stranger =
            |n: u32| Attempt { email: &ana, address: IpAddr::from(n.to_be_bytes()), browser: None };
        admitted(&guessing, (0..4_000).map(stranger));
        let known = Attempt { email: &ana, address: from(1), browser: Some("a browser") };
        assert!(guessing.admit(stranger(9_999), NOW).is_err());
        assert_eq!(admitted(&guessing, std::iter::repeat_n(known, 50)), 10);
    }
}
