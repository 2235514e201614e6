//! What the audit log records.

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
    AccountPayloadsErased = "account.payloads_erased", "Erased an account's payloads";
    CampaignChanged = "campaign.changed", "Changed a campaign";
    CampaignCreated = "campaign.created", "Created a campaign";
    CampaignDeleted = "campaign.deleted", "Deleted a campaign";
    ChannelCreated = "channel.created", "Created a channel";
    ChannelDeleted = "channel.deleted", "Deleted a channel";
    ChannelRenamed = "channel.renamed", "Renamed a channel";
    CompanyCreated = "company.created", "Created the company";
    DeliveryRedelivered = "delivery.redelivered", "Redelivered a delivery";
    DigestSent = "digest.sent", "Sent the digest";
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
    MemberAdded = "member.added", "Added a member";
    MemberChanged = "member.changed", "Changed a member";
    MemberRemoved = "member.removed", "Removed a member";
    PasswordChanged = "password.changed", "Changed the password";
    PasswordResetSent = "password_reset.sent", "Sent a password-reset link";
    PersonRenamed = "person.renamed", "Changed their name";
    PromoCodeArchived = "promo_code.archived", "Archived a promo code";
    PromoCodeCreated = "promo_code.created", "Created a promo code";
    PromoCodeDeleted = "promo_code.deleted", "Deleted a promo code";
    PromoCodeRestored = "promo_code.restored", "Restored a promo code";
    RedeliveryCancelled = "redelivery.cancelled", "Cancelled a bulk redelivery";
    RedeliveryStarted = "redelivery.started", "Started a bulk redelivery";
    SessionBegun = "session.begun", "Logged in";
    SessionsEnded = "sessions.ended", "Logged out their other sessions";
    SettingsChanged = "settings.changed", "Changed the settings";
    TokenCreated = "token.created", "Created an API token";
    TokenRevoked = "token.revoked", "Revoked an API token";
    WebhookAutoDisabled = "webhook.auto_disabled", "Disabled a webhook after repeated failures";
    WebhookChanged = "webhook.changed", "Changed a webhook";
    WebhookCreated = "webhook.created", "Created a webhook";
    WebhookDeleted = "webhook.deleted", "Deleted a webhook";
    WebhookDisabled = "webhook.disabled", "Disabled a webhook";
    WebhookEnabled = "webhook.enabled", "Enabled a webhook";
    WebhookSecretRotated = "webhook.secret_rotated", "Rotated a webhook's secret";
}

impl Action {
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|action| action.as_str() == word)
    }
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
}
