//! Limits on mail that people can cause. Without them, anyone could fill somebody's mailbox in our name.
//!
//! Each kind of mail has limits of its own, so that many invitations don't keep a person from a link for a new
//! password. A company gets only a part of what an address may receive, so that it can't use up what others need.
//! Notices have no limit: nobody may suppress one by causing other mail first.

use ring::digest::{SHA256, digest};

use crate::id::CompanyId;
use crate::mail::Kind;
use crate::member::Email;
use crate::time::Time;

const HOUR_SECONDS: i64 = 60 * 60;
const DAY_SECONDS: i64 = 24 * HOUR_SECONDS;
/// How long a mail counts.
pub const COUNTED_SECONDS: i64 = DAY_SECONDS;

/// How many mails of [`OF_A_COMPANY`] the people of a company may cause in an hour.
pub const MOST_OF_A_COMPANY: i64 = 100;
pub const OF_A_COMPANY_SECONDS: i64 = HOUR_SECONDS;
/// Not password resets: anyone can ask for those, and must not keep a company from inviting people.
pub const OF_A_COMPANY: [Kind; 3] = [Kind::Invitation, Kind::AddressChange, Kind::Test];

/// How many mails within an hour and within a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub hour: usize,
    pub day: usize,
}

/// The limits of a kind of mail to one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// From all companies together.
    pub total: Limits,
    pub from_one_company: Limits,
}

/// The limits of a kind of mail, if it has any.
pub const fn rule(kind: Kind) -> Option<Rule> {
    match kind {
        Kind::Invitation | Kind::PasswordReset | Kind::AddressChange => {
            Some(Rule { total: Limits { hour: 5, day: 20 }, from_one_company: Limits { hour: 3, day: 10 } })
        }
        // To people of the company that asks for it.
        Kind::Test | Kind::Digest => {
            let limits = Limits { hour: 10, day: 50 };
            Some(Rule { total: limits, from_one_company: limits })
        }
        Kind::WebhookDisabled
        | Kind::Notice
        | Kind::AddressNotice
        | Kind::CompanyDeletion
        | Kind::BreakGlassUsed => None,
    }
}

/// Who gets the mail, as far as its limit goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    Address(&'a Email),
    /// Everyone in the company, with one mail each.
    Company(CompanyId),
}

impl Target<'_> {
    /// What storage counts under. It says nothing about the address.
    pub fn key(self, kind: Kind) -> [u8; 32] {
        let text = match self {
            Self::Address(email) => format!("{}\0{}", kind.as_str(), email.as_str()),
            Self::Company(company) => format!("{}\0company {}", kind.as_str(), company.0),
        };
        let mut key = [0; 32];
        key.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
        key
    }
}

/// When mails of one kind went to one target, and from which company, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SentMails(Vec<(Time, CompanyId)>);

impl SentMails {
    /// From the stored form: pairs of microseconds and a company's number, as JSON.
    pub fn from_stored(text: &str) -> Self {
        let pairs: Vec<(i64, i64)> = serde_json::from_str(text).unwrap_or_default();
        Self(pairs.into_iter().map(|(at, company)| (Time::from_micros(at), CompanyId(company))).collect())
    }

    pub fn to_stored(&self) -> String {
        let pairs: Vec<(i64, i64)> = self.0.iter().map(|(at, company)| (at.as_micros(), company.0)).collect();
        serde_json::to_string(&pairs).unwrap_or_default()
    }

    /// Adds a mail, or returns when it may be sent.
    pub fn add(&mut self, rule: Rule, company: CompanyId, now: Time) -> Result<(), Time> {
        self.0.retain(|(at, _)| *at > now.plus_seconds(-COUNTED_SECONDS));
        // If the clock was set back, nobody waits longer because of it.
        self.0.iter_mut().for_each(|(at, _)| *at = (*at).min(now));
        let of_company = self.0.iter().filter(|(_, sender)| *sender == company).map(|(at, _)| *at).collect();
        let all = self.0.iter().map(|(at, _)| *at).collect();
        let waits = [(rule.total, all), (rule.from_one_company, of_company)]
            .into_iter()
            .filter_map(|(limits, sent): (Limits, Vec<Time>)| limits.free_at(&sent, now));
        if let Some(at) = waits.max() {
            return Err(at);
        }
        self.0.push((now, company));
        Ok(())
    }
}

