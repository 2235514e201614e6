//! Events: something that happened, with a payload that is frozen at that moment.

use serde::Serialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use crate::account::{Account, AccountCore};
use crate::account_change::Changes;
use crate::cadence::Reminder;
use crate::company::Slug;
use crate::contact::Contact;
use crate::conversation::{Conversation, ConversationView, Message, MessageView};
use crate::id::{AccountId, EventId, WebhookId};
use crate::pipeline::{Move, Source, Status};
use crate::schema::{one_of, words};
use crate::time::Time;

/// The event kinds of the interface document, and those that a webhook has to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    AccountCreated,
    AccountStatusChanged,
    MessageInbound,
    WebhookTest,
    ClientContactDue,
    AccountUpdated,
    AccountDeleted,
    ContactLogged,
}

impl Kind {
    pub const ALL: [Self; 8] = [
        Self::AccountCreated,
        Self::AccountStatusChanged,
        Self::MessageInbound,
        Self::WebhookTest,
        Self::ClientContactDue,
        Self::AccountUpdated,
        Self::AccountDeleted,
        Self::ContactLogged,
    ];

    /// The kinds that are written only if a webhook of the company selects them (`opt_in`).
    pub const OPT_IN: [Self; 3] = [Self::AccountUpdated, Self::AccountDeleted, Self::ContactLogged];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AccountCreated => "account.created",
            Self::AccountStatusChanged => "account.status_changed",
            Self::MessageInbound => "message.inbound",
            Self::WebhookTest => "webhook.test",
            Self::ClientContactDue => "client.contact_due",
            Self::AccountUpdated => "account.updated",
            Self::AccountDeleted => "account.deleted",
            Self::ContactLogged => "contact.logged",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

words!(Kind, "EventKind", "All event types.");

/// An event as stored: the payload's bytes never change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub id: EventId,
    pub kind: Kind,
    pub account: Option<AccountId>,
    pub payload: String,
    pub created_at: Time,
}

/// An event as it is delivered.
#[derive(Serialize, ToSchema)]
struct Envelope<'a, D> {
    /// The same in every delivery of the event. Use it to recognize events that you already have.
    #[schema(value_type = String, example = "evt_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: EventId,
    #[serde(rename = "type")]
    kind: &'static str,
    /// When the event happened. The same in every attempt and redelivery.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// The company's slug.
    #[schema(example = "acme")]
    project: &'a str,
    #[schema(value_type = Object)]
    data: D,
}

#[derive(Serialize, ToSchema)]
struct Created<'a> {
    /// The account as it was created.
    account: AccountCore<'a>,
    /// What created it: never `automation`, because activity creates no accounts.
    source: Source,
}

#[derive(Serialize, ToSchema)]
struct Moved<'a> {
    /// The account after the move.
    account: AccountCore<'a>,
    /// The status that it left.
    previous_status: Status,
    /// The status that it has now. It differs from the previous one.
    status: Status,
    /// What moved it.
    source: Source,
}

#[derive(Serialize, ToSchema)]
struct ContactDue<'a> {
    /// The client.
    account: AccountCore<'a>,
    /// When contact was due.
    #[schema(value_type = String, format = DateTime)]
    due_at: Time,
    /// Whole days of 24 hours since then.
    days_overdue: i64,
    /// The cadence that applies: the account's own, or else the company's.
    cadence_days: i64,
}

#[derive(Serialize, ToSchema)]
struct Inbound<'a> {
    /// The account that the conversation is with.
    account: AccountCore<'a>,
    /// The conversation, with this message counted.
    conversation: ConversationView<'a>,
    /// The message. Of a long body, the first 20,000 characters.
    message: MessageView<'a>,
}

#[derive(Serialize, ToSchema)]
struct Updated<'a> {
    /// The account after the change.
    account: AccountCore<'a>,
    /// The changed members by name. A move isn't among them: `account.status_changed` reports it.
    #[schema(value_type = std::collections::BTreeMap<String, crate::account_change::Changed>)]
    changes: Changes,
    source: Source,
}

#[derive(Serialize, ToSchema)]
struct Deleted<'a> {
    /// The account as it was.
    account: AccountCore<'a>,
    source: Source,
}

#[derive(Serialize, ToSchema)]
struct Contacted<'a> {
    account: AccountCore<'a>,
    /// The contact that was recorded. Null if the contact is an outbound message.
    #[schema(required = true)]
    contact: Option<&'a Contact>,
    /// The conversation of the outbound message. Null if a contact was recorded.
    #[schema(required = true)]
    conversation: Option<ConversationView<'a>>,
    /// The outbound message that was logged. Null if a contact was recorded.
    #[schema(required = true)]
    message: Option<MessageView<'a>>,
}

