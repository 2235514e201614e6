//! Edits and deletes what was logged on an account, undoes that, and adds and pins notes.

use axum::response::Response;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rapport_app::Answer;
use rapport_app::correction::{DeleteEntry, EditEntry, UndoCorrection};
use rapport_app::note::AddNote;
use rapport_domain::correction::edit::Edit;
use rapport_domain::correction::{Correction, Entry, Kind};
use rapport_domain::id::{AccountId, CorrectionId};
use rapport_domain::invalid::Invalid;
use rapport_domain::note::NewNote;
use rapport_domain::time::Time;
use serde_json::{Map, Value, json};

use super::clock::next;
use super::page::AccountPage;
use super::words::take_local_time;
use super::{account_now, back, path_of, was};
use crate::pages::WORK;
use crate::pages::kit::action::Action;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::origin::own_path;
use crate::pages::kit::refusal::Refusal;

const WHEN: &str = "occurred_at";

pub async fn add_note(action: Action<AccountId>) -> Result<Response, Refusal> {
    let members = action.form.members(&[("text", As::Text), ("pinned", As::Ticked)]);
    let note = NewNote::parse(&members).map(|note| AddNote { account: action.id, note });
    action.run(note, |page: &mut AccountPage, draft| page.forms.note = draft).await?;
    action.done(&back(&action), "Note added.")
}

/// Saves the fields of an entry that were changed.
pub async fn edit(action: Action<(AccountId, Entry)>) -> Result<Response, Refusal> {
    let (account, entry) = action.id;
    let Answer { company, now, .. } = account_now(&action, account, WORK).await?;
    let edit = read(&action.form, entry.kind(), &company.settings.time_zone, now);
    let command = edit.map(|edit| EditEntry { target: action.id.into(), edit });
    let done = action.run(command, |page: &mut AccountPage, draft| page.forms.entry = draft).await?;
    let flash = match done.correction {
        Some(id) => {
            let due = due_after(&action, account, entry).await?;
            undoable(format!("{} changed{due}.", label(entry.kind())), account, id, &action.form)
        }
        None => Flash::good("Nothing was changed."),
    };
    action.done(&back_of(&action.form, account), flash)
}

pub async fn delete(action: Action<(AccountId, Entry)>) -> Result<Response, Refusal> {
    let (account, entry) = action.id;
    let Correction { id, .. } = action.act::<AccountPage, _>(DeleteEntry(action.id.into())).await?;
    let due = due_after(&action, account, entry).await?;
    let flash = undoable(format!("{} deleted{due}.", label(entry.kind())), account, id, &action.form);
    action.done(&back_of(&action.form, account), flash)
}

/// Pins a note, or unpins it.
pub async fn pin(action: Action<(AccountId, Entry)>) -> Result<Response, Refusal> {
    let account = action.id.0;
    let pinned = action.form.is_ticked("pinned");
    let members: Map<String, Value> = [("pinned".to_owned(), Value::from(pinned))].into_iter().collect();
    let command = match action.id.1 {
        Entry::Note(_) => Edit::of_note(&members).map(|edit| EditEntry { target: action.id.into(), edit }),
        Entry::Contact(_) | Entry::Message(_) => return Err(Refusal::not_found("note")),
    };
    let done = action.run(command, |page: &mut AccountPage, draft| page.forms.entry = draft).await?;
    let text = if pinned { "Note pinned." } else { "Note unpinned." };
    let flash = match done.correction {
        Some(id) => undoable(text.to_owned(), account, id, &action.form),
        None => Flash::good(text),
    };
    action.done(&back_of(&action.form, account), flash)
}

pub async fn undo(action: Action<(AccountId, CorrectionId)>) -> Result<Response, Refusal> {
    let (account, id) = action.id;
    let undone = action.act::<AccountPage, _>(UndoCorrection { account, id }).await?;
    let due = due_after(&action, account, undone.entry).await?;
    let text = format!("{} restored{due}.", label(undone.entry.kind()));
    action.done(&back_of(&action.form, account), text)
}

