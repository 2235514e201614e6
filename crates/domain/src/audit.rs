//! What the audit log records, and the filter that selects its entries.

use serde_json::{Map, Value};

use crate::id::PersonId;
use crate::invalid::{Fault, Invalid, Members, as_bool, as_str};
use crate::time::Time;

/// How many days a company can choose to keep its audit log.
pub const AUDIT_DAYS: std::ops::RangeInclusive<i64> = 30..=3650;
pub const DEFAULT_AUDIT_DAYS: i64 = 730;
/// Failed logins of one person, and refused requests of one caller, are recorded at most this often, so that
/// guessing cannot flood the log.
pub const REPEAT_SECONDS: i64 = 60;

/// Defines each action once: its variant, the word in storage and on the wire, and its label on the page.
macro_rules! actions {
    ($($variant:ident = $word:literal, $label:literal;)+) => {
        /// A change that the audit log records.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Action {
            $($variant,)+
        }

        impl Action {
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// What a person did, in the past tense.
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$variant => $label,)+
                }
            }
        }
    };
}

actions! {
    AccountAddressAdded = "account.address_added", "Added an email address to an account";
    AccountAddressRemoved = "account.address_removed", "Removed an email address from an account";
    AccountChanged = "account.changed", "Changed an account";
    AccountCreated = "account.created", "Created an account";
    AccountDataExported = "account.data_exported", "Exported everything about an account";
    AccountDeleted = "account.deleted", "Deleted an account";
    AccountExported = "account.exported", "Exported accounts";
    AccountMovedInBulk = "account.moved_in_bulk", "Moved accounts in bulk";
    AccountPayloadsErased = "account.payloads_erased", "Erased an account's payloads";
    AuditExported = "audit.exported", "Exported the audit log";
    CampaignChanged = "campaign.changed", "Changed a campaign";
    CampaignCreated = "campaign.created", "Created a campaign";
    CampaignDeleted = "campaign.deleted", "Deleted a campaign";
    CampaignExported = "campaign.exported", "Exported a campaign's members";
    ChannelCreated = "channel.created", "Created a channel";
    ChannelDeleted = "channel.deleted", "Deleted a channel";
    ChannelRenamed = "channel.renamed", "Renamed a channel";
    CompanyCreated = "company.created", "Created the company";
    CompanyDeletionCancelled = "company.deletion_cancelled", "Cancelled the deletion of the company";
    CompanyDeletionRequested = "company.deletion_requested", "Asked to delete the company";
    CompanyExported = "company.exported", "Exported all data of the company";
    ContactDeleted = "contact.deleted", "Deleted a contact";
    ContactEdited = "contact.edited", "Edited a contact";
    ContactRestored = "contact.restored", "Undid a correction of a contact";
    DeliveryRedelivered = "delivery.redelivered", "Redelivered a delivery";
    DigestSent = "digest.sent", "Sent the digest";
    DomainClaimed = "domain.claimed", "Confirmed an email domain";
    DomainReleased = "domain.released", "Released an email domain";
    ExchangeRateChanged = "exchange_rate.changed", "Changed an exchange rate";
    ExchangeRateCreated = "exchange_rate.created", "Added an exchange rate";
    ExchangeRateDeleted = "exchange_rate.deleted", "Deleted an exchange rate";
    FactorAdded = "factor.added", "Added a second factor";
    FactorChanged = "factor.changed", "Renamed a passkey";
    FactorRemoved = "factor.removed", "Removed a second factor";
    FactorsReset = "factor.reset", "Reset a member's second factors";
    ImportCancelled = "import.cancelled", "Cancelled an import";
    ImportRemoved = "import.removed", "Removed an import";
    ImportStarted = "import.started", "Started an import";
    ImportUndone = "import.undone", "Undid an import";
    InboundKeyRotated = "inbound_key.rotated", "Rotated the inbound key";
    IngestKeyRotated = "ingest_key.rotated", "Rotated the ingest key";
    InvitationAccepted = "invitation.accepted", "Accepted an invitation";
    InvitationCreated = "invitation.created", "Invited someone";
    InvitationResent = "invitation.resent", "Resent an invitation";
    InvitationRevoked = "invitation.revoked", "Revoked an invitation";
    MailTested = "mail.tested", "Sent a test mail";
    // Before people could only be invited.
    MemberAdded = "member.added", "Added a member";
    MemberChanged = "member.changed", "Changed a member";
    MemberJoined = "member.joined", "Joined with single sign-on";
    MemberLeft = "member.left", "Left the company";
    MemberRemoved = "member.removed", "Removed a member";
    MessageDeleted = "message.deleted", "Deleted a message";
    MessageEdited = "message.edited", "Edited a message";
    MessageRestored = "message.restored", "Undid a correction of a message";
    NoteCreated = "note.created", "Added a note";
    NoteDeleted = "note.deleted", "Deleted a note";
    NoteEdited = "note.edited", "Edited a note";
    NoteRestored = "note.restored", "Undid a correction of a note";
    PasswordChanged = "password.changed", "Changed the password";
    PasswordResetSent = "password_reset.sent", "Sent a password-reset link";
    PersonEmailChanged = "person.email_changed", "Changed their email address";
    PersonEmailRequested = "person.email_requested", "Asked to change their email address";
    PersonExported = "person.exported", "Downloaded their own data";
    PersonRenamed = "person.renamed", "Changed their name";
    PromoCodeArchived = "promo_code.archived", "Archived a promo code";
    PromoCodeCreated = "promo_code.created", "Created a promo code";
    PromoCodeDeleted = "promo_code.deleted", "Deleted a promo code";
    PromoCodeRestored = "promo_code.restored", "Restored a promo code";
    RecoveryCodesCreated = "recovery_codes.created", "Created new recovery codes";
    RedeliveryCancelled = "redelivery.cancelled", "Cancelled a bulk redelivery";
    RedeliveryStarted = "redelivery.started", "Started a bulk redelivery";
    RequestRefused = "request.refused", "Was refused: their role doesn't allow it";
    SampleDataAdded = "sample_data.added", "Added sample data";
    SampleDataRemoved = "sample_data.removed", "Removed sample data";
    SessionBegun = "session.begun", "Logged in";
    SessionEnded = "session.ended", "Logged out one of their other sessions";
    SessionFailed = "session.failed", "Refused a login";
    SessionLoggedOut = "session.logged_out", "Logged out";
    SessionProved = "session.proved", "Confirmed that it’s them";
    SessionsEnded = "sessions.ended", "Logged out their other sessions";
    SettingsChanged = "settings.changed", "Changed the settings";
    SsoBreakGlassUsed = "single_sign_on.break_glass_used", "Logged in with a password although single sign-on is required";
    SsoChanged = "single_sign_on.changed", "Changed single sign-on";
    SsoLinked = "single_sign_on.linked", "Linked their login with single sign-on";
    SsoRemoved = "single_sign_on.removed", "Removed single sign-on";
    TokenCreated = "token.created", "Created an API token";
    TokenRevoked = "token.revoked", "Revoked an API token";
    ViewChanged = "view.changed", "Changed a saved view";
    ViewDeleted = "view.deleted", "Deleted a saved view";
    ViewRenamed = "view.renamed", "Renamed a saved view";
    ViewSaved = "view.saved", "Saved a view";
    WebhookAutoDisabled = "webhook.auto_disabled", "Disabled a webhook after repeated failures";
    WebhookChanged = "webhook.changed", "Changed a webhook";
    WebhookCreated = "webhook.created", "Created a webhook";
    WebhookDeleted = "webhook.deleted", "Deleted a webhook";
    WebhookDisabled = "webhook.disabled", "Disabled a webhook";
    WebhookEnabled = "webhook.enabled", "Enabled a webhook";
    WebhookSecretRotated = "webhook.secret_rotated", "Rotated a webhook's secret";
    WebhookTested = "webhook.tested", "Tested a webhook";
}

