//! Inbound mail: logged once, on the account it concerns, in the conversation it belongs to.

use std::collections::HashMap;

use rapport_domain::account::Account;
use rapport_domain::conversation::{Conversation, Direction, EMAIL, Message, Sender, Start, ThreadMark};
use rapport_domain::custom_fields::FieldChange;
use rapport_domain::history::Actor;
use rapport_domain::id::{AccountId, ConversationId};
use rapport_domain::inbound::{
    About, Answered, Colleague, Ignored, Mail, MailMark, Mailbox, Place, about, account_name, place_received,
    place_sent,
};
use rapport_domain::member::{Email, Member};
use rapport_domain::pipeline::{Source, Status};
use rapport_domain::sender_check::SenderCheck;
use rapport_store::{Tx, account, account_address, conversation, mail_reference, member};
use serde_json::json;

use crate::access::Needs;
use crate::account_address::has_room;
use crate::command::{Command, Context};
use crate::conversation::add;
use crate::error::Error;
use crate::outbox::Outbox;

pub use rapport_store::mail_reference::Logged;

/// How many bytes of text weigh as much in the queue as a plain command.
const BYTES_PER_WEIGHT: usize = 16 << 10;

/// A mail posted by a provider or a forwarder, already parsed.
pub struct ReceiveMail {
    pub mail: Mail,
    /// The mail's attachments as JSON, if any: serialized beforehand, off the engine's threads.
    pub attachments: Option<String>,
}

impl ReceiveMail {
    pub fn new(mail: Mail) -> Self {
        let attachments = (!mail.attachments.is_empty()).then(|| json!(mail.attachments).to_string());
        Self { mail, attachments }
    }
}

/// The outcome of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    Logged(Entry),
    /// The mail was logged before.
    Duplicate(Logged),
    Ignored(Ignored),
}

/// A logged mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub direction: Direction,
    pub automatic: bool,
    pub created_account: bool,
    pub logged: Logged,
    /// Copies on the other accounts among the recipients.
    pub copies: Vec<Logged>,
}

impl Command for ReceiveMail {
    type Reply = Received;
    const NEEDS: Needs = Needs::InboundKey;

    fn weight(&self) -> usize {
        1 + self.mail.text.len() / BYTES_PER_WEIGHT
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Received, Error> {
        let Some(from) = &self.mail.from else { return Ok(Received::Ignored(Ignored::NoSender)) };
        let check = cx.trusted_relay().map(|relay| relay.check(&self.mail.authentication, &from.address));
        let is_believed = check.as_ref().is_none_or(SenderCheck::is_verified);
        let mark = if is_believed { self.mail.mark() } else { self.mail.mark().unverified() };
        if let Some((_, logged)) = mail_reference::find(tx, &[mark])?.pop() {
            return Ok(Received::Duplicate(logged));
        }
        let colleagues = colleagues(tx, &self.mail)?;
        let automatic = self.mail.automatic().is_some();
        let (author, places) = match about(&self.mail, &colleagues) {
            _ if !is_believed => {
                // Neither an account nor a member is recognized by a name that anyone could have written.
                let own = mail_reference::find(tx, &[MailMark::of_unverified_sender(&from.address)])?.pop();
                let own = own.map(|(_, logged)| logged.account);
                let answered = answered(tx, &self.mail, own.as_slice())?;
                (None, place_received(from, own, answered, automatic).map(|place| vec![place]))
            }
            About::Nobody(ignored) => return Ok(Received::Ignored(ignored)),
            About::Sender(from) => {
                let known = known(tx, &[from])?.first().copied();
                let answered = answered(tx, &self.mail, known.as_slice())?;
                (None, place_received(from, known, answered, automatic).map(|place| vec![place]))
            }
            About::Recipients(author, theirs) => {
                let known = known(tx, &theirs)?;
                let answered = answered(tx, &self.mail, &known)?;
                (Some(author), place_sent(&theirs, &known, answered, automatic))
            }
        };
        match places {
            Err(ignored) => Ok(Received::Ignored(ignored)),
            Ok(places) => Delivery { cx, receive: self, mark, author, automatic, check }.put(tx, places),
        }
    }
}

/// The people a mail names who are members.
fn colleagues(tx: &mut Tx, mail: &Mail) -> Result<Vec<Colleague>, Error> {
    let named = mail.from.iter().chain(&mail.recipients);
    let mut emails: Vec<&Email> = named.map(|mailbox| &mailbox.address).collect();
    emails.sort_unstable_by_key(|email| email.as_str());
    emails.dedup();
    let members = member::by_email(tx, &emails)?.into_iter();
    let colleague = |member: Member| {
        let active = member.deactivated_at.is_none();
        Colleague { person: member.person, email: member.email, name: member.name, active }
    };
    Ok(members.map(colleague).collect())
}

/// The accounts known by these addresses, without duplicates, in the order of the addresses.
fn known(tx: &mut Tx, mailboxes: &[&Mailbox]) -> Result<Vec<AccountId>, Error> {
    let mut addresses: Vec<&Email> = mailboxes.iter().map(|mailbox| &mailbox.address).collect();
    addresses.dedup();
    let found: HashMap<Email, AccountId> = account_address::find(tx, &addresses)?.into_iter().collect();
    let mut known: Vec<AccountId> = Vec::new();
    for address in addresses {
        if let Some(account) = found.get(address)
            && !known.contains(account)
        {
            known.push(*account);
        }
    }
    Ok(known)
}

/// The conversation of the nearest mail that this one answers. If that mail went to several accounts, a copy
/// on one of `known` takes precedence over the first.
fn answered(tx: &mut Tx, mail: &Mail, known: &[AccountId]) -> Result<Answered, Error> {
    let marks: Vec<MailMark> = mail
        .references
        .iter()
        .flat_map(|id| {
            let mark = MailMark::of_id(id);
            known.iter().map(move |account| mark.on(*account)).chain([mark])
        })
        .collect();
    let found: HashMap<MailMark, Logged> = mail_reference::find(tx, &marks)?.into_iter().collect();
    let nearest = marks.iter().find_map(|mark| found.get(mark));
    Ok(nearest.map(|logged| (logged.account, logged.conversation)))
}

/// One mail on its way to the accounts it concerns.
struct Delivery<'a> {
    cx: &'a Context<'a>,
    receive: &'a ReceiveMail,
    mark: MailMark,
    /// The member who wrote it.
    author: Option<&'a Colleague>,
    automatic: bool,
    check: Option<SenderCheck>,
}

