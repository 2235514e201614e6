//! Who comes in with single sign-on. A provider speaks for the people of its company's confirmed domains, and for that
//! company only.

use crate::company::MAX_NAME;
use crate::email_domain::EmailDomain;
use crate::id::PersonId;
use crate::member::Email;
use crate::time::Time;

/// The longest identifier of a person that a provider may use (OpenID Connect Core).
const MAX_SUBJECT_CHARS: usize = 255;

/// Defines each reason once: its variant, the word in the audit log, and what the person reads.
macro_rules! reasons {
    ($($variant:ident = $word:literal, $sentence:literal;)+) => {
        /// Why somebody doesn't come in.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($variant,)+
        }

        impl Reason {
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word in the audit log.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// What happened and what to do. Says nothing of what the provider's answer contained.
            pub const fn sentence(self) -> &'static str {
                match self {
                    $(Self::$variant => $sentence,)+
                }
            }
        }
    };
}

reasons! {
    Off = "off", "single sign-on isn't set up for this company";
    WrongState = "wrong_state", "this login was started in another browser, or more than ten minutes ago; start again";
    Replayed = "replayed", "this login was already used; start again";
    Cancelled = "cancelled", "the login was cancelled; start again, or log in another way";
    ProviderRefused = "provider_refused", "your company's login service refused the login; ask an admin of your company";
    ProviderUnreachable = "provider_unreachable",
        "we couldn't reach your company's login service; try again in a few minutes";
    ProviderFaulty = "provider_faulty",
        "your company's login service isn't set up correctly; ask an owner of your company to test the connection";
    SecretUnreadable = "secret_unreadable",
        "we can't log in at your company's login service; ask an owner of your company to enter its client secret again";
    ClientRefused = "client_refused",
        "your company's login service doesn't accept our client id or secret; ask an owner of your company to check them";
    CodeRefused = "code_refused", "your company's login service didn't confirm the login; start again";
    WrongIssuer = "wrong_issuer",
        "your company's login service sent an answer that names another service; ask an admin of your company";
    WrongAudience = "wrong_audience",
        "your company's login service sent an answer for another program; ask an admin of your company";
    WrongNonce = "wrong_nonce", "your company's login service sent an answer to another login; start again";
    ExpiredToken = "expired_token", "your company's login service sent an answer that has expired; start again";
    UnknownKey = "unknown_key",
        "your company's login service signed its answer with an unknown key; try again in a minute";
    BadSignature = "bad_signature",
        "your company's login service sent an answer without a valid signature; ask an admin of your company";
    BadToken = "bad_token",
        "your company's login service sent an answer that we can't read; ask an admin of your company";
    NoEmail = "no_email", "your company's login service didn't tell us your email address; ask an admin of your company";
    UnverifiedEmail = "unverified_email",
        "your company's login service hasn't verified your email address; ask an admin of your company";
    ForeignDomain = "foreign_domain",
        "your email address isn't in one of this company's confirmed domains; ask an admin of your company";
    NotAskedAgain = "not_asked_again",
        "your company's login service didn't confirm that you logged in there just now; log out and log in again";
    OtherPerson = "other_person", "you logged in as somebody else; try again with your own login";
    Removed = "removed", "you're no longer a member of this company; ask an admin to invite you again";
    Deactivated = "deactivated", "your access to this company is deactivated; ask an admin of your company";
}

/// What a provider says about a person, after its signature was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// Identifies the person at this provider, for good.
    pub subject: String,
    pub email: Option<String>,
    pub email_verified: bool,
    pub name: Option<String>,
    /// When the person last proved to the provider who they are, if it says so.
    pub authenticated_at: Option<Time>,
}