impl Action {
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|action| action.as_str() == word)
    }

    /// What the action is about: the first word, such as `webhook`.
    pub fn group(self) -> &'static str {
        let group = self.as_str().split('.').next().unwrap_or_default();
        if self == Self::SessionsEnded { Self::SessionBegun.group() } else { group }
    }

    /// Whether it is one of those that happen every day and would hide the others.
    pub const fn is_login(self) -> bool {
        matches!(self, Self::SessionBegun | Self::SessionFailed | Self::SessionLoggedOut)
    }

    /// Whether its target is an id. A saved view has none, so its target is the name that somebody gave it.
    pub fn targets_an_id(self) -> bool {
        self.group() != Self::ViewSaved.group()
    }
}

/// The word in place of a value that was erased.
pub const ERASED: &str = "erased";

/// The members of a detail that have numbers of rows, by table.
pub const REMOVED: &str = "removed";
pub const KEPT: &str = "kept";

/// An entry's detail without the values in it. It still says what was changed, added or removed.
pub fn erased(detail: &str) -> String {
    let erase = |value: Value| if value.is_null() { Value::Null } else { ERASED.into() };
    let members: Map<String, Value> = serde_json::from_str(detail).unwrap_or_default();
    let is_count = |name: &str, value: &Value| {
        let rows = value.as_object().filter(|_| name == REMOVED || name == KEPT);
        rows.is_some_and(|rows| rows.values().all(Value::is_number))
    };
    let members = members.into_iter().map(|(name, value)| match value {
        value if is_count(&name, &value) => (name, value),
        Value::Object(change)
            if change.len() == 2 && change.contains_key("from") && change.contains_key("to") =>
        {
            (name, change.into_iter().map(|(side, value)| (side, erase(value))).collect())
        }
        value => (name, erase(value)),
    });
    Value::Object(members.collect()).to_string()
}

