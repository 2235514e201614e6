//! Reads and renders an account's page with its forms.

use askama::Template;
use jiff::civil::Date;
use rapport_app::read::account::{self, Asked, Known};
use rapport_domain::account::Account;
use rapport_domain::cadence::{Due, is_snoozed};
use rapport_domain::channel::PromoCode;
use rapport_domain::company::Settings;
use rapport_domain::conversation::Conversation;
use rapport_domain::correction::Entry;
use rapport_domain::correction::content::Correctable as _;
use rapport_domain::correction::logged::Logged;
use rapport_domain::id::{AccountId, CorrectionId};
use rapport_domain::note::Note;
use rapport_domain::pipeline::Status;
use rapport_domain::time::Time;

use super::corrected::{Corrector, Edited, Handle};
use super::field_text::{self, FieldRow};
use super::pulse::Pulse;
use super::timeline::{SHOWS, Timeline, Wanted};
use super::{was, words};
use crate::pages::READ;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{Frame, Shown, framed};
use crate::pages::kit::origin::own_path;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit};
use crate::pages::words::{money, number, when};

/// How many addresses are listed before the rest are folded.
const ADDRESSES_AT_ONCE: usize = 5;
/// Common lengths of a snooze, in days.
pub const SNOOZES: [(i64, &str); 3] = [(7, "1 week"), (14, "2 weeks"), (30, "30 days")];

/// The state of the page that the query asks for.
#[derive(Debug, Clone, Default)]
struct View {
    timeline: Wanted,
    edit: Edit,
    /// An entry to edit.
    entry: Option<Entry>,
    /// Where the form that edits it leads.
    next: String,
}

impl View {
    fn read(query: &Form) -> Self {
        let edit = match query.text("edit") {
            "details" => Edit::Details,
            "field" => Edit::Field(query.text("key").to_owned()),
            _ => Edit::Nothing,
        };
        let timeline = Wanted::read(query.text("show"), query.text("before"));
        let entry =
            Some(query.text("entry")).filter(|_| query.text("edit") == "entry").and_then(Entry::parse);
        Self { timeline, edit, entry, next: query.text("next").to_owned() }
    }
}

/// What is being edited in place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Edit {
    #[default]
    Nothing,
    Details,
    /// A custom field, or a new one if the key is empty.
    Field(String),
}

/// The forms on the page.
#[derive(Default)]
pub struct Forms {
    pub details: Draft,
    pub field: Draft,
    pub address: Draft,
    pub contact: Draft,
    pub snooze: Draft,
    pub cadence: Draft,
    pub status: Draft,
    pub message: Draft,
    pub note: Draft,
    /// The entry that is being edited.
    pub entry: Draft,
}

/// A pinned note.
struct Pinned {
    note: Note,
    by: String,
    handle: Option<Handle>,
    edited: Option<Edited>,
}

#[derive(Template)]
#[template(path = "account/page.html")]
pub struct AccountPage {
    frame: Frame,
    account: Account,
    due: Due,
    why: String,
    fields: Vec<FieldRow>,
    addresses: Vec<Known>,
    conversations: Vec<Conversation>,
    pulse: Pulse,
    timeline: Timeline,
    pinned: Vec<Pinned>,
    /// The entry that is being edited.
    editing: Option<Handle>,
    pub edit: Edit,
    pub forms: Forms,
}
framed!("accounts": AccountPage);

impl Load<AccountId> for AccountPage {
    async fn load(visit: &Visit<AccountId>) -> Result<Self, Refusal> {
        Self::read(visit, visit.id, View::read(&visit.query)).await
    }
}

impl Load<(AccountId, Entry)> for AccountPage {
    async fn load(visit: &Visit<(AccountId, Entry)>) -> Result<Self, Refusal> {
        let (id, entry) = visit.id;
        Self::read(visit, id, View { entry: Some(entry), ..View::default() }).await
    }
}

impl Load<(AccountId, CorrectionId)> for AccountPage {
    async fn load(visit: &Visit<(AccountId, CorrectionId)>) -> Result<Self, Refusal> {
        Self::read(visit, visit.id.0, View::default()).await
    }
}

