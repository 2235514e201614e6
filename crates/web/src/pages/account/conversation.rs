//! A conversation with its messages, and the forms that log messages by hand.

use askama::Template;
use axum::response::Response;
use rapport_app::conversation::{LogMessage, StartWithMessage};
use rapport_app::read::conversation::{self, Place};
use rapport_app::{Answer, Error, Needs};
use rapport_domain::account::Account;
use rapport_domain::conversation::{Conversation, Direction, Log, Message, Start};
use rapport_domain::correction::content::Correctable as _;
use rapport_domain::id::{AccountId, ConversationId, MessageId};
use rapport_domain::invalid::Invalid;
use rapport_domain::time::Time;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::corrected::{Corrector, Edited, Handle};
use super::page::AccountPage;
use super::words::{take_local_time, who};
use super::{back, before, path_of, words};
use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{Frame, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit};
use crate::pages::{READ, WORK};
use crate::shared::parameters::{read_cursor, write_cursor};

const MESSAGES: u8 = b'M';
const LOGGED: &str = "Message logged.";

#[derive(Template)]
#[template(path = "account/conversation.html")]
pub struct ConversationPage {
    frame: Frame,
    account: Account,
    conversation: Conversation,
    messages: Vec<Spoken>,
    older: Option<String>,
    is_newest: bool,
    form: Draft,
}
framed!("accounts": ConversationPage);

/// A message with the names that the page shows.
struct Spoken {
    message: Message,
    from: String,
    attachments: Vec<Attachment>,
    /// Set if the visitor may correct it.
    handle: Option<Handle>,
    edited: Option<Edited>,
}

#[derive(Deserialize)]
struct Attachment {
    name: Option<String>,
    #[serde(rename = "type")]
    media_type: String,
}

impl Spoken {
    fn new(message: Message, corrector: &Corrector) -> Self {
        let sender = message.sender.as_ref();
        let from = match (message.direction, sender) {
            (Direction::Inbound, Some(sender)) => match &sender.name {
                Some(name) => format!("{name} <{}>", sender.address),
                None => sender.address.clone(),
            },
            (Direction::Inbound, None) => format!("Received, logged by {}", who(&message.author)),
            (Direction::Outbound, _) => who(&message.author),
        };
        let attachments = message.attachments.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let handle = corrector.handle(message.entry(), &message.author, None);
        let edited = corrector.edited(message.entry());
        Self { from, attachments: attachments.unwrap_or_default(), handle, edited, message }
    }
}

impl Load<(AccountId, ConversationId)> for ConversationPage {
    async fn load(visit: &Visit<(AccountId, ConversationId)>) -> Result<Self, Refusal> {
        Self::read(visit, READ).await
    }
}

impl ConversationPage {
    async fn read(visit: &Visit<(AccountId, ConversationId)>, needs: Needs) -> Result<Self, Refusal> {
        let (ids, from) = (visit.id, read_place(visit.query.text("before")));
        let found = visit.read(needs, move |snapshot, _| conversation::page(snapshot, ids, from));
        let Shown { frame, reply } = found.await?;
        let conversation::ConversationPage { account, conversation, messages, edits } =
            reply.ok_or_else(|| Refusal::not_found("conversation"))?;
        let older = messages.items.last().filter(|_| messages.more).map(write_place);
        let corrector = Corrector { frame: &frame, edits: &edits };
        let messages = messages.items.into_iter().map(|message| Spoken::new(message, &corrector)).collect();
        let form = Draft::new([("direction", "outbound".to_owned())]);
        Ok(Self { frame, account, conversation, messages, older, is_newest: from.is_none(), form })
    }

    fn path(&self) -> String {
        conversation_path(self.account.id, self.conversation.id)
    }

    /// The address of the form that edits a message, which leads back here.
    fn edit_path(&self, handle: &Handle) -> String {
        format!("{}?edit=entry&entry={}&next={}#edit-entry", path_of(self.account.id), handle.id, self.path())
    }

    fn delete_path(&self, handle: &Handle) -> String {
        format!("{}/entries/{}/delete", path_of(self.account.id), handle.id)
    }

    fn when_hint(&self) -> String {
        words::when_hint(self.frame.zone())
    }
}

fn conversation_path(account: AccountId, conversation: ConversationId) -> String {
    format!("{}/conversations/{conversation}", path_of(account))
}

/// Logs a message in this conversation.
pub async fn log(action: Action<(AccountId, ConversationId)>) -> Result<Response, Refusal> {
    let (account, conversation) = action.id;
    // The account's conversation, not any other.
    let page = ConversationPage::read(&action, WORK).await?;
    let log = Log::parse(&typed(&action.form, page.frame.zone()), page.frame.now);
    let command = log.map(|log| LogMessage { conversation, log });
    action.run(command, |page: &mut ConversationPage, draft| page.form = draft).await?;
    action.done(&conversation_path(account, conversation), LOGGED)
}

/// Logs a message on an account, in an existing or a new conversation.
pub async fn log_on_account(action: Action<AccountId>) -> Result<Response, Refusal> {
    let Answer { company, now, .. } = before(&action, WORK).await?;
    let log = Log::parse(&typed(&action.form, &company.settings.time_zone), now);
    let logged = write(&action, log).await;
    action.settle(logged, |page: &mut AccountPage, draft| page.forms.message = draft).await?;
    action.done(&back(&action), LOGGED)
}

async fn write(action: &Action<AccountId>, log: Result<Log, Invalid>) -> Result<Message, Error> {
    let (account, form) = (action.id, &action.form);
    let Some(conversation) = form.given("conversation") else {
        let start = Start::parse(&form.members(&[("subject", As::Text), ("channel", As::Text)]));
        // Parsing the message reports the faults of both.
        return action.submit(StartWithMessage { account, log: log?, request: start? }).await;
    };
    let unknown =
        || Invalid::one("/conversation", "unknown_conversation", "is not a conversation of this account");
    let conversation: ConversationId = conversation.parse().map_err(|_| unknown())?;
    let (app, access) = (action.pages.app(), action.visitor.access());
    let found = app.read(&access, WORK, move |snapshot, _| conversation::one(snapshot, conversation));
    found.await?.reply.filter(|found| found.account == account).ok_or_else(unknown)?;
    action.submit(LogMessage { conversation, log: log? }).await
}

/// The members of a message. A time without a zone is in the company's.
fn typed(form: &Form, zone: &jiff::tz::TimeZone) -> Map<String, Value> {
    let mut members = form.members(&[
        ("direction", As::Text),
        ("channel", As::Text),
        ("subject", As::Text),
        ("body", As::Text),
        ("occurred_at", As::Text),
    ]);
    take_local_time(&mut members, "occurred_at", zone);
    members
}

fn write_place(last: &Message) -> String {
    let at = last.occurred_at.as_micros().to_be_bytes();
    write_cursor(MESSAGES, &[at.as_slice(), last.id.as_bytes()].concat())
}

fn read_place(text: &str) -> Option<Place> {
    let place: [u8; 24] = read_cursor(MESSAGES, text)?;
    let (at, id) = place.split_first_chunk::<8>()?;
    Some((Time::from_micros(i64::from_be_bytes(*at)), MessageId::from_bytes(id.try_into().ok()?)))
}
