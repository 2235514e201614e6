//! Inbound mail: the contents of a parsed message, whom it is about, its direction, and whether a machine
//! wrote it. Parsing happens elsewhere; the rules here only see `Mail`.

use ring::digest::{Context, SHA256};

use crate::account::MAX_NAME;
use crate::activity::MAX_AHEAD_SECONDS;
use crate::conversation::{Attachment, MAX_BODY, MAX_SUBJECT};
use crate::id::{AccountId, ConversationId, PersonId};
use crate::member::Email;
use crate::text::{fold, is_visible};
use crate::time::Time;

/// The limit of common mail providers, including attachments and their base64.
pub const MAX_MAIL_BYTES: usize = 25 << 20;
/// How many references and recipients are considered.
pub const MAX_REFERENCES: usize = 50;
pub const MAX_RECIPIENTS: usize = 50;
/// How many `Authentication-Results` headers are considered.
pub const MAX_AUTHENTICATION: usize = 20;
pub const MAX_ATTACHMENTS: usize = 100;
/// Enough for an address book, not for a mailing list.
pub const MAX_ADDRESSES: usize = 500;
/// Earlier dates come from clocks that were never set.
const EARLIEST: Time = Time::from_micros(0);

/// A person named in a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mailbox {
    pub address: Email,
    pub name: Option<String>,
}

/// Headers that show how a mail was created.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signs {
    pub auto_submitted: Option<String>,
    pub precedence: Option<String>,
    pub others: Vec<Sign>,
}

/// A sign that a machine wrote the mail or passed it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// `X-Autoreply` and similar headers.
    Autoreply,
    /// `List-Id`, `List-Unsubscribe`, `List-Post`.
    List,
    /// `X-Loop`, or our own mark.
    Loop,
    /// `Return-Path: <>`: the sender doesn't want replies.
    NullReturnPath,
    /// `multipart/report`: a delivery status or a receipt.
    Report,
}

impl Signs {
    fn has(&self, sign: Sign) -> bool {
        self.others.contains(&sign)
    }
}

/// A parsed mail.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mail {
    pub message_id: Option<String>,
    /// The Message-IDs it replies to, nearest first.
    pub references: Vec<String>,
    pub from: Option<Mailbox>,
    /// The `Authentication-Results` headers, topmost first. Empty if the mail doesn't name exactly one author, because
    /// it wouldn't be clear whom they are about.
    pub authentication: Vec<String>,
    /// `To`, then `Cc`, then `Bcc`.
    pub recipients: Vec<Mailbox>,
    /// The mailboxes it was delivered to: our own, which never belong to an account.
    pub delivered_to: Vec<Email>,
    pub subject: Option<String>,
    pub date: Option<Time>,
    pub text: String,
    pub text_truncated: bool,
    pub attachments: Vec<Attachment>,
    pub signs: Signs,
}

/// Why a mail counts as written by a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Automatic {
    /// An out-of-office note or another automatic reply.
    Answer,
    /// A bounce or a receipt.
    Report,
    /// A mailing list or a mass mailing.
    List,
    /// It has already been through this service.
    Loop,
}

impl Mail {
    /// The mark that identifies it: from its Message-ID, or else from its contents.
    pub fn mark(&self) -> MailMark {
        if let Some(id) = &self.message_id {
            return MailMark::of_id(id);
        }
        let from = self.from.as_ref().map_or("", |from| from.address.as_str());
        let date = self.date.map_or(0, Time::as_micros).to_string();
        let subject = self.subject.as_deref().unwrap_or_default();
        MailMark::of_parts(b"content", &[from, &date, subject, &self.text])
    }

    /// When it was written, as far as its date is plausible.
    pub fn occurred_at(&self, now: Time) -> Time {
        let latest = now.plus_seconds(MAX_AHEAD_SECONDS);
        self.date.filter(|date| (EARLIEST..=latest).contains(date)).unwrap_or(now)
    }

    /// Why it counts as automatic, if it does. Signs of a reply come before signs of a list: an out-of-office
    /// note sent through a list is still one.
    pub fn automatic(&self) -> Option<Automatic> {
        let signs = &self.signs;
        let precedence = signs.precedence.as_deref().map(|word| fold(word.trim()));
        let submitted = signs.auto_submitted.as_deref().map(|word| fold(word.trim()));
        let is_automatic = |word: &str| !word.is_empty() && !word.starts_with("no");
        if signs.has(Sign::Report) || self.from.as_ref().is_some_and(|from| is_daemon(&from.address)) {
            return Some(Automatic::Report);
        }
        if submitted.as_deref().is_some_and(is_automatic)
            || signs.has(Sign::Autoreply)
            || precedence.as_deref() == Some("auto_reply")
            || self.subject.as_deref().is_some_and(announces_absence)
            || signs.has(Sign::NullReturnPath)
        {
            return Some(Automatic::Answer);
        }
        if signs.has(Sign::Loop) {
            return Some(Automatic::Loop);
        }
        let is_mass = matches!(precedence.as_deref(), Some("bulk" | "junk" | "list"));
        (signs.has(Sign::List) || is_mass).then_some(Automatic::List)
    }
}

