//! What an entry consists of: the members that can be edited, and everything that is kept when it is deleted.

use serde_json::{Value, json};

use super::{Content, Correction, Entry};
use crate::contact::{self, Contact};
use crate::conversation::{Direction, Message, Sender};
use crate::history::Actor;
use crate::id::AccountId;
use crate::note::Note;
use crate::sender_check::{Method, SenderCheck};
use crate::time::Time;

/// Something that can be corrected.
pub trait Correctable: Clone + Send + 'static {
    fn entry(&self) -> Entry;

    fn account(&self) -> AccountId;

    /// Who logged it.
    fn author(&self) -> &Actor;

    /// When it counts as contact; `None` if it doesn't.
    fn contact_at(&self) -> Option<Time>;

    /// The members that can be edited.
    fn content(&self) -> Content;

    /// Replaces these members; `None` if they aren't what `content` writes.
    fn put(&mut self, content: &Content) -> Option<()>;

    /// Everything, for a deletion.
    fn kept(&self) -> Content;

    /// The entry that a correction deleted; `None` if it isn't what `kept` writes.
    fn restored(correction: &Correction, kept: &Content) -> Option<Self>;
}

impl Correctable for Contact {
    fn entry(&self) -> Entry {
        Entry::Contact(self.id)
    }

    fn account(&self) -> AccountId {
        self.account
    }

    fn author(&self) -> &Actor {
        &self.actor
    }

    fn contact_at(&self) -> Option<Time> {
        Some(self.occurred_at)
    }

    fn content(&self) -> Content {
        members(json!({
            "kind": self.kind.as_str(), "note": self.note, "occurred_at": self.occurred_at.to_string(),
        }))
    }

    fn put(&mut self, content: &Content) -> Option<()> {
        for (name, value) in content {
            match name.as_str() {
                "kind" => self.kind = contact::Kind::parse(value.as_str()?).ok()?,
                "note" => self.note = text(value),
                "occurred_at" => self.occurred_at = time(value)?,
                _ => return None,
            }
        }
        Some(())
    }

    fn kept(&self) -> Content {
        let mut kept = self.content();
        kept.insert("created_at".to_owned(), self.created_at.to_string().into());
        kept
    }

    fn restored(correction: &Correction, kept: &Content) -> Option<Self> {
        let Entry::Contact(id) = correction.entry else { return None };
        Some(Self {
            id,
            account: correction.account,
            kind: contact::Kind::parse(kept.get("kind")?.as_str()?).ok()?,
            note: text(kept.get("note")?),
            actor: correction.author.clone(),
            occurred_at: time(kept.get("occurred_at")?)?,
            created_at: time(kept.get("created_at")?)?,
        })
    }
}

impl Correctable for Message {
    fn entry(&self) -> Entry {
        Entry::Message(self.id)
    }

    fn account(&self) -> AccountId {
        self.account
    }

    fn author(&self) -> &Actor {
        &self.author
    }

    fn contact_at(&self) -> Option<Time> {
        self.is_contact().then_some(self.occurred_at)
    }

    fn content(&self) -> Content {
        members(json!({
            "direction": self.direction.as_str(), "body": self.body, "channel": self.channel, "subject": self.subject,
            "occurred_at": self.occurred_at.to_string(),
        }))
    }

    fn put(&mut self, content: &Content) -> Option<()> {
        for (name, value) in content {
            match name.as_str() {
                "direction" => self.direction = Direction::parse(value.as_str()?).ok()?,
                "body" => self.body = text(value)?,
                "channel" => self.channel = text(value)?,
                "subject" => self.subject = text(value),
                "occurred_at" => self.occurred_at = time(value)?,
                _ => return None,
            }
        }
        Some(())
    }

    fn kept(&self) -> Content {
        let mut kept = self.content();
        kept.append(&mut members(json!({
            "conversation_id": self.conversation.to_string(), "body_truncated": self.body_truncated,
            "sender": self.sender, "sender_check": self.sender_check.as_ref().map(|check| {
                json!({"relay": check.relay, "method": check.method.map(Method::as_str)})
            }),
            "attachments": self.attachments, "automatic": self.automatic,
            "created_at": self.created_at.to_string(),
        })));
        kept
    }

    fn restored(correction: &Correction, kept: &Content) -> Option<Self> {
        let Entry::Message(id) = correction.entry else { return None };
        Some(Self {
            id,
            conversation: kept.get("conversation_id")?.as_str()?.parse().ok()?,
            account: correction.account,
            direction: Direction::parse(kept.get("direction")?.as_str()?).ok()?,
            channel: text(kept.get("channel")?)?,
            subject: text(kept.get("subject")?),
            body: text(kept.get("body")?)?,
            body_truncated: kept.get("body_truncated")?.as_bool()?,
            author: correction.author.clone(),
            sender: sender(kept.get("sender")?),
            sender_check: sender_check(kept.get("sender_check")?),
            attachments: text(kept.get("attachments")?),
            automatic: kept.get("automatic")?.as_bool()?,
            occurred_at: time(kept.get("occurred_at")?)?,
            created_at: time(kept.get("created_at")?)?,
        })
    }
}

impl Correctable for Note {
    fn entry(&self) -> Entry {
        Entry::Note(self.id)
    }

    fn account(&self) -> AccountId {
        self.account
    }

    fn author(&self) -> &Actor {
        &self.author
    }

    fn contact_at(&self) -> Option<Time> {
        None
    }

    fn content(&self) -> Content {
        members(json!({ "text": self.text, "pinned": self.pinned }))
    }

    fn put(&mut self, content: &Content) -> Option<()> {
        for (name, value) in content {
            match name.as_str() {
                "text" => self.text = text(value)?,
                "pinned" => self.pinned = value.as_bool()?,
                _ => return None,
            }
        }
        Some(())
    }

    fn kept(&self) -> Content {
        let mut kept = self.content();
        kept.insert("created_at".to_owned(), self.created_at.to_string().into());
        kept
    }

    fn restored(correction: &Correction, kept: &Content) -> Option<Self> {
        let Entry::Note(id) = correction.entry else { return None };
        Some(Self {
            id,
            account: correction.account,
            text: text(kept.get("text")?)?,
            pinned: kept.get("pinned")?.as_bool()?,
            author: correction.author.clone(),
            created_at: time(kept.get("created_at")?)?,
        })
    }
}

fn members(value: Value) -> Content {
    if let Value::Object(members) = value { members } else { Content::new() }
}

/// `None` if the value is null or not a text.
fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn time(value: &Value) -> Option<Time> {
    Time::parse(value.as_str()?).ok()
}

fn sender(value: &Value) -> Option<Sender> {
    Some(Sender { address: text(&value["address"])?, name: text(&value["name"]) })
}

fn sender_check(value: &Value) -> Option<SenderCheck> {
    let method = value["method"].as_str().and_then(Method::parse);
    Some(SenderCheck { relay: text(&value["relay"])?, method })
}
