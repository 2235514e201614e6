//! The weekly digest: gathered and rendered outside of any transaction, then written once per company and ISO
//! week together with a mail to every active member.

use std::collections::HashMap;

use rapport_domain::audit::Action;
use rapport_domain::company::Company;
use rapport_domain::digest::{Audience, MAX_NAMED, Week, due};
use rapport_domain::id::{CompanyId, FormId, MailId};
use rapport_domain::mail::Kind;
use rapport_domain::mail_limit::Target;
use rapport_domain::member::Member;
use rapport_domain::right::Right;
use rapport_domain::time::Time;
use rapport_store::clients::{CappedCount, Client, ListClients, Tab};
use rapport_store::{Lane, Query as _, Snapshot, Tx, clients, company, digest, member};
use serde_json::json;

use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;
use crate::letter::{self, Letter, OverdueClient};
use crate::mail::{self, Recipient};
use crate::origin::Origin;
use crate::submission::Once;
use crate::{Answer, App, Viewer, audit, mail_limit, sample};

/// A digest that couldn't be sent for this long is outdated.
const WORTH_SENDING_DAYS: i64 = 2;

/// A rendered digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub subject: String,
    pub plain: String,
    pub html: String,
    /// The number of overdue clients.
    pub overdue: i64,
}

/// The digest as it would be sent now.
pub async fn preview(app: &App, access: &Access) -> Result<Rendered, Error> {
    let found = app.read(access, Needs::Right(Right::Read), overdue).await?;
    let (Letter { subject, plain, html, .. }, overdue) = render(app, found);
    Ok(Rendered { subject, plain, html, overdue })
}

/// Sends the digest now, in addition to the weekly one; returns how many mails that makes.
pub async fn send_now(
    app: &App,
    access: &Access,
    origin: Option<Origin>,
    audience: Audience,
) -> Result<usize, Error> {
    let command = written(app, access, audience).await?;
    app.write_from(access, origin, command).await
}

/// Like [`send_now`], for a form: sends the digest once, even if the form arrives twice.
pub async fn send_once(
    app: &App,
    access: &Access,
    origin: Option<Origin>,
    audience: Audience,
    form: FormId,
) -> Result<usize, Error> {
    let command = Once { form, command: written(app, access, audience).await? };
    app.write_from(access, origin, command).await
}

/// The command that sends the digest as it is now.
pub async fn written(app: &App, access: &Access, audience: Audience) -> Result<SendDigest, Error> {
    let found = app.read(access, Needs::Right(Right::Settings), overdue).await?;
    let (letter, _) = render(app, found);
    Ok(SendDigest { letter, audience })
}

/// Sends a digest that is written already.
pub struct SendDigest {
    letter: Letter,
    audience: Audience,
}

impl Command for SendDigest {
    type Reply = usize;
    const NEEDS: Needs = Needs::Right(Right::Settings);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<usize, Error> {
        if !cx.outside().mail_configured {
            let detail = "mail isn't configured on this server, so the digest can't be sent";
            return Err(Error::conflict("mail_not_configured", detail));
        }
        let members = active_members(tx)?;
        let chosen: Vec<Recipient> = members
            .iter()
            .filter(|member| match self.audience {
                Audience::Everyone => true,
                Audience::Member(person) => member.person == person,
            })
            .map(Recipient::from)
            .collect();
        if chosen.is_empty() {
            return Err(Error::NotFound("member"));
        }
        let count = chosen.len();
        mail_limit::admit(tx, cx, Kind::Digest, Target::Company(cx.company().id))?;
        let not_after = cx.now.plus_days(WORTH_SENDING_DAYS);
        mail::write(tx, cx, Kind::Digest, self.letter.clone(), chosen, not_after)?;
        audit::record(tx, cx, Action::DigestSent, None, &json!({ "mails": count }))?;
        Ok(count)
    }
}

/// The weeks whose digest is known to exist, so that checking again costs no read.
pub type Made = HashMap<CompanyId, Week>;

