//! What the kinds of events mean, in words.

use rapport_domain::event::Kind;

/// What happened, in a few words.
pub const fn summary(kind: Kind) -> &'static str {
    match kind {
        Kind::AccountCreated => "An account was created",
        Kind::AccountStatusChanged => "An account moved to another status",
        Kind::MessageInbound => "An inbound message was logged",
        Kind::WebhookTest => "Someone tested the webhook",
        Kind::ClientContactDue => "A client became overdue for contact",
        Kind::AccountUpdated => "Members of an account changed",
        Kind::AccountDeleted => "An account was deleted",
        Kind::ContactLogged => "Contact with an account was logged",
    }
}

/// When an event of this kind is sent. The words in backticks are values of `source`.
pub const fn when(kind: Kind) -> &'static str {
    match kind {
        Kind::AccountCreated => {
            "An account was created: by a person or through the API (`operator`), by an upsert (`upsert`), an import \
             (`import`), a lookup of a domain (`lookup`) or an inbound mail (`inbound`). Activity never creates accounts."
        }
        Kind::AccountStatusChanged => {
            "An account moved to another stage: by a person or through the API (`operator`), by an upsert (`upsert`), \
             an import or its undoing (`import`), or by activity (`automation`). A new account doesn't move, so it has \
             only `account.created`."
        }
        Kind::MessageInbound => {
            "A message from an account was logged: by a person, through the API or from a mail. Automatic mails, such \
             as out-of-office replies, send nothing."
        }
        Kind::WebhookTest => {
            "Someone sent a test to this webhook. It has an account that doesn't exist, and goes to this webhook \
             whatever it selects."
        }
        Kind::ClientContactDue => {
            "A tracked client became overdue for contact. Sent once until the next contact, and not while the client \
             is snoozed."
        }
        Kind::AccountUpdated => {
            "Members of an account changed: by a person or through the API (`operator`), by an upsert (`upsert`), an \
             import or its undoing (`import`), or by activity that captures a value (`automation`). A move alone sends \
             only `account.status_changed`. Sent only to webhooks that select it by name."
        }
        Kind::AccountDeleted => {
            "An account was deleted: by a person or through the API (`operator`), or by undoing an import (`import`). The \
             payload has the account as it was. Sent only to webhooks that select it by name."
        }
        Kind::ContactLogged => {
            "Contact with an account was recorded, or an outbound message was logged. Either resets the contact cadence. \
             Sent only to webhooks that select it by name."
        }
    }
}