impl AccountPage {
    async fn read<I: Sync>(visit: &Visit<I>, id: AccountId, view: View) -> Result<Self, Refusal> {
        let wanted = view.timeline;
        let asked = Asked { part: wanted.part, entry: view.entry };
        let found = visit.read(READ, move |snapshot, viewer| account::page(snapshot, viewer, id, asked));
        let Shown { frame, reply } = found.await?;
        let edit = if frame.may_work() { view.edit } else { Edit::Nothing };
        let shown = reply.ok_or_else(|| Refusal::not_found("account"))?;
        let account::AccountPage { account, why, addresses, conversations, pulse, timeline, .. } = shown;
        let corrector = Corrector { frame: &frame, edits: &shown.edits };
        let editing = shown.editing.filter(|logged| corrector.may(logged.author()));
        let entry = editing.as_ref().map(|logged| entry_draft(logged, &frame, &view.next));
        let handle = |logged: &Logged| corrector.handle(logged.entry(), logged.author(), None);
        let (editing, timeline) =
            (editing.as_ref().and_then(handle), Timeline::new(id, wanted, timeline, &corrector));
        let pinned = shown.pinned.into_iter().map(|note| Pinned::new(note, &corrector)).collect();
        Ok(Self {
            due: account.due(&frame.company.settings, frame.now),
            why,
            fields: account.custom_fields.to_map().into_iter().map(FieldRow::new).collect(),
            addresses,
            conversations,
            pulse: Pulse::new(pulse, frame.now.day_in(frame.zone())),
            timeline,
            pinned,
            editing,
            forms: Forms {
                entry: entry.unwrap_or_default(),
                ..Forms::of(&account, &frame.company.settings, &edit)
            },
            edit,
            account,
            frame,
        })
    }
}

impl AccountPage {
    /// A path below the account's.
    fn path(&self, rest: &str) -> String {
        format!("/accounts/{}{rest}", self.account.id)
    }

    fn settings(&self) -> &Settings {
        &self.frame.company.settings
    }

    fn is_snoozed(&self) -> bool {
        is_snoozed(self.account.snoozed_until, &self.settings().time_zone, self.frame.now)
    }

    fn when_hint(&self) -> String {
        words::when_hint(self.frame.zone())
    }

    fn cadence(&self) -> String {
        number::counted(self.account.clock().interval(self.settings()), "day", "days")
    }

    fn tracked_stages(&self) -> String {
        words::stages(self.settings())
    }

    /// The snooze dates to offer.
    fn snoozes(&self) -> Vec<(&'static str, Date)> {
        snoozes(&self.frame)
    }

    fn due_date(&self) -> Option<Date> {
        self.due.due_at.map(|at| at.day_in(&self.settings().time_zone).date())
    }

    fn edit_path(&self, key: &str) -> String {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("edit", "field")
            .append_pair("key", key)
            .finish();
        self.path(&format!("?{query}#fields"))
    }

    fn older_query(&self, before: &str) -> String {
        format!("?show={}&before={before}#timeline", self.timeline.wanted.word)
    }

    /// The text of an empty timeline.
    fn nothing_told(&self) -> &'static str {
        if !self.timeline.wanted.is_beginning() {
            return "No older entries.";
        }
        match self.timeline.wanted.word {
            "messages" if !self.frame.may_work() => "No messages yet.",
            "messages" => "No messages yet. Log one above, or have mail logged automatically.",
            "contacts" if !self.frame.may_work() => "No contact logged yet.",
            "contacts" => {
                "No contact logged yet. Log a call, a meeting or a mail with the button at the top."
            }
            "notes" if !self.frame.may_work() => "No notes yet.",
            "notes" => "No notes yet. Add one with the button at the top. Notes don’t count as contact.",
            "corrections" => "Nothing that was logged here has been edited or deleted.",
            "events" => "No product events yet. They arrive through ingest.",
            "imports" => "No import has changed this account in the last 90 days.",
            _ => "Nothing has happened yet.",
        }
    }

    /// The address of the form that edits an entry.
    fn edit_entry_path(&self, handle: &Handle) -> String {
        let word = self.timeline.wanted.word;
        self.path(&format!("?edit=entry&entry={}&show={word}#edit-entry", handle.id))
    }

    fn zone_hint(&self) -> String {
        words::zone_hint(self.frame.zone())
    }

    /// Where the form that edits an entry leads.
    fn after_edit(&self) -> String {
        match self.forms.entry.value("next") {
            "" => self.here_again(),
            next => own_path(next),
        }
    }

    /// Where a form about an entry leads: the same part of the timeline.
    fn here_again(&self) -> String {
        self.path(&show_query(self.timeline.wanted.word))
    }

    fn entry_path(&self, handle: &Handle, rest: &str) -> String {
        self.path(&format!("/entries/{}{rest}", handle.id))
    }

    fn undo_path(&self, id: &CorrectionId) -> String {
        self.path(&format!("/corrections/{id}/undo"))
    }

    fn conversation_path(&self, conversation: &Conversation) -> String {
        self.path(&format!("/conversations/{}", conversation.id))
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
    fn last_used(&self, at: &Time) -> String {
        format!("last used {}", when::date(at.day_in(self.frame.zone()).date()))
    }

    fn is_edited(&self, key: &str) -> bool {
        self.edit == Edit::Field(key.to_owned())
    }

    fn shown_addresses(&self) -> (&[Known], &[Known]) {
        self.addresses.split_at(self.addresses.len().min(ADDRESSES_AT_ONCE))
    }
}