#[derive(Serialize, ToSchema)]
struct Test<'a> {
    /// An account that doesn't exist.
    account: AccountCore<'a>,
    #[schema(value_type = String, example = "whk_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    /// The webhook that is tested.
    webhook_id: WebhookId,
    /// A sentence for people.
    message: &'static str,
}

/// A schema, and the named schemas that it refers to.
pub type Described = (RefOr<Schema>, Vec<(String, RefOr<Schema>)>);

impl Kind {
    /// The schema of its payload.
    pub fn payload_schema(self) -> Described {
        match self {
            Self::AccountCreated => self.describe::<Created>(),
            Self::AccountStatusChanged => self.describe::<Moved>(),
            Self::MessageInbound => self.describe::<Inbound>(),
            Self::WebhookTest => self.describe::<Test>(),
            Self::ClientContactDue => self.describe::<ContactDue>(),
            Self::AccountUpdated => self.describe::<Updated>(),
            Self::AccountDeleted => self.describe::<Deleted>(),
            Self::ContactLogged => self.describe::<Contacted>(),
        }
    }

    fn describe<D: ToSchema>(self) -> Described {
        let mut named = Vec::new();
        D::schemas(&mut named);
        // Any envelope will do, as its data is replaced.
        let mut payload = <Envelope<String> as PartialSchema>::schema();
        if let RefOr::T(Schema::Object(envelope)) = &mut payload {
            let kind = one_of([self.as_str()]).description(Some("The event's type."));
            envelope.properties.insert("type".to_owned(), kind.into());
            let mut data = D::schema();
            if let RefOr::T(Schema::Object(data)) = &mut data {
                data.description = Some("What happened. Its members depend on the type.".to_owned());
            }
            envelope.properties.insert("data".to_owned(), data);
        }
        (payload, named)
    }
}

/// The id, time and company that a payload carries.
#[derive(Clone, Copy)]
pub struct Occasion<'a> {
    pub id: EventId,
    pub now: Time,
    pub project: &'a Slug,
}

impl Occasion<'_> {
    fn freeze<D: Serialize>(self, kind: Kind, account: Option<AccountId>, data: D) -> Event {
        let Self { id, now, project } = self;
        let envelope = Envelope { id, kind: kind.as_str(), created_at: now, project: project.as_str(), data };
        let payload = serde_json::to_string(&envelope).expect("payload types always serialize");
        Event { id, kind, account, payload, created_at: now }
    }
}

pub fn account_created(occasion: Occasion, account: &Account, source: Source) -> Event {
    occasion.freeze(Kind::AccountCreated, Some(account.id), Created { account: account.core(), source })
}

pub fn status_changed(occasion: Occasion, account: &Account, step: Move, source: Source) -> Event {
    let data = Moved { account: account.core(), previous_status: step.from, status: step.to, source };
    occasion.freeze(Kind::AccountStatusChanged, Some(account.id), data)
}

/// A tracked client became overdue for contact.
pub fn contact_due(occasion: Occasion, account: &Account, reminder: Reminder) -> Event {
    let Reminder { due_at, days_overdue, cadence_days } = reminder;
    let data = ContactDue { account: account.core(), due_at, days_overdue, cadence_days };
    occasion.freeze(Kind::ClientContactDue, Some(account.id), data)
}

/// A person outside the company wrote to it.
pub fn message_inbound(
    occasion: Occasion,
    account: &Account,
    conversation: &Conversation,
    message: &Message,
) -> Event {
    let (account_id, account) = (account.id, account.core());
    let data = Inbound { account, conversation: conversation.view(), message: message.payload_view() };
    occasion.freeze(Kind::MessageInbound, Some(account_id), data)
}

/// Members of an account changed.
pub fn account_updated(occasion: Occasion, account: &Account, changes: Changes, source: Source) -> Event {
    let data = Updated { account: account.core(), changes, source };
    occasion.freeze(Kind::AccountUpdated, Some(account.id), data)
}

/// An account was deleted. The payload has it as it was.
pub fn account_deleted(occasion: Occasion, account: &Account, source: Source) -> Event {
    occasion.freeze(Kind::AccountDeleted, Some(account.id), Deleted { account: account.core(), source })
}

/// Somebody recorded contact with an account.
pub fn contact_recorded(occasion: Occasion, account: &Account, contact: &Contact) -> Event {
    let data =
        Contacted { account: account.core(), contact: Some(contact), conversation: None, message: None };
    occasion.freeze(Kind::ContactLogged, Some(account.id), data)
}

/// An outbound message was logged, which is contact too.
pub fn contact_by_message(
    occasion: Occasion,
    account: &Account,
    conversation: &Conversation,
    message: &Message,
) -> Event {
    let data = Contacted {
        account: account.core(),
        contact: None,
        conversation: Some(conversation.view()),
        message: Some(message.payload_view()),
    };
    occasion.freeze(Kind::ContactLogged, Some(account.id), data)
}