impl Claims {
    /// The address that the provider vouches for, if it may speak for it.
    pub fn vouched(&self, confirmed: &[EmailDomain]) -> Result<Email, Reason> {
        let subject = self.subject.as_str();
        if subject.is_empty() || subject.contains('\0') || subject.chars().count() > MAX_SUBJECT_CHARS {
            return Err(Reason::BadToken);
        }
        let email = self.email.as_deref().and_then(|text| Email::parse(text).ok()).ok_or(Reason::NoEmail)?;
        if !self.email_verified {
            return Err(Reason::UnverifiedEmail);
        }
        let is_theirs = EmailDomain::of(&email).is_some_and(|domain| confirmed.contains(&domain));
        if is_theirs { Ok(email) } else { Err(Reason::ForeignDomain) }
    }

    /// The name of a new member: the provider's, or else the part of the address before the @.
    pub fn display_name(&self, email: &Email) -> String {
        let told = self.name.as_deref().map(str::trim).filter(|name| MAX_NAME.check(name).is_ok());
        let local = email.as_str().split('@').next().unwrap_or_default();
        told.map_or_else(|| local.chars().take(MAX_NAME.max).collect(), str::to_owned)
    }
}

/// How a person stands in the company.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Active,
    Deactivated,
    /// They were a member.
    Gone,
}

/// A member with the address that the provider vouches for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    pub person: PersonId,
    pub is_active: bool,
    /// Whether theirs is the login of the owner of the address.
    pub is_proven: bool,
}

/// What is known about somebody who comes from the provider.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Known<'a> {
    /// The login that this identity was linked to before.
    pub linked: Option<(PersonId, Standing)>,
    /// The members with the same address.
    pub holders: &'a [Holder],
    /// Whether the address is invited.
    pub is_invited: bool,
    /// Whether a member with this address was removed.
    pub was_removed: bool,
}

/// How somebody comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// With the login that their identity is linked to.
    Linked(PersonId),
    /// With the login of a member that their identity is linked to from now on.
    Link(PersonId),
    /// As a new member.
    Join,
}