impl Pinned {
    fn new(note: Note, corrector: &Corrector) -> Self {
        let entry = note.entry();
        let handle = corrector.handle(entry, &note.author, Some(true));
        Self { by: words::who(&note.author), handle, edited: corrector.edited(entry), note }
    }
}

/// The form that edits an entry. Hidden fields keep the original values, so that only changed fields are sent.
fn entry_draft(logged: &Logged, frame: &Frame, next: &str) -> Draft {
    let time = |at: Time| when::local(at, frame.zone());
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let values = match logged {
        Logged::Contact(contact) => vec![
            ("kind", contact.kind.as_str().to_owned()),
            ("note", text(&contact.note)),
            ("occurred_at", time(contact.occurred_at)),
        ],
        Logged::Message(message) => vec![
            ("direction", message.direction.as_str().to_owned()),
            ("subject", text(&message.subject)),
            ("channel", message.channel.clone()),
            ("body", message.body.clone()),
            ("occurred_at", time(message.occurred_at)),
        ],
        Logged::Note(note) => vec![("text", note.text.clone())],
    };
    let kept: Vec<_> = values.iter().map(|(name, value)| (was(name), value.clone())).collect();
    let kept = kept.iter().map(|(name, value)| (name.as_str(), value.clone()));
    Draft::new(values.into_iter().chain(kept).chain([("next", next.to_owned())]))
}

fn show_query(word: &str) -> String {
    format!("?show={word}#timeline")
}

fn conversation_name(conversation: &Conversation) -> String {
    let channel = &conversation.channel;
    conversation.subject.clone().unwrap_or_else(|| format!("No subject ({channel})"))
}

/// The snooze dates to offer, with their labels.
pub fn snoozes(frame: &Frame) -> Vec<(&'static str, Date)> {
    let today = frame.now.day_in(frame.zone());
    SNOOZES.iter().map(|(days, label)| (*label, today.minus_days(-days).date())).collect()
}

impl Forms {
    fn of(account: &Account, settings: &Settings, edit: &Edit) -> Self {
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let amount = account.value.map(|money| money.amount_text());
        let currency = account.value.map_or(settings.default_currency, |money| money.currency);
        let values = [
            ("name", account.name.clone()),
            ("imported_id", text(account.imported_id.as_deref())),
            ("captured_value", amount.unwrap_or_default()),
            ("captured_value_currency", currency.code().to_owned()),
            ("promo_code", text(account.promo_code.as_ref().map(PromoCode::as_str))),
        ];
        // Hidden fields keep the original values, so that only changed fields are sent.
        let kept = values.clone().map(|(name, value)| (was(name), value));
        let kept = kept.iter().map(|(name, value)| (name.as_str(), value.clone()));
        let field = match edit {
            Edit::Field(key) => {
                let value = account.custom_fields.to_map().get(key).map(field_text::write);
                Draft::new([("key", key.clone()), ("value", value.unwrap_or_default())])
            }
            Edit::Nothing | Edit::Details => Draft::default(),
        };
        let snoozed_until = account.snoozed_until.map(|date| date.to_string());
        let cadence_days = account.cadence_override.map(|days| days.to_string());
        Self {
            details: Draft::new(values.clone().into_iter().chain(kept)),
            field,
            snooze: Draft::new([("snoozed_until", snoozed_until.unwrap_or_default())]),
            cadence: Draft::new([("cadence_days", cadence_days.unwrap_or_default())]),
            status: Draft::new([("status", account.status.as_str().to_owned())]),
            message: Draft::new([("direction", "outbound".to_owned())]),
            ..Self::default()
        }
    }
}
