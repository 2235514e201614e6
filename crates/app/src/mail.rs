//! Mails: written in the transaction that causes them, sent by a job, with each outcome recorded.
//!
//! Sending is at least once: if a process dies between sending and recording, the mail is sent again when its
//! lease ends. A digest or invitation that arrives twice is a nuisance; one that never arrives is a fault
//! nobody notices. Both copies carry the same Message-ID.

use rapport_domain::id::{CompanyId, MailId, PersonId};
use rapport_domain::mail::{Failure, Kind, LEASE_SECONDS, MAX_ERROR_CHARS, SECRET_PLACE, retry_at};
use rapport_domain::mail_limit::Target;
use rapport_domain::member::{Email, Member};
use rapport_domain::time::Time;
use rapport_store::mail::{self, Content, DueMail, NewMail, Settled};
use rapport_store::{Lane, Tx, member};

use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;
use crate::letter::Letter;
use crate::vault::Owner;
use crate::{App, encryption_key, mail_limit};

/// How the service is reached, and whether it can send mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outside {
    /// A scheme and a host, without a trailing slash.
    pub base_url: String,
    pub mail_configured: bool,
}

impl Default for Outside {
    fn default() -> Self {
        Self { base_url: "http://127.0.0.1:8080".to_owned(), mail_configured: false }
    }
}

/// The mail server, as it may be shown: without a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailRoute {
    pub server: String,
    pub from: String,
}

/// The recipient of a mail.
pub(crate) struct Recipient {
    pub email: Email,
    /// Set for mails that only an active member may get.
    pub member: Option<PersonId>,
}

impl From<&Member> for Recipient {
    fn from(member: &Member) -> Self {
        Self { email: member.email.clone(), member: Some(member.person) }
    }
}

/// Stores a letter under an id: its secret is sealed, and the text keeps the placeholder.
pub(crate) fn keep_as(
    tx: &mut Tx,
    cx: &Context,
    id: MailId,
    letter: Letter,
) -> Result<(), rapport_store::Error> {
    let Letter { subject, plain, html, secret } = letter;
    let seal = |secret: String| encryption_key::seal(tx, cx, Owner::MailLink(id), &secret);
    let secret = secret.map(seal).transpose()?;
    mail::insert_content(tx, &Content { id, subject, plain, html, secret })
}

/// Addresses a stored letter to people, and has it sent once this commits.
pub(crate) fn address(
    tx: &mut Tx,
    cx: &Context,
    kind: Kind,
    content: MailId,
    recipients: Vec<Recipient>,
    not_after: Time,
) -> Result<(), rapport_store::Error> {
    let new = |recipient: Recipient| NewMail {
        id: cx.id(),
        kind,
        person: recipient.member,
        recipient: recipient.email,
        content,
        not_after,
        created_at: cx.now,
    };
    let mails: Vec<NewMail> = recipients.into_iter().map(new).collect();
    mail::insert(tx, &mails)?;
    let written = cx.mail_written();
    tx.after_commit(move || written.notify_one());
    Ok(())
}

/// Writes a letter to people, unless mail isn't configured; returns whether it was written.
///
/// Mail that can't be sent isn't kept for later: a link or notice that arrives weeks late, when someone
/// configures mail, would confuse more than help.
pub(crate) fn write(
    tx: &mut Tx,
    cx: &Context,
    kind: Kind,
    letter: Letter,
    recipients: Vec<Recipient>,
    not_after: Time,
) -> Result<bool, rapport_store::Error> {
    if !cx.outside().mail_configured || recipients.is_empty() {
        return Ok(false);
    }
    let content: MailId = cx.id();
    keep_as(tx, cx, content, letter)?;
    address(tx, cx, kind, content, recipients, not_after)?;
    Ok(true)
}

/// Like [`write`], for a mail that a person asked for: refused if too many were.
pub(crate) fn write_asked(
    tx: &mut Tx,
    cx: &Context,
    kind: Kind,
    letter: Letter,
    recipient: Recipient,
    not_after: Time,
) -> Result<bool, Error> {
    if !cx.outside().mail_configured {
        return Ok(false);
    }
    mail_limit::admit(tx, cx, kind, Target::Address(&recipient.email))?;
    Ok(write(tx, cx, kind, letter, vec![recipient], not_after)?)
}

/// A mail being sent, with all its content.
#[derive(Clone)]
pub struct Outgoing {
    pub id: MailId,
    pub recipient: Email,
    pub subject: String,
    pub plain: String,
    pub html: String,
    /// When it was claimed for sending.
    pub date: Time,
    content: MailId,
    attempt: i64,
    not_after: Time,
}