impl Limits {
    /// When one more mail may be sent; `None` if that is now.
    fn free_at(self, sent: &[Time], now: Time) -> Option<Time> {
        let spans = [(HOUR_SECONDS, self.hour), (DAY_SECONDS, self.day)];
        let waits = spans.into_iter().filter_map(|(seconds, most)| {
            let oldest = sent.iter().rev().nth(most.saturating_sub(1))?;
            Some(oldest.plus_seconds(seconds)).filter(|free| *free > now)
        });
        waits.max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::from_micros(1_800_000_000_000_000);
    const MINUTE: i64 = 60;

    fn company(number: i64) -> CompanyId {
        CompanyId(number)
    }

    /// How long each mail has to wait, in minutes; `0` if it may be sent. Each comes some minutes after the start.
    fn waits(kind: Kind, mails: &[(i64, i64)]) -> Vec<i64> {
        let (rule, mut sent) = (rule(kind).expect("a rule"), SentMails::default());
        let wait = |(minutes, sender): &(i64, i64)| {
            let now = START.plus_seconds(minutes * MINUTE);
            let added = sent.add(rule, company(*sender), now);
            added.err().map_or(0, |free| free.micros_since(now) / 1_000_000 / MINUTE)
        };
        mails.iter().map(wait).collect()
    }

    #[test]
    fn a_company_mails_an_address_three_times_an_hour() {
        let mails = [(0, 1), (10, 1), (20, 1), (30, 1), (59, 1), (60, 1), (61, 1)];
        assert_eq!(waits(Kind::Invitation, &mails), [0, 0, 0, 30, 1, 0, 9]);
    }

    #[test]
    fn an_address_gets_five_mails_an_hour_from_all_companies() {
        let mails = [(0, 1), (1, 1), (2, 1), (3, 2), (4, 3), (5, 4), (59, 4), (60, 4), (61, 4)];
        assert_eq!(waits(Kind::PasswordReset, &mails), [0, 0, 0, 0, 0, 55, 1, 0, 0]);
    }

    #[test]
    fn a_day_has_its_own_limit() {
        let mails: Vec<(i64, i64)> = (0..12).map(|number| (number * 60, 1)).collect();
        let waited = waits(Kind::Invitation, &mails);
        assert_eq!(waited[..10], [0; 10]);
        assert_eq!(waited[10..], [14 * 60, 13 * 60], "the first one is a day old then");
        let mails: Vec<(i64, i64)> = (0..21).map(|number| (number * 30, number)).collect();
        let waited = waits(Kind::Invitation, &mails);
        assert_eq!((&waited[..20], waited[20]), (&[0; 20][..], 14 * 60));
    }

    #[test]
    fn a_clock_that_was_set_back_keeps_nobody_waiting_longer() {
        let (rule, mut sent) = (rule(Kind::Invitation).unwrap(), SentMails::default());
        for _ in 0..3 {
            sent.add(rule, company(1), START.plus_seconds(DAY_SECONDS)).unwrap();
        }
        assert_eq!(sent.add(rule, company(1), START), Err(START.plus_seconds(HOUR_SECONDS)));
    }

    #[test]
    fn notices_have_no_limit_and_all_else_does() {
        let unlimited: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| rule(*kind).is_none()).collect();
        let notices = [
            Kind::WebhookDisabled,
            Kind::BreakGlassUsed,
            Kind::Notice,
            Kind::AddressNotice,
            Kind::CompanyDeletion,
        ];
        assert_eq!(unlimited, notices);
        assert!(OF_A_COMPANY.into_iter().all(|kind| rule(kind).is_some()));
        for kind in Kind::ALL {
            let Some(Rule { total, from_one_company }) = rule(kind) else { continue };
            assert!(from_one_company.hour <= total.hour && from_one_company.day <= total.day, "{kind:?}");
            assert!(total.hour <= total.day, "{kind:?}");
        }
    }

    #[test]
    fn what_is_stored_reads_back_and_names_nobody() {
        let (rule, mut sent) = (rule(Kind::Test).unwrap(), SentMails::default());
        sent.add(rule, company(7), START).unwrap();
        assert_eq!(SentMails::from_stored(&sent.to_stored()), sent);
        assert_eq!(SentMails::from_stored("not JSON"), SentMails::default());
        let ana = Email::parse("ana@acme.test").unwrap();
        let key = |kind| Target::Address(&ana).key(kind);
        assert_ne!(key(Kind::Invitation), key(Kind::PasswordReset), "each kind is counted alone");
        assert_ne!(
            Target::Company(company(1)).key(Kind::Digest),
            Target::Company(company(2)).key(Kind::Digest)
        );
    }
}
