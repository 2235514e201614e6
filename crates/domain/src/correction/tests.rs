use serde_json::json;

use super::content::Correctable;
use super::*;
use crate::contact::{self, Contact};
use crate::conversation::{Direction, Message, Sender};
use crate::id::{ConversationId, CredentialId, PersonId};
use crate::note::Note;
use crate::sender_check::{Method, SenderCheck};

const NOW: Time = Time::from_micros(1_800_000_000_123_456);

fn ada() -> Actor {
    Actor::Person { id: PersonId::from_bytes([1; 16]), name: "Ada".to_owned() }
}

fn correction(entry: Entry, act: Act, kept: Kept) -> Correction {
    Correction {
        id: CorrectionId::from_bytes([9; 16]),
        account: AccountId::from_bytes([2; 16]),
        entry,
        act,
        author: ada(),
        done: Mark { at: NOW, by: ada() },
        fields: kept.became.keys().cloned().collect(),
        kept: Some(kept),
        undone: None,
    }
}

fn contact() -> Contact {
    Contact {
        id: ContactId::from_bytes([3; 16]),
        account: AccountId::from_bytes([2; 16]),
        kind: contact::Kind::Call,
        note: Some("Rang twice".to_owned()),
        actor: ada(),
        occurred_at: NOW.plus_days(-3),
        created_at: NOW,
    }
}

fn message() -> Message {
    Message {
        id: MessageId::from_bytes([4; 16]),
        conversation: ConversationId::from_bytes([5; 16]),
        account: AccountId::from_bytes([2; 16]),
        direction: Direction::Outbound,
        channel: "email".to_owned(),
        subject: None,
        body: "Hello\n\u{1F600}".to_owned(),
        body_truncated: true,
        author: ada(),
        sender: Some(Sender { address: "ana@x.test".to_owned(), name: None }),
        sender_check: Some(SenderCheck { relay: "mx.test".to_owned(), method: Some(Method::Dkim) }),
        attachments: Some("[]".to_owned()),
        automatic: false,
        occurred_at: NOW.plus_days(-3),
        created_at: NOW,
    }
}

fn note() -> Note {
    Note {
        id: NoteId::from_bytes([6; 16]),
        account: AccountId::from_bytes([2; 16]),
        text: "Likes tea".to_owned(),
        pinned: true,
        author: ada(),
        created_at: NOW,
    }
}

/// A deletion keeps everything, and an edit puts back what it changed.
fn check<T: Correctable + PartialEq + std::fmt::Debug>(entry: &T, edited: Content) {
    let kept = Kept { was: entry.kept(), became: Content::new() };
    let deletion = correction(entry.entry(), Act::Deleted, kept.clone());
    // As storage keeps it.
    let stored: Content = serde_json::from_str(&serde_json::to_string(&kept.was).unwrap()).unwrap();
    assert_eq!(T::restored(&deletion, &stored).as_ref(), Some(entry));
    let foreign =
        Entry::from_parts(Kind::ALL.into_iter().find(|kind| *kind != entry.entry().kind()).unwrap(), [7; 16]);
    assert_eq!(T::restored(&Correction { entry: foreign, ..deletion }, &stored), None);
    let (mut changed, before) = (entry.clone(), entry.content());
    assert_eq!(changed.put(&edited), Some(()));
    assert_ne!(&changed, entry);
    assert_eq!(changed.put(&before), Some(()));
    assert_eq!(&changed, entry);
    assert_eq!(changed.put(json!({"id": "x"}).as_object().unwrap()), None);
}

#[test]
fn what_is_kept_restores_an_entry_exactly() {
    let members = |value: Value| value.as_object().unwrap().clone();
    check(&contact(), members(json!({"kind": "other", "note": null, "occurred_at": "2020-01-01T00:00:00Z"})));
    let edited = json!({"direction": "inbound", "body": "x", "channel": "chat", "subject": "y",
        "occurred_at": "2020-01-01T00:00:00Z"});
    check(&message(), members(edited));
    check(&note(), members(json!({"text": "Likes coffee", "pinned": false})));
}

#[test]
fn an_entry_is_named_by_its_id() {
    for entry in [contact().entry(), message().entry(), note().entry()] {
        assert_eq!(Entry::parse(&entry.id_text()), Some(entry));
        assert_eq!(Entry::from_parts(entry.kind(), *entry.id_bytes()), entry);
    }
    assert_eq!(Entry::parse("acc_01jz3v8m5xqkf0t6b2n9rc7d4e"), None);
}