/// Decides whether and how somebody whose address the provider may speak for comes in. People who were removed or
/// deactivated stay out, whatever the provider says, until the company invites or reactivates them.
pub fn entry(known: &Known) -> Result<Entry, Reason> {
    match known.linked {
        Some((person, Standing::Active)) => return Ok(Entry::Linked(person)),
        Some((_, Standing::Deactivated)) => return Err(Reason::Deactivated),
        Some((_, Standing::Gone)) | None => {}
    }
    if known.holders.iter().any(|holder| !holder.is_active) {
        return Err(Reason::Deactivated);
    }
    let proven = known.holders.iter().find(|holder| holder.is_proven);
    if let Some(holder) = proven.or(known.holders.first()) {
        return Ok(Entry::Link(holder.person));
    }
    let is_out = known.was_removed || known.linked.is_some();
    if is_out && !known.is_invited { Err(Reason::Removed) } else { Ok(Entry::Join) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANA: PersonId = PersonId::from_bytes([1; 16]);
    const BO: PersonId = PersonId::from_bytes([2; 16]);

    fn claims(email: Option<&str>, email_verified: bool) -> Claims {
        let (subject, email) = ("ana".to_owned(), email.map(str::to_owned));
        Claims { subject, email, email_verified, name: None, authenticated_at: None }
    }

    #[test]
    fn a_provider_speaks_for_verified_addresses_in_confirmed_domains() {
        let confirmed = ["acme.test", "xn--bcher-kva.example"].map(|name| EmailDomain::parse(name).unwrap());
        let table = [
            (Some("Ana@Acme.test"), true, Ok("ana@acme.test")),
            (Some("ana@bücher.example"), true, Ok("ana@bücher.example")),
            (Some("ana@acme.test"), false, Err(Reason::UnverifiedEmail)),
            (Some("ana@globex.test"), true, Err(Reason::ForeignDomain)),
            (Some("ana@mail.acme.test"), true, Err(Reason::ForeignDomain)),
            (Some("ana@acme.test.evil.test"), true, Err(Reason::ForeignDomain)),
            (Some("ana@evil-acme.test"), true, Err(Reason::ForeignDomain)),
            (Some("ana"), true, Err(Reason::NoEmail)),
            (Some("ana@acme.test, bo@acme.test"), true, Err(Reason::NoEmail)),
            (None, true, Err(Reason::NoEmail)),
        ];
        for (email, verified, expected) in table {
            let found = claims(email, verified).vouched(&confirmed);
            assert_eq!(found.as_ref().map(Email::as_str).map_err(|reason| *reason), expected, "{email:?}");
        }
        assert_eq!(claims(Some("ana@acme.test"), true).vouched(&[]), Err(Reason::ForeignDomain));
        for subject in [String::new(), "x".repeat(256), "a\0b".to_owned()] {
            let claims = Claims { subject, ..claims(Some("ana@acme.test"), true) };
            assert_eq!(claims.vouched(&confirmed), Err(Reason::BadToken));
        }
    }

    #[test]
    fn a_new_member_has_a_name() {
        let email = Email::parse("ana@acme.test").unwrap();
        let name = |told: Option<&str>| {
            Claims { name: told.map(str::to_owned), ..claims(None, true) }.display_name(&email)
        };
        assert_eq!(name(Some(" Ana Ruiz ")), "Ana Ruiz");
        for unusable in [None, Some(""), Some("  "), Some("a\0b"), Some("x".repeat(121).as_str())] {
            assert_eq!(name(unusable), "ana");
        }
    }

    #[test]
    fn removed_and_deactivated_people_stay_out_and_others_come_in() {
        let holder = |person, is_active, is_proven| Holder { person, is_active, is_proven };
        let (active, off) = (holder(ANA, true, false), holder(ANA, false, false));
        let two = [active, holder(BO, true, true)];
        let half = [active, holder(BO, false, true)];
        let nobody: &[Holder] = &[];
        let gone = Some((BO, Standing::Gone));
        // Linked before, the members with the address, invited, removed before.
        type Case<'a> = (Option<(PersonId, Standing)>, &'a [Holder], bool, bool, Result<Entry, Reason>);
        let table: [Case; 17] = [
            (Some((BO, Standing::Active)), nobody, false, false, Ok(Entry::Linked(BO))),
            (Some((BO, Standing::Active)), &[active], true, true, Ok(Entry::Linked(BO))),
            (Some((BO, Standing::Deactivated)), &[active], true, false, Err(Reason::Deactivated)),
            (gone, nobody, false, false, Err(Reason::Removed)),
            (gone, nobody, false, true, Err(Reason::Removed)),
            (gone, nobody, true, true, Ok(Entry::Join)),
            (gone, &[active], false, true, Ok(Entry::Link(ANA))),
            (gone, &[off], true, false, Err(Reason::Deactivated)),
            (None, nobody, false, false, Ok(Entry::Join)),
            (None, nobody, true, false, Ok(Entry::Join)),
            (None, nobody, false, true, Err(Reason::Removed)),
            (None, nobody, true, true, Ok(Entry::Join)),
            (None, &[active], false, false, Ok(Entry::Link(ANA))),
            (None, &[active], false, true, Ok(Entry::Link(ANA))),
            (None, &[off], false, false, Err(Reason::Deactivated)),
            (None, &two, false, false, Ok(Entry::Link(BO))),
            (None, &half, false, false, Err(Reason::Deactivated)),
        ];
        for (linked, holders, is_invited, was_removed, expected) in table {
            let known = Known { linked, holders, is_invited, was_removed };
            assert_eq!(entry(&known), expected, "{known:?}");
        }
    }

    #[test]
    fn every_reason_has_its_own_word_and_sentence() {
        for (at, reason) in Reason::ALL.iter().enumerate() {
            let others = &Reason::ALL[..at];
            assert!(others.iter().all(|other| other.as_str() != reason.as_str()), "{reason:?}");
            assert!(others.iter().all(|other| other.sentence() != reason.sentence()), "{reason:?}");
            assert!(!reason.sentence().ends_with('.'), "it becomes a sentence on the page");
        }
    }
}