/// The synthetic event of the Test button, with an account that doesn't exist.
pub fn webhook_test(occasion: Occasion, webhook: WebhookId) -> Event {
    let id = AccountId::from_bytes([0; 16]);
    let mut account = Account::new(id, "Test account".to_owned(), Status::Prospect, occasion.now);
    account.imported_id = Some("test".to_owned());
    let message = "This is a test event. It is delivered the same way as any other event.";
    occasion.freeze(Kind::WebhookTest, None, Test { account: account.core(), webhook_id: webhook, message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn payloads_have_the_decided_members() {
        let now = Time::parse("2026-05-12T08:30:00Z").unwrap();
        let slug = Slug::parse("acme").unwrap();
        let occasion = Occasion { id: EventId::from_bytes([2; 16]), now, project: &slug };
        let mut account = Account::new(AccountId::from_bytes([1; 16]), "Nordlys".into(), Status::Lost, now);
        let created = account_created(occasion, &account, Source::Upsert);
        let payload: Value = serde_json::from_str(&created.payload).unwrap();
        assert_eq!(payload["id"], json!(occasion.id.to_string()));
        assert_eq!(payload["type"], json!("account.created"));
        assert_eq!(payload["created_at"], json!("2026-05-12T08:30:00Z"));
        assert_eq!(payload["project"], json!("acme"));
        assert_eq!(payload["data"]["source"], json!("upsert"));
        assert_eq!(payload["data"]["account"]["imported_id"], Value::Null);
        assert!(payload["data"]["account"].as_object().unwrap().contains_key("imported_id"));
        assert_eq!(payload["data"]["account"].as_object().unwrap().len(), 15);

        account.status = Status::InTrial;
        let step = Move { from: Status::Lost, to: Status::InTrial };
        let moved = status_changed(occasion, &account, step, Source::Automation);
        let payload: Value = serde_json::from_str(&moved.payload).unwrap();
        assert_eq!(payload["data"]["previous_status"], json!("lost"));
        assert_eq!(payload["data"]["status"], json!("in_trial"));
        assert_eq!(payload["data"]["account"]["status"], json!("in_trial"));
        assert_eq!(payload["data"]["source"], json!("automation"));

        let reminder = Reminder { due_at: now, days_overdue: 3, cadence_days: 42 };
        let due = contact_due(occasion, &account, reminder);
        let payload: Value = serde_json::from_str(&due.payload).unwrap();
        assert_eq!(payload["type"], json!("client.contact_due"));
        assert_eq!(payload["data"]["account"]["id"], json!(account.id.to_string()));
        assert_eq!(payload["data"]["due_at"], json!("2026-05-12T08:30:00Z"));
        assert_eq!(payload["data"]["days_overdue"], json!(3));
        assert_eq!(payload["data"]["cadence_days"], json!(42));
        assert_eq!(payload["data"].as_object().unwrap().len(), 4);
    }

    #[test]
    fn opt_in_payloads_have_the_decided_members() {
        let now = Time::parse("2026-05-12T08:30:00Z").unwrap();
        let slug = Slug::parse("acme").unwrap();
        let occasion = Occasion { id: EventId::from_bytes([2; 16]), now, project: &slug };
        let before = Account::new(AccountId::from_bytes([1; 16]), "Nordlys".into(), Status::Lost, now);
        let account = Account { name: "Nordlys AS".into(), ..before.clone() };
        let changes = crate::account_change::between(&before, &account);
        let contact = Contact {
            id: crate::id::ContactId::from_bytes([3; 16]),
            account: account.id,
            kind: crate::contact::Kind::Call,
            note: None,
            actor: crate::history::Actor::System,
            occurred_at: now,
            created_at: now,
        };
        let data = |event: Event| {
            let payload: Value = serde_json::from_str(&event.payload).unwrap();
            assert_eq!(payload["type"], json!(event.kind.as_str()));
            assert_eq!(payload["data"]["account"]["name"], json!("Nordlys AS"));
            payload["data"].clone()
        };
        let updated = data(account_updated(occasion, &account, changes, Source::Import));
        assert_eq!(updated["changes"], json!({"name": {"old": "Nordlys", "new": "Nordlys AS"}}));
        assert_eq!(updated["source"], json!("import"));
        let deleted = data(account_deleted(occasion, &account, Source::Operator));
        assert_eq!((deleted.as_object().unwrap().len(), &deleted["source"]), (2, &json!("operator")));
        let logged = data(contact_recorded(occasion, &account, &contact));
        assert_eq!(logged["contact"]["kind"], json!("call"));
        assert_eq!((&logged["conversation"], &logged["message"]), (&Value::Null, &Value::Null));
        assert_eq!(logged.as_object().unwrap().len(), 4);
    }
}
