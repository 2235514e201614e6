//! Reads and renders an account's page with its forms.

use askama::Template;
use jiff::civil::Date;
use rapport_app::read::account::{self, Known};
use rapport_domain::account::Account;
use rapport_domain::cadence::{Due, is_snoozed};
use rapport_domain::channel::PromoCode;
use rapport_domain::company::Settings;
use rapport_domain::conversation::Conversation;
use rapport_domain::id::AccountId;
use rapport_domain::pipeline::Status;
use rapport_domain::time::Time;

use super::field_text::{self, FieldRow};
use super::pulse::Pulse;
use super::timeline::{SHOWS, Timeline, Wanted};
use super::{was, words};
use crate::pages::READ;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{Frame, Shown, framed};
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
}

impl View {
    fn read(query: &Form) -> Self {
        let edit = match query.text("edit") {
            "details" => Edit::Details,
            "field" => Edit::Field(query.text("key").to_owned()),
            _ => Edit::Nothing,
        };
        Self { timeline: Wanted::read(query.text("show"), query.text("before")), edit }
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
    pub edit: Edit,
    pub forms: Forms,
}
framed!("accounts": AccountPage);

impl Load<AccountId> for AccountPage {
    async fn load(visit: &Visit<AccountId>) -> Result<Self, Refusal> {
        let view = View::read(&visit.query);
        let (id, wanted) = (visit.id, view.timeline);
        let found =
            visit.read(READ, move |snapshot, viewer| account::page(snapshot, viewer, id, wanted.part));
        let Shown { frame, reply } = found.await?;
        let edit = if frame.may_work() { view.edit } else { Edit::Nothing };
        let account::AccountPage { account, why, addresses, conversations, pulse, timeline } =
            reply.ok_or_else(|| Refusal::not_found("account"))?;
        Ok(Self {
            due: account.due(&frame.company.settings, frame.now),
            why,
            fields: account.custom_fields.to_map().into_iter().map(FieldRow::new).collect(),
            addresses,
            conversations,
            pulse: Pulse::new(pulse, frame.now.day_in(frame.zone())),
            timeline: Timeline::new(id, wanted, timeline),
            forms: Forms::of(&account, &frame.company.settings, &edit),
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
            "events" => "No product events yet. They arrive through ingest.",
            "imports" => "No import has changed this account in the last 90 days.",
            _ => "Nothing has happened yet.",
        }
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