/// Creates every digest that is due. Safe to run anywhere at any time: a week's digest is created only once.
pub async fn make_due(app: &App, made: &mut Made) -> Result<(), Error> {
    for company in app.read_across(company::list).await? {
        let week = due(&company.settings, company.created_at, app.now());
        let Some(week) = week.filter(|week| made.get(&company.id) != Some(week)) else { continue };
        match make_one(app, company.id, week).await {
            Err(error) if error.is_deleted_company() => {}
            is_made => {
                if is_made? {
                    made.insert(company.id, week);
                }
            }
        }
    }
    Ok(())
}

/// Creates one company's digest, unless the schedule changed. Returns whether the digest exists, even if another node created it.
async fn make_one(app: &App, company: CompanyId, week: Week) -> Result<bool, Error> {
    let access = Access::System(company);
    let found = app.read(&access, Needs::Server, move |snapshot, viewer| {
        let (since, is_made) = (since(snapshot)?, digest::get(snapshot, week)?.is_some());
        let clients = if is_made { None } else { Some(overdue(snapshot, viewer)?) };
        Ok((since, clients))
    });
    let Answer { reply: (since, clients), company, now } = found.await?;
    let Some(clients) = clients else { return Ok(true) };
    if due(&company.settings, since.unwrap_or(company.created_at), now) != Some(week) {
        return Ok(false);
    }
    let (letter, overdue) = render(app, Answer { reply: clients, company, now });
    app.write(&access, WriteDigest { week, letter, overdue }).await
}

fn since(snapshot: &mut Snapshot) -> Result<Option<Time>, rapport_store::Error> {
    digest::schedule_since(snapshot)
}

/// Writes a week's digest and its mails in one transaction; the row's key makes it unique.
struct WriteDigest {
    week: Week,
    letter: Letter,
    overdue: i64,
}

impl Command for WriteDigest {
    /// Whether the week's digest exists, created now or earlier.
    type Reply = bool;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<bool, Error> {
        let since = since(tx)?.unwrap_or(cx.company().created_at);
        if due(cx.settings(), since, cx.now) != Some(self.week) {
            return Ok(false);
        }
        let content: MailId = cx.id();
        if !digest::insert(tx, self.week, content, self.overdue, cx.now)? {
            return Ok(true);
        }
        mail::keep_as(tx, cx, content, self.letter.clone())?;
        if cx.outside().mail_configured {
            let recipients = active_members(tx)?.iter().map(Recipient::from).collect();
            let not_after = cx.now.plus_days(WORTH_SENDING_DAYS);
            mail::address(tx, cx, Kind::Digest, content, recipients, not_after)?;
        }
        Ok(true)
    }
}

fn active_members(tx: &mut Tx) -> Result<Vec<Member>, rapport_store::Error> {
    Ok(member::list(tx)?.into_iter().filter(Member::is_active).collect())
}

/// The most overdue clients, and the total number. Sample accounts aren't worth a mail.
struct Overdue {
    clients: Vec<Client>,
    count: CappedCount,
}

fn overdue(snapshot: &mut Snapshot, viewer: &Viewer) -> Result<Overdue, rapport_store::Error> {
    let (now, settings) = (viewer.now, viewer.settings());
    let mut samples = sample::loaded(snapshot, &viewer.caller.company)?;
    samples.retain(|account| account.due(settings, now).overdue);
    let limit = i64::try_from(MAX_NAMED + samples.len()).unwrap_or(1);
    let page = ListClients { tab: Tab::Overdue, after: None, limit, now }.run(snapshot)?;
    let mut count = clients::count(snapshot, Tab::Overdue, now)?;
    if !count.capped {
        count.count -= i64::try_from(samples.len()).unwrap_or(0);
    }
    let named = page.items.into_iter().filter(|client| !client.account.sample).take(MAX_NAMED);
    Ok(Overdue { clients: named.collect(), count })
}

fn render(app: &App, found: Answer<Overdue>) -> (Letter, i64) {
    let Answer { reply: Overdue { clients, count }, company: Company { name, .. }, .. } = found;
    let base_url = &app.services().outside().base_url;
    let client = |client: Client| OverdueClient {
        url: format!("{base_url}/accounts/{}", client.account.id),
        name: client.account.name,
        days_overdue: client.due.days_overdue,
    };
    let clients = clients.into_iter().map(client).collect();
    (letter::digest(base_url, &name, clients, &count), count.count)
}
