//! Identifiers: time-ordered, opaque, prefixed by type, 16 bytes in storage.
//!
//! The text form is the prefix and 26 lower-case Crockford base32 characters, so texts sort like the bytes.
//! Callers pass in time and randomness.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use data_encoding::{Encoding, Specification};

use crate::time::Time;

/// A text that isn't an id of the expected type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an id of this type")]
pub struct NotAnId;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 16]);

        impl $name {
            pub const PREFIX: &'static str = $prefix;

            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }
        }

        impl From<RawId> for $name {
            fn from(raw: RawId) -> Self {
                Self(raw.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_id(f, Self::PREFIX, &self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;

            fn from_str(text: &str) -> Result<Self, NotAnId> {
                read_id(text, Self::PREFIX).map(Self)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )+};
}

ids! {
    AccountId = "acc_";
    /// An event that happened, with its frozen payload.
    EventId = "evt_";
    /// One event for one webhook.
    DeliveryId = "dlv_";
    WebhookId = "whk_";
    ConversationId = "cnv_";
    MessageId = "msg_";
    CampaignId = "cmp_";
    ChannelId = "chn_";
    /// An entry of an account's status history.
    HistoryId = "his_";
    /// An API token, ingest key or inbound key (the record, never the secret).
    CredentialId = "crd_";
    PersonId = "per_";
    AuditId = "aud_";
    /// A bulk redelivery under way.
    RedeliveryId = "rdl_";
    /// Contact recorded on an account.
    ContactId = "ctc_";
    /// A note on an account that isn't contact.
    NoteId = "nte_";
    /// What was edited or deleted in a contact, message or note.
    CorrectionId = "cor_";
    /// What one unit of a currency is worth in the default currency, from a day on.
    ExchangeRateId = "rat_";
    ImportId = "imp_";
    /// A change of many accounts at once.
    BulkId = "blk_";
    /// A mail to a member, from creation to sending.
    MailId = "mai_";
    InvitationId = "inv_";
    /// A logged-in session (the record, never the secret).
    SessionId = "ses_";
    /// A passkey of a person (the record, never the secret).
    PasskeyId = "psk_";
    /// One rendering of a form: submitting it twice counts once.
    FormId = "frm_";
    /// An activity event that was rejected.
    RejectId = "rej_";
    /// A company's settings for single sign-on.
    SsoId = "sso_";
    /// A kept response: derived from a credential and its key, so not ordered by time.
    ResponseId = "rsp_";
}

/// A company's number: small, because every key in storage begins with it. Never shown on the wire, where the
/// slug identifies a company.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CompanyId(pub i64);

/// Sixteen new bytes, before they become an id of some type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RawId([u8; 16]);

/// Generates ids that never go backwards within one process, whatever the clock does: a UUID version 7 whose
/// 12 bits after the milliseconds count up within the millisecond.
#[derive(Debug, Default)]
pub struct IdSequence {
    millis: u64,
    count: u16,
}

const COUNT_LIMIT: u16 = 1 << 12;

impl IdSequence {
    pub fn next<T: From<RawId>>(&mut self, now: Time, random: [u8; 10]) -> T {
        let millis = u64::try_from(now.as_micros() / 1_000).unwrap_or(0);
        if millis > self.millis {
            self.millis = millis;
            self.count = 0;
        } else if self.count + 1 == COUNT_LIMIT {
            self.millis += 1;
            self.count = 0;
        } else {
            self.count += 1;
        }
        let mut bytes = random;
        bytes[..2].copy_from_slice(&self.count.to_be_bytes());
        let uuid = uuid::Builder::from_unix_timestamp_millis(self.millis, &bytes).into_uuid();
        RawId(uuid.into_bytes()).into()
    }
}

/// The smallest id that can be generated at `time`, to the millisecond: every earlier id sorts before it.
pub fn lowest_at<T: From<RawId>>(time: Time) -> T {
    const LAST_MILLI: u64 = (1 << 48) - 1;
    let millis = u64::try_from(time.as_micros() / 1_000).unwrap_or(0).min(LAST_MILLI);
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    RawId(bytes).into()
}

/// When an id was generated, to the millisecond.
pub fn made_at(id: &[u8; 16]) -> Time {
    let mut millis = [0; 8];
    millis[2..].copy_from_slice(&id[..6]);
    Time::from_micros(i64::from_be_bytes(millis) * 1_000)
}

static BASE32: LazyLock<Encoding> = LazyLock::new(|| {
    let mut specification = Specification::new();
    specification.symbols.push_str("0123456789abcdefghjkmnpqrstvwxyz");
    specification.encoding().expect("a valid alphabet")
});

/// The lower-case Crockford base32 of ids and credentials.
pub fn base32() -> &'static Encoding {
    &BASE32
}

fn write_id(f: &mut fmt::Formatter<'_>, prefix: &str, bytes: &[u8; 16]) -> fmt::Result {
    let mut text = [0; 26];
    BASE32.encode_mut(bytes, &mut text);
    f.write_str(prefix)?;
    f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
}

fn read_id(text: &str, prefix: &str) -> Result<[u8; 16], NotAnId> {
    let digits = text.strip_prefix(prefix).ok_or(NotAnId)?.as_bytes();
    if digits.len() != 26 {
        return Err(NotAnId);
    }
    let mut bytes = [0; 16];
    match BASE32.decode_mut(digits, &mut bytes) {
        Ok(16) => Ok(bytes),
        _ => Err(NotAnId),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_carry_their_type() {
        let id: AccountId = IdSequence::default().next(Time::from_micros(1_700_000_000_000_000), [7; 10]);
        let text = id.to_string();
        assert!(text.starts_with("acc_") && text.len() == 30, "{text}");
        assert_eq!(text, text.to_lowercase());
        assert_eq!(text.parse::<AccountId>(), Ok(id));
        assert_eq!(text.parse::<EventId>(), Err(NotAnId));
        assert_eq!(text.to_uppercase().parse::<AccountId>(), Err(NotAnId));
    }

    #[test]
    fn a_time_splits_ids_into_earlier_and_later_ones() {
        let time = Time::from_micros(1_700_000_000_000_000);
        let made = |time| IdSequence::default().next::<EventId>(time, [0; 10]);
        assert!(made(time.plus_millis(-1)) < lowest_at(time));
        assert!(lowest_at::<EventId>(time) <= made(time));
        assert_eq!(lowest_at::<EventId>(Time::from_micros(-5)), EventId::from_bytes([0; 16]));
        assert!(made(time) < lowest_at(Time::from_micros(i64::MAX)));
        assert_eq!(made_at(made(time).as_bytes()), time);
    }

    proptest! {
        #[test]
        fn ids_never_step_back(times in proptest::collection::vec(0_i64..5_000_000, 1..200), random: [u8; 10]) {
            let mut sequence = IdSequence::default();
            let ids: Vec<EventId> =
                times.iter().map(|time| sequence.next(Time::from_micros(*time), random)).collect();
            prop_assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
            let texts: Vec<String> = ids.iter().map(ToString::to_string).collect();
            prop_assert!(texts.windows(2).all(|pair| pair[0] < pair[1]));
        }

        #[test]
        fn any_text_parses_or_is_refused(text in ".{0,40}") {
            if let Ok(id) = text.parse::<AccountId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