#[test]
fn an_entry_counts_as_contact_as_before() {
    assert_eq!(contact().contact_at(), Some(NOW.plus_days(-3)));
    assert_eq!(message().contact_at(), Some(NOW.plus_days(-3)));
    assert_eq!(Message { direction: Direction::Inbound, ..message() }.contact_at(), None);
    assert_eq!(Message { automatic: true, ..message() }.contact_at(), None);
    assert_eq!(note().contact_at(), None);
}

#[test]
fn a_correction_is_undone_only_if_nothing_came_in_between() {
    let members = |value: Value| value.as_object().unwrap().clone();
    let kept = Kept { was: members(json!({"kind": "call"})), became: members(json!({"kind": "meeting"})) };
    let entry = Entry::Contact(ContactId::from_bytes([3; 16]));
    let edit = || correction(entry, Act::Edited, kept.clone());
    let deletion = || correction(entry, Act::Deleted, Kept { became: Content::new(), ..kept.clone() });
    let forgotten = |of: Correction| Correction { kept: None, ..of };
    let undone = |of: Correction| Correction { undone: Some(Mark { at: NOW, by: ada() }), ..of };
    let as_left = || Some(members(json!({"kind": "meeting", "note": "whatever"})));
    let changed = || Some(members(json!({"kind": "email", "note": null})));
    let last = NOW.plus_days(UNDO_DAYS).plus_seconds(-1);
    let table = [
        ("an edit", edit(), as_left(), NOW, Ok(&kept)),
        ("an edit on the last day", edit(), as_left(), last, Ok(&kept)),
        ("an edit after that", edit(), as_left(), NOW.plus_days(UNDO_DAYS), Err(Refused::Expired)),
        ("the member was edited again", edit(), changed(), NOW, Err(Refused::Changed)),
        ("the entry was deleted", edit(), None, NOW, Err(Refused::Changed)),
        ("twice", undone(edit()), as_left(), NOW, Err(Refused::Undone)),
        ("forgotten", forgotten(edit()), as_left(), NOW, Err(Refused::Expired)),
    ];
    for (what, correction, current, now, expected) in table {
        assert_eq!(correction.undo(current.as_ref(), now), expected, "{what}");
    }
    assert!(deletion().undo(None, NOW).is_ok());
    assert_eq!(deletion().undo(as_left().as_ref(), NOW), Err(Refused::Changed));
    assert_eq!(undone(deletion()).undo(None, NOW), Err(Refused::Undone));
    let open = |correction: Correction, now| correction.is_open(now);
    assert!(open(edit(), last) && !open(edit(), NOW.plus_days(UNDO_DAYS)));
    assert!(!open(undone(edit()), NOW) && !open(forgotten(deletion()), NOW));
}

#[test]
fn authors_and_those_with_the_right_may_correct() {
    let renamed = Actor::Person { id: PersonId::from_bytes([1; 16]), name: "Ada L.".to_owned() };
    let bob = Actor::Person { id: PersonId::from_bytes([2; 16]), name: "Ada".to_owned() };
    let token = Actor::Token { id: CredentialId::from_bytes([1; 16]), name: "Ada".to_owned() };
    let table = [(ada(), true), (renamed, true), (bob, false), (token, false), (Actor::System, false)];
    for (caller, expected) in table {
        assert_eq!(may_correct(&ada(), &caller, false), expected, "{caller:?}");
        assert!(may_correct(&ada(), &caller, true));
    }
}

#[test]
fn what_was_changed_is_shown_only_to_those_who_may_correct() {
    let kept = Kept { was: contact().kept(), became: Content::new() };
    let deletion = correction(contact().entry(), Act::Deleted, kept);
    let shown = |may: bool| serde_json::to_value(deletion.view(may, NOW)).unwrap();
    assert_eq!(shown(true)["before"]["note"], json!("Rang twice"));
    assert_eq!((&shown(true)["after"], &shown(true)["can_undo"]), (&Value::Null, &json!(true)));
    assert_eq!((&shown(false)["before"], &shown(false)["can_undo"]), (&Value::Null, &json!(false)));
    assert_eq!((&shown(false)["entry_type"], &shown(false)["act"]), (&json!("contact"), &json!("deleted")));
}
