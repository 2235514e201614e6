//! What a path is about: its variable segments as typed ids. A segment that isn't an id of its type can't match
//! anything, so it is not found.

use axum::extract::{FromRequestParts as _, Path};
use axum::http::request::Parts;
use rapport_domain::channel::PromoCode;
use rapport_domain::correction::Entry;
use rapport_domain::digest::Week;
use rapport_domain::id::{
    AccountId, CampaignId, ChannelId, ContactId, ConversationId, CorrectionId, CredentialId, DeliveryId,
    ExchangeRateId, ImportId, InvitationId, MessageId, NoteId, PasskeyId, PersonId, RedeliveryId, SessionId,
    WebhookId,
};
use rapport_domain::member::Email;

use crate::edge::problem::Problem;

/// Something that one segment identifies.
pub trait Subject: Sized {
    /// How an error calls it.
    const WHAT: &'static str;

    fn read(segment: &str) -> Option<Self>;
}

/// The variable segments of a path.
pub trait InPath: Sized + Send {
    fn read_all(segments: &[String]) -> Result<Self, Problem>;
}

/// Reads the variable segments of a request's path.
pub async fn in_path<T: InPath>(parts: &mut Parts) -> Result<T, Problem> {
    // A segment that is not UTF-8 is left out, like one that is missing.
    let segments = Path::<Vec<String>>::from_request_parts(parts, &()).await;
    T::read_all(&segments.map(|Path(segments)| segments).unwrap_or_default())
}

impl InPath for () {
    fn read_all(_: &[String]) -> Result<Self, Problem> {
        Ok(())
    }
}

impl<A: Subject + Send, B: Subject + Send> InPath for (A, B) {
    fn read_all(segments: &[String]) -> Result<Self, Problem> {
        let [first, second] = segments else { return Err(Problem::not_found(B::WHAT)) };
        let found = A::read(first).zip(B::read(second));
        found.ok_or_else(|| Problem::not_found(B::WHAT))
    }
}

macro_rules! subjects {
    ($($subject:ty = $what:literal, $read:expr;)+) => {$(
        impl Subject for $subject {
            const WHAT: &'static str = $what;

            fn read(segment: &str) -> Option<Self> {
                let read: fn(&str) -> Option<Self> = $read;
                read(segment)
            }
        }

        impl InPath for $subject {
            fn read_all(segments: &[String]) -> Result<Self, Problem> {
                let found = segments.first().and_then(|segment| Self::read(segment));
                found.ok_or_else(|| Problem::not_found(Self::WHAT))
            }
        }
    )+};
}

subjects! {
    AccountId = "account", |segment| segment.parse().ok();
    CampaignId = "campaign", |segment| segment.parse().ok();
    ChannelId = "channel", |segment| segment.parse().ok();
    ContactId = "contact", |segment| segment.parse().ok();
    ConversationId = "conversation", |segment| segment.parse().ok();
    CorrectionId = "correction", |segment| segment.parse().ok();
    CredentialId = "token", |segment| segment.parse().ok();
    DeliveryId = "delivery", |segment| segment.parse().ok();
    Email = "address", |segment| Email::parse(segment).ok();
    Entry = "entry", Entry::parse;
    ExchangeRateId = "exchange rate", |segment| segment.parse().ok();
    ImportId = "import", |segment| segment.parse().ok();
    InvitationId = "invitation", |segment| segment.parse().ok();
    MessageId = "message", |segment| segment.parse().ok();
    NoteId = "note", |segment| segment.parse().ok();
    PasskeyId = "passkey", |segment| segment.parse().ok();
    PersonId = "member", |segment| segment.parse().ok();
    PromoCode = "promo code", |segment| PromoCode::parse(segment).ok();
    RedeliveryId = "redelivery", |segment| segment.parse().ok();
    SessionId = "session", |segment| segment.parse().ok();
    WebhookId = "webhook", |segment| segment.parse().ok();
    Week = "digest", |segment| Week::parse(segment);
}