fn is_daemon(address: &Email) -> bool {
    let local = address.as_str().split('@').next().unwrap_or_default();
    matches!(local, "mailer-daemon" | "postmaster")
}

/// How programs begin the subject of an out-of-office note. Only the beginning counts, because people also
/// write about automatic replies.
const ABSENCE: [&str; 26] = [
    "automatic reply",
    "auto reply",
    "auto-reply",
    "autoreply",
    "auto response",
    "auto-response",
    "autoresponse",
    "out of office",
    "out of the office",
    "out-of-office",
    "ooo:",
    "away from the office",
    "vacation reply",
    "vacation response",
    "on vacation",
    "automatische antwort",
    "abwesenheit",
    "abwesend:",
    "réponse automatique",
    "reponse automatique",
    "absence du bureau",
    "respuesta automática",
    "risposta automatica",
    "resposta automática",
    "automatisch antwoord",
    "automatiskt svar",
];

fn announces_absence(subject: &str) -> bool {
    let folded = fold(subject.trim());
    ABSENCE.iter().any(|beginning| folded.starts_with(beginning)) || folded.starts_with("autosvar")
}

/// The key for finding mails: a hash of the Message-ID, or of the contents of a mail without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MailMark([u8; 32]);

impl MailMark {
    /// The mark of a Message-ID, with or without its brackets.
    pub fn of_id(id: &str) -> Self {
        let bare = id.trim().trim_start_matches('<').trim_end_matches('>');
        Self::of_parts(b"id", &[bare])
    }

    /// The mark of this mail's copy on one account, if it was sent to several.
    #[must_use]
    pub fn on(&self, account: AccountId) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(b"copy");
        context.update(&self.0);
        context.update(account.as_bytes());
        Self::finish(context)
    }

    /// The mark of this mail if its sender isn't verified. It is another one, so that nobody can take the Message-ID
    /// of someone else's mail.
    #[must_use]
    pub fn unverified(&self) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(b"unverified");
        context.update(&self.0);
        Self::finish(context)
    }

    /// The mark of the account for unverified mails that name this sender.
    pub fn of_unverified_sender(address: &Email) -> Self {
        Self::of_parts(b"unverified sender", &[address.as_str()])
    }

    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn of_parts(kind: &[u8], parts: &[&str]) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(kind);
        for part in parts {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part.as_bytes());
        }
        Self::finish(context)
    }

    fn finish(context: Context) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(context.finish().as_ref());
        Self(bytes)
    }
}

/// A member, as far as mail is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Colleague {
    pub person: PersonId,
    pub email: Email,
    pub name: String,
    /// Not deactivated.
    pub active: bool,
}

/// Why nothing was logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ignored {
    /// The mail doesn't name a sender.
    NoSender,
    /// From a member to members.
    MembersOnly,
    /// From a former member.
    FormerMember,
    /// Written by a machine, and the sender is unknown.
    Automatic,
}

impl Ignored {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSender => "no_sender",
            Self::MembersOnly => "members_only",
            Self::FormerMember => "former_member",
            Self::Automatic => "automatic",
        }
    }
}

/// Whom a mail is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About<'a> {
    /// From outside: about its sender.
    Sender(&'a Mailbox),
    /// From a member: about its recipients.
    Recipients(&'a Colleague, Vec<&'a Mailbox>),
    Nobody(Ignored),
}

/// Whom a mail is about, given which of the people it names are members.
pub fn about<'a>(mail: &'a Mail, colleagues: &'a [Colleague]) -> About<'a> {
    let Some(from) = &mail.from else { return About::Nobody(Ignored::NoSender) };
    let colleague = |address: &Email| colleagues.iter().find(|colleague| colleague.email == *address);
    let author = match colleague(&from.address) {
        None => return About::Sender(from),
        Some(former) if !former.active => return About::Nobody(Ignored::FormerMember),
        Some(author) => author,
    };
    let is_theirs = |mailbox: &&Mailbox| {
        colleague(&mailbox.address).is_none() && !mail.delivered_to.contains(&mailbox.address)
    };
    let theirs: Vec<&Mailbox> = mail.recipients.iter().filter(is_theirs).collect();
    if theirs.is_empty() { About::Nobody(Ignored::MembersOnly) } else { About::Recipients(author, theirs) }
}