/// The groups of actions, in alphabetical order.
pub fn groups() -> Vec<&'static str> {
    let mut groups: Vec<&str> = Action::ALL.iter().map(|action| action.group()).collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

/// The actions that a filter asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    One(Action),
    Group(&'static str),
}

impl Wanted {
    /// Reads an action, such as `webhook.created`, or a group, such as `webhook`.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let group = || groups().into_iter().find(|group| *group == text).map(Self::Group);
        Action::parse(text).map(Self::One).or_else(group).ok_or_else(|| {
            let detail = "must be an action, such as webhook.created, or a group, such as webhook";
            Fault::new("unknown_action", detail)
        })
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::One(action) => action.as_str(),
            Self::Group(group) => group,
        }
    }

    pub fn actions(self) -> impl Iterator<Item = Action> {
        let is_wanted = move |action: &Action| match self {
            Self::One(one) => one == *action,
            Self::Group(group) => group == action.group(),
        };
        Action::ALL.iter().copied().filter(is_wanted)
    }
}

/// Matches the entries that meet every condition given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filter {
    /// Who did it.
    pub person: Option<PersonId>,
    pub action: Option<Wanted>,
    /// Leaves out logins, failed logins and logouts.
    pub hides_logins: bool,
    /// At this time or later.
    pub from: Option<Time>,
    /// Before this time.
    pub to: Option<Time>,
}

impl Filter {
    /// Whether an entry with this action matches, whoever did it and whenever.
    pub fn admits_action(&self, word: &str) -> bool {
        let action = Action::parse(word);
        let is_wanted =
            |wanted: Wanted| action.is_some_and(|action| wanted.actions().any(|one| one == action));
        self.action.is_none_or(is_wanted) && !(self.hides_logins && action.is_some_and(Action::is_login))
    }

    /// The actions to look for, if only some are wanted.
    pub fn actions(&self) -> Option<Vec<Action>> {
        let hides_logins = self.hides_logins;
        self.action
            .map(|wanted| wanted.actions().filter(|action| !(hides_logins && action.is_login())).collect())
    }

    /// Reads a filter from its members. `logins` says whether logins are included.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let time = |value: &Value| {
            Time::parse(as_str(value)?).map_err(|error| Fault::new("malformed", error.to_string()))
        };
        let filter = Self {
            person: members.optional("person", |value| person_id(as_str(value)?)),
            action: members.optional("action", |value| Wanted::parse(as_str(value)?)),
            hides_logins: members.optional("logins", as_bool) == Some(false),
            from: members.optional("from", time),
            to: members.optional("to", time),
        };
        members.finish().map(|()| filter)
    }
}