impl Delivery<'_> {
    /// Whether the sender is taken for who the mail says.
    fn is_believed(&self) -> bool {
        self.check.as_ref().is_none_or(SenderCheck::is_verified)
    }

    fn put(&self, tx: &mut Tx, places: Vec<Place>) -> Result<Received, Error> {
        let mut outbox = Outbox::default();
        let mut logged: Vec<Logged> = Vec::with_capacity(places.len());
        let created_account = matches!(places.first(), Some(Place::NewAccount(_)));
        // Every transaction locks in this order, so they can't deadlock.
        let mut ids: Vec<AccountId> = places.iter().filter_map(account_of).collect();
        ids.sort_unstable();
        let mut accounts: HashMap<AccountId, Account> =
            account::lock(tx, &ids)?.into_iter().map(|account| (account.id, account)).collect();
        for (number, place) in places.into_iter().enumerate() {
            let mut target = self.target(tx, &mut accounts, place)?;
            let entry = Logged {
                account: target.account.id,
                conversation: target.conversation.id,
                message: self.cx.id(),
            };
            let mark = if number == 0 { self.mark } else { self.mark.on(entry.account) };
            if !mail_reference::insert(tx, mark, &entry)? {
                // Another node is logging this mail right now. Nothing was written before the first mark.
                return Err(rapport_store::Error::Again.into());
            }
            self.write(tx, &mut target, &entry, &mut outbox)?;
            logged.push(entry);
        }
        outbox.write(tx, self.cx)?;
        let first = logged.remove(0);
        Ok(Received::Logged(Entry {
            direction: self.direction(),
            automatic: self.automatic,
            created_account,
            logged: first,
            copies: logged,
        }))
    }

    /// The account and conversation for a place, found or created but not yet written.
    fn target(
        &self,
        tx: &mut Tx,
        accounts: &mut HashMap<AccountId, Account>,
        place: Place,
    ) -> Result<Target, Error> {
        let gone = || Error::from(rapport_store::Error::Again);
        let (account, is_new, conversation) = match place {
            Place::Conversation(id, conversation) => {
                (accounts.remove(&id).ok_or_else(gone)?, None, Some(conversation))
            }
            Place::Account(id) => {
                let thread = ThreadMark::of(self.subject().unwrap_or_default());
                (accounts.remove(&id).ok_or_else(gone)?, None, conversation::by_thread(tx, id, thread)?)
            }
            Place::NewAccount(mailbox) => (self.account_for(&mailbox)?, Some(mailbox), None),
        };
        let found = conversation.map(|id: ConversationId| conversation::lock(tx, id)).transpose()?.flatten();
        let is_begun = found.is_none();
        let conversation = found.unwrap_or_else(|| {
            let subject = self.subject().map(str::to_owned);
            let start = Start { subject, channel: EMAIL.to_owned() };
            Conversation::new(self.cx.id(), account.id, start, self.cx.now)
        });
        Ok(Target { account, made_for: is_new, conversation, is_begun })
    }

    fn account_for(&self, mailbox: &Mailbox) -> Result<Account, Error> {
        let mut made = Account::new(self.cx.id(), account_name(mailbox), Status::Prospect, self.cx.now);
        let fields =
            if self.is_believed() { json!({ "email": mailbox.address.as_str() }) } else { json!({}) };
        let fields = fields.as_object().map(FieldChange::parse).transpose()?.unwrap_or_default();
        made.custom_fields = made.custom_fields.merged(&fields)?;
        Ok(made)
    }

    fn write(
        &self,
        tx: &mut Tx,
        target: &mut Target,
        entry: &Logged,
        outbox: &mut Outbox,
    ) -> Result<(), Error> {
        let Target { account, made_for, conversation, is_begun } = target;
        if let Some(mailbox) = made_for {
            account::insert(tx, &[account])?;
            let is_first = if self.is_believed() {
                account_address::insert(tx, &mailbox.address, account.id, self.cx.now)?
            } else {
                mail_reference::insert(tx, MailMark::of_unverified_sender(&mailbox.address), entry)?
            };
            if !is_first {
                // Another mail from this sender came first, so this one joins its account.
                return Err(rapport_store::Error::Again.into());
            }
            outbox.created(self.cx, account, Source::Inbound);
        } else if let Some(from) = self.stranger()
            && has_room(tx, account.id)?
        {
            // Someone who answers in a conversation belongs to its account from now on, unless they belong
            // elsewhere.
            account_address::insert(tx, &from.address, account.id, self.cx.now)?;
        }
        if *is_begun {
            conversation::insert(tx, conversation)?;
        }
        let message = self.message(entry);
        add(tx, self.cx, account, conversation, &message, outbox)
    }

    /// The external sender, whose address is worth keeping.
    fn stranger(&self) -> Option<&Mailbox> {
        let from = self.receive.mail.from.as_ref()?;
        (self.author.is_none() && !self.automatic && self.is_believed()).then_some(from)
    }

    fn message(&self, entry: &Logged) -> Message {
        let ReceiveMail { mail, attachments } = self.receive;
        let author = self.author.map(|author| Actor::Person { id: author.person, name: author.name.clone() });
        Message {
            id: entry.message,
            conversation: entry.conversation,
            account: entry.account,
            direction: self.direction(),
            channel: EMAIL.to_owned(),
            subject: mail.subject.clone(),
            body: mail.text.clone(),
            body_truncated: mail.text_truncated,
            author: author.unwrap_or_else(|| self.cx.actor().clone()),
            sender: mail
                .from
                .as_ref()
                .map(|from| Sender { address: from.address.as_str().to_owned(), name: from.name.clone() }),
            sender_check: self.check.clone(),
            attachments: attachments.clone(),
            automatic: self.automatic,
            occurred_at: mail.occurred_at(self.cx.now),
            created_at: self.cx.now,
        }
    }

    fn direction(&self) -> Direction {
        if self.author.is_some() { Direction::Outbound } else { Direction::Inbound }
    }

    fn subject(&self) -> Option<&str> {
        self.receive.mail.subject.as_deref()
    }
}

struct Target {
    account: Account,
    /// The mailbox a new account is created for.
    made_for: Option<Mailbox>,
    conversation: Conversation,
    /// Whether the conversation is new.
    is_begun: bool,
}

fn account_of(place: &Place) -> Option<AccountId> {
    match place {
        Place::Conversation(account, _) | Place::Account(account) => Some(*account),
        Place::NewAccount(_) => None,
    }
}