/// Where a mail is filed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In the conversation that it replies to.
    Conversation(AccountId, ConversationId),
    /// On an account: in its conversation with the same subject, or else a new one.
    Account(AccountId),
    /// On a new account.
    NewAccount(Mailbox),
}

/// The conversation that a mail replies to, and its account.
pub type Answered = Option<(AccountId, ConversationId)>;

/// Where to file a mail from outside: by the mail it replies to, then by its sender.
pub fn place_received(
    from: &Mailbox,
    known: Option<AccountId>,
    answered: Answered,
    automatic: bool,
) -> Result<Place, Ignored> {
    match (answered, known) {
        (Some((account, conversation)), _) => Ok(Place::Conversation(account, conversation)),
        (None, Some(account)) => Ok(Place::Account(account)),
        (None, None) if automatic => Err(Ignored::Automatic),
        (None, None) => Ok(Place::NewAccount(from.clone())),
    }
}

/// Where to file a member's mail: on every known account among its recipients. If it is a reply, it joins the
/// conversation it replies to, which also serves when no recipient is known. Without either, only the first
/// recipient becomes an account; people who are merely copied in don't.
pub fn place_sent(
    theirs: &[&Mailbox],
    known: &[AccountId],
    answered: Answered,
    automatic: bool,
) -> Result<Vec<Place>, Ignored> {
    match (answered, theirs.first()) {
        (Some((account, conversation)), _) if known.is_empty() => {
            Ok(vec![Place::Conversation(account, conversation)])
        }
        (_, Some(first)) if known.is_empty() && !automatic => Ok(vec![Place::NewAccount((*first).clone())]),
        _ if known.is_empty() => Err(Ignored::Automatic),
        _ => {
            let place = |account: &AccountId| match answered {
                Some((of, conversation)) if of == *account => Place::Conversation(of, conversation),
                _ => Place::Account(*account),
            };
            Ok(known.iter().map(place).collect())
        }
    }
}

/// Public mail providers: their domains say nothing about an organisation.
const PUBLIC_PROVIDERS: [&str; 31] = [
    "gmail.com",
    "googlemail.com",
    "outlook.com",
    "hotmail.com",
    "hotmail.co.uk",
    "hotmail.fr",
    "live.com",
    "msn.com",
    "yahoo.com",
    "yahoo.co.uk",
    "yahoo.fr",
    "yahoo.de",
    "yahoo.co.jp",
    "ymail.com",
    "aol.com",
    "icloud.com",
    "me.com",
    "mac.com",
    "proton.me",
    "protonmail.com",
    "gmx.de",
    "gmx.net",
    "gmx.at",
    "gmx.com",
    "web.de",
    "t-online.de",
    "mail.ru",
    "yandex.ru",
    "qq.com",
    "163.com",
    "orange.fr",
];

/// The name for an account created from a mailbox: the sender's name, else the domain of their organisation,
/// else their address.
pub fn account_name(mailbox: &Mailbox) -> String {
    let address = mailbox.address.as_str();
    let name = mailbox.name.as_deref().map(str::trim).filter(|name| !name.contains('@'));
    let name = name.map(|name| clip(name, MAX_NAME.max)).filter(|name| is_visible(name));
    let domain = address.rsplit('@').next().filter(|domain| !PUBLIC_PROVIDERS.contains(domain));
    name.unwrap_or_else(|| clip(domain.unwrap_or(address), MAX_NAME.max))
}

/// A mail's text as stored: lines end in `\n`, no control characters, limited length. Also returns whether it
/// was truncated.
pub fn kept_text(text: &str) -> (String, bool) {
    let mut kept = String::with_capacity(text.len().min(MAX_BODY.max * 2));
    let mut chars = text.chars().peekable();
    let mut count = 0;
    while let Some(char) = chars.next() {
        let char = match char {
            '\r' if chars.peek() == Some(&'\n') => continue,
            '\r' => '\n',
            char if char.is_control() && !matches!(char, '\n' | '\t') => continue,
            char => char,
        };
        if count == MAX_BODY.max {
            return (kept, true);
        }
        kept.push(char);
        count += 1;
    }
    kept.truncate(kept.trim_end().len());
    let lead = kept.len() - kept.trim_start_matches(['\n', '\u{feff}']).len();
    kept.drain(..lead);
    (kept, false)
}

/// A header line as stored: a single line, no control characters, limited length.
pub fn kept_line(text: &str) -> Option<String> {
    let words: Vec<&str> = text
        .split(|char: char| char.is_whitespace() || char.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let line = clip(&words.join(" "), MAX_SUBJECT.max);
    (!line.is_empty()).then_some(line)
}

fn clip(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

#[cfg(test)]
mod tests;