/// A message about a correction, with a button that undoes it.
fn undoable(text: String, account: AccountId, id: CorrectionId, form: &Form) -> Flash {
    let fields = vec![("next".to_owned(), form.text("next").to_owned())];
    Flash::good(text).undo(format!("{}/corrections/{id}/undo", path_of(account)), fields)
}

fn back_of(form: &Form, account: AccountId) -> String {
    form.given("next").map_or_else(|| path_of(account), own_path)
}

/// Says when the next contact is due, if that can have changed, as the end of a sentence.
async fn due_after<I: Send + Sync>(
    action: &Action<I>,
    account: AccountId,
    entry: Entry,
) -> Result<String, Refusal> {
    if entry.kind() == Kind::Note {
        return Ok(String::new());
    }
    Ok(next(&account_now(action, account, WORK).await?))
}

const fn label(kind: Kind) -> &'static str {
    match kind {
        Kind::Contact => "Contact",
        Kind::Message => "Message",
        Kind::Note => "Note",
    }
}

/// The fields that were changed. The others are left out, because someone else may have changed them meanwhile.
fn read(form: &Form, kind: Kind, zone: &TimeZone, now: Time) -> Result<Edit, Invalid> {
    let fields: &[(&str, As)] = match kind {
        Kind::Contact => &[("kind", As::Text), ("note", As::Clearable), (WHEN, As::Text)],
        Kind::Message => &[
            ("direction", As::Text),
            ("subject", As::Clearable),
            ("channel", As::Text),
            ("body", As::Text),
            (WHEN, As::Text),
        ],
        Kind::Note => &[("text", As::Text)],
    };
    let mut members = form.members(fields);
    // A text can be changed but not removed.
    let text = match kind {
        Kind::Contact => None,
        Kind::Message => Some("body"),
        Kind::Note => Some("text"),
    };
    if let Some(text) = text {
        members.entry(text).or_insert_with(|| json!(""));
    }
    members.retain(|name, _| is_changed(form, name));
    take_local_time(&mut members, WHEN, zone);
    match kind {
        Kind::Contact => Edit::of_contact(&members, now),
        Kind::Message => Edit::of_message(&members, now),
        Kind::Note => Edit::of_note(&members),
    }
}

fn is_changed(form: &Form, name: &str) -> bool {
    let (typed, shown) = (form.text(name).trim(), form.text(&was(name)).trim());
    // Browsers leave out seconds that are zero.
    let time = |text: &str| text.parse::<DateTime>().ok();
    let is_same_time = name == WHEN && time(typed).is_some_and(|typed| Some(typed) == time(shown));
    typed != shown && !is_same_time
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_micros(1_800_000_000_000_000);

    fn edit(kind: Kind, fields: &str) -> Result<Edit, Invalid> {
        read(&Form::of_query(Some(fields)), kind, &TimeZone::get("Europe/Berlin").unwrap(), NOW)
    }

    fn expected(body: &Value) -> Result<Edit, Invalid> {
        Edit::of_contact(body.as_object().unwrap(), NOW)
    }

    #[test]
    fn only_changed_fields_are_sent() {
        let table = [
            ("kind=call&was_kind=call&note=a%0D%0Ab&was_note=a%0D%0Ab", json!({})),
            ("occurred_at=2026-05-12T08:30&was_occurred_at=2026-05-12T08:30:00", json!({})),
            (
                "occurred_at=2026-05-12T08:31&was_occurred_at=2026-05-12T08:30:00",
                json!({"occurred_at": "2026-05-12T06:31:00Z"}),
            ),
            ("kind=email&was_kind=call&note=&was_note=a", json!({"kind": "email", "note": null})),
        ];
        for (fields, body) in table {
            assert_eq!(edit(Kind::Contact, fields), expected(&body), "{fields}");
        }
    }

    #[test]
    fn a_text_that_was_emptied_is_a_fault() {
        for (kind, fields) in [(Kind::Message, "body=+&was_body=Hello"), (Kind::Note, "text=&was_text=Hello")]
        {
            let fault = edit(kind, fields).unwrap_err();
            assert_eq!(fault.0.iter().map(|fault| fault.code).collect::<Vec<_>>(), ["empty"]);
        }
    }
}