pub fn person_id(text: &str) -> Result<PersonId, Fault> {
    text.parse().map_err(|_| Fault::new("malformed", "must be a person's id"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_has_its_own_word_and_label() {
        for (at, action) in Action::ALL.iter().enumerate() {
            assert_eq!(Action::parse(action.as_str()), Some(*action));
            assert!(
                action
                    .as_str()
                    .split_once('.')
                    .is_some_and(|(thing, done)| !thing.is_empty() && !done.is_empty())
            );
            assert!(Action::ALL[..at].iter().all(|other| other.label() != action.label()), "{action:?}");
        }
        assert_eq!(Action::parse("thing.was_done"), None);
    }

    #[test]
    fn a_group_has_all_actions_about_one_thing() {
        let words =
            |text: &str| Wanted::parse(text).unwrap().actions().map(Action::as_str).collect::<Vec<_>>();
        let sessions = [
            "session.begun",
            "session.ended",
            "session.failed",
            "session.logged_out",
            "session.proved",
            "sessions.ended",
        ];
        assert_eq!(words("session"), sessions);
        assert_eq!(words("token"), ["token.created", "token.revoked"]);
        assert_eq!(words("token.revoked"), ["token.revoked"]);
        for unknown in ["", "tok", "token.", "token.lost", "sessions", "Token"] {
            assert_eq!(Wanted::parse(unknown).unwrap_err().code, "unknown_action", "{unknown}");
        }
        let grouped: usize = groups().into_iter().map(|group| words(group).len()).sum();
        assert_eq!(grouped, Action::ALL.len(), "each action is in one group");
    }

    #[test]
    fn a_filter_hides_logins_and_nothing_else() {
        let all = Filter::default();
        let quiet = Filter { hides_logins: true, ..all };
        let hidden: Vec<&str> = Action::ALL
            .iter()
            .map(|action| action.as_str())
            .filter(|word| !quiet.admits_action(word))
            .collect();
        assert_eq!(hidden, ["session.begun", "session.failed", "session.logged_out"]);
        assert!(all.admits_action("session.begun") && quiet.admits_action("from.a_later_version"));
        let sessions = Filter { action: Some(Wanted::Group("session")), ..quiet };
        let kept = [Action::SessionEnded, Action::SessionProved, Action::SessionsEnded];
        assert_eq!(sessions.actions().as_deref(), Some(&kept[..]));
        assert!(sessions.admits_action("sessions.ended") && !sessions.admits_action("token.created"));
        assert_eq!(quiet.actions(), None);
    }

    #[test]
    fn an_erased_entry_says_what_was_changed_but_no_value() {
        let detail = serde_json::json!({
            "name": {"from": "Nordlys", "to": "Nordlys Bank"}, "imported_id": {"from": null, "to": "crm-1"},
            "custom_fields.owner": {"from": {"from": "Bo", "to": "Cy"}, "to": null}, "email": "bo@nordlys.test",
            "seats": 5, "nothing": null,
        });
        let expected = serde_json::json!({
            "name": {"from": "erased", "to": "erased"}, "imported_id": {"from": null, "to": "erased"},
            "custom_fields.owner": {"from": "erased", "to": null}, "email": "erased", "seats": "erased",
            "nothing": null,
        });
        let erased_once = erased(&detail.to_string());
        assert_eq!(serde_json::from_str::<Value>(&erased_once).unwrap(), expected);
        assert_eq!(erased(&erased_once), erased_once);
        assert_eq!(erased("not JSON"), "{}");
    }

    #[test]
    fn numbers_of_rows_are_no_values() {
        let detail = serde_json::json!({
            "name": "Nordlys", "removed": {"message": 3, "contact": 1}, "kept": {"event": 2}, "seats": {"a": 5},
        });
        let expected = serde_json::json!({
            "name": "erased", "removed": {"message": 3, "contact": 1}, "kept": {"event": 2}, "seats": "erased",
        });
        assert_eq!(serde_json::from_str::<Value>(&erased(&detail.to_string())).unwrap(), expected);
        assert_eq!(erased(r#"{"removed":{"by":"Bo"}}"#), r#"{"removed":"erased"}"#);
    }

    #[test]
    fn a_filter_names_every_bad_member() {
        let body =
            serde_json::json!({"person": "acc_1", "action": "x", "logins": "yes", "from": "may", "to": 5});
        let invalid = Filter::parse(body.as_object().unwrap()).unwrap_err();
        let faults: Vec<(&str, &str)> =
            invalid.0.iter().map(|error| (error.pointer.as_str(), error.code)).collect();
        let expected = [
            ("/person", "malformed"),
            ("/action", "unknown_action"),
            ("/logins", "wrong_type"),
            ("/from", "malformed"),
            ("/to", "wrong_type"),
        ];
        assert_eq!(faults, expected);
        assert_eq!(Filter::parse(&Map::new()).unwrap(), Filter::default());
    }
}