impl Outgoing {
    fn of(due: DueMail, date: Time) -> Self {
        let Content { id: content, subject, plain, html, .. } = due.content;
        let (id, recipient, attempt, not_after) = (due.id, due.recipient, due.attempts + 1, due.not_after);
        Self { id, recipient, subject, plain, html, date, content, attempt, not_after }
    }

    fn fill(&mut self, secret: &str) {
        self.plain = self.plain.replace(SECRET_PLACE, secret);
        self.html = self.html.replace(SECRET_PLACE, secret);
    }
}

/// Claims some of a company's due mails, for one attempt each.
pub async fn take_due(app: &App, company: CompanyId, limit: i64) -> Result<Vec<Outgoing>, Error> {
    let taken = app.write(&Access::System(company), TakeDue { limit }).await?;
    let mut outgoing = Vec::with_capacity(taken.len());
    for mut due in taken {
        let sealed = due.content.secret.take();
        let mut mail = Outgoing::of(due, app.now());
        match sealed
            .map(|sealed| app.services().vault().open(Owner::MailLink(mail.content), &sealed))
            .transpose()
        {
            Ok(secret) => {
                secret.iter().for_each(|secret| mail.fill(secret));
                outgoing.push(mail);
            }
            // It was sealed by a node with another key; that node may be able to send it.
            Err(error) => {
                let failure = Failure { permanent: false, error: error.to_string() };
                record(app, company, &mail, Err(failure)).await?;
            }
        }
    }
    Ok(outgoing)
}

/// Records how an attempt ended.
pub async fn record(
    app: &App,
    company: CompanyId,
    mail: &Outgoing,
    outcome: Result<(), Failure>,
) -> Result<(), Error> {
    let Outgoing { id, content, attempt, not_after, .. } = *mail;
    let command = RecordAttempt { id, content, attempt, not_after, outcome };
    app.write(&Access::System(company), command).await
}

/// Claims mails; those nobody wants any more are ended instead.
struct TakeDue {
    limit: i64,
}

impl Command for TakeDue {
    type Reply = Vec<DueMail>;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Vec<DueMail>, Error> {
        let mut taken = Vec::new();
        for due in mail::lock_due(tx, cx.now, self.limit)? {
            match unwanted(tx, &due, cx.now)? {
                Some(error) => end(tx, &due, error, cx.now)?,
                None => taken.push(due),
            }
        }
        let ids: Vec<MailId> = taken.iter().map(|due| due.id).collect();
        mail::take(tx, &ids, cx.now.plus_seconds(LEASE_SECONDS))?;
        Ok(taken)
    }
}

fn unwanted(tx: &mut Tx, due: &DueMail, now: Time) -> Result<Option<&'static str>, rapport_store::Error> {
    if now > due.not_after {
        return Ok(Some("expired"));
    }
    let Some(person) = due.person else { return Ok(None) };
    let is_active = member::get(tx, person)?.is_some_and(|member| member.is_active());
    Ok((!is_active).then_some("recipient_inactive"))
}

fn end(tx: &mut Tx, due: &DueMail, error: &str, now: Time) -> Result<(), rapport_store::Error> {
    mail::settle(tx, due.id, due.attempts, Settled::Failed { error }, now)?;
    mail::forget_secret(tx, due.content.id)
}

struct RecordAttempt {
    id: MailId,
    content: MailId,
    attempt: i64,
    not_after: Time,
    outcome: Result<(), Failure>,
}

impl Command for RecordAttempt {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Outcome;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let error = self.outcome.as_ref().err().map_or(String::new(), |failure| cut(&failure.error));
        let settled = match &self.outcome {
            Ok(()) => Settled::Sent,
            Err(failure) => match retry_at(self.attempt, failure.permanent, self.not_after, cx.now) {
                Some(at) => Settled::Retry { at, error: &error },
                None => Settled::Failed { error: &error },
            },
        };
        let is_over = !matches!(settled, Settled::Retry { .. });
        if mail::settle(tx, self.id, self.attempt, settled, cx.now)? && is_over {
            mail::forget_secret(tx, self.content)?;
        }
        Ok(())
    }
}

/// A server's message, shortened for storage.
fn cut(error: &str) -> String {
    error.chars().filter(|c| *c != '\0').take(MAX_ERROR_CHARS).collect()
}
