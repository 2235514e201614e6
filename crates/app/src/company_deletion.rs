//! Deleting a company: asked for by an owner, done after a waiting period, in steps small enough that nothing else waits
//! for them. Its logins go with it, unless they belong to another company.
//!
//! The first step lets nobody in any more. The last one makes sure, while nothing else of the company runs, that no row
//! is left, and removes the company itself. Whatever happens in between, the next round continues.

use rapport_domain::audit::Action;
use rapport_domain::company_deletion::{Deletion, confirm};
use rapport_domain::history::Actor;
use rapport_domain::id::CompanyId;
use rapport_domain::mail::Kind;
use rapport_domain::member::Role;
use rapport_domain::right::Right;
use rapport_store::{Lane, Tx, company, company_data, company_deletion, departed, member};
use serde_json::{Map, Value, json};

use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;
use crate::letter::{Letter, deletion as letters};
use crate::mail::{self, Recipient};
use crate::{App, audit};

/// People removed per transaction.
const PEOPLE: i64 = 50;
/// A notice that couldn't be sent for this long is outdated.
const NOTICE_DAYS: i64 = 2;

/// An owner asks to delete the company. They have typed its short name, and proved that they know their password, unless
/// their session began with single sign-on.
pub struct RequestDeletion(pub Map<String, Value>);

impl Command for RequestDeletion {
    type Reply = Deletion;
    const NEEDS: Needs = Needs::Right(Right::Company);

    /// Who logged in with single sign-on may have no password.
    fn needs_proof(&self, cx: &Context) -> bool {
        cx.caller.by_sso
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Deletion, Error> {
        // A token is no person who could be asked again.
        let Actor::Person { .. } = cx.actor() else { return Err(Error::Unauthenticated) };
        confirm(&self.0, &cx.company().slug)?;
        request(tx, cx)
    }
}

/// The server's administrator deletes the company, after the waiting period or at once.
pub struct ScheduleDeletion {
    pub is_now: bool,
}

impl Command for ScheduleDeletion {
    type Reply = Deletion;
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Deletion, Error> {
        if !self.is_now {
            return request(tx, cx);
        }
        let requested = company_deletion::get(tx)?;
        let deletion = Deletion { at: cx.now, ..requested.unwrap_or_else(|| Deletion::new(None, cx.now)) };
        company_deletion::insert(tx, &deletion)?;
        company_deletion::set_time(tx, cx.now)?;
        record_request(tx, cx, &deletion)?;
        Ok(deletion)
    }
}

fn request(tx: &mut Tx, cx: &Context) -> Result<Deletion, Error> {
    let deletion = Deletion::new(cx.actor().name().map(str::to_owned), cx.now);
    if !company_deletion::insert(tx, &deletion)? {
        return Err(Error::conflict("deletion_requested", "the company is waiting to be deleted already"));
    }
    let letter = letters::requested(&cx.outside().base_url, cx.company(), &deletion);
    notify(tx, cx, letter)?;
    record_request(tx, cx, &deletion)?;
    Ok(deletion)
}

fn record_request(tx: &mut Tx, cx: &Context, deletion: &Deletion) -> Result<(), Error> {
    let detail = json!({ "at": deletion.at.to_string() });
    Ok(audit::record(tx, cx, Action::CompanyDeletionRequested, None, &detail)?)
}

/// Keeps a company that was waiting to be deleted.
pub struct CancelDeletion;

impl Command for CancelDeletion {
    type Reply = ();
    const NEEDS: Needs = Needs::Right(Right::Company);
    /// It must not begin meanwhile.
    const EXCLUSIVE: bool = true;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let found = company_deletion::get(tx)?.ok_or(Error::NotFound("deletion"))?;
        if found.has_begun() {
            return Err(Error::conflict("deletion_begun", "the deletion has begun and can't be cancelled"));
        }
        company_deletion::cancel(tx)?;
        let letter = letters::cancelled(&cx.outside().base_url, cx.company(), cx.actor().name());
        notify(tx, cx, letter)?;
        let detail = json!({ "at": { "from": found.at.to_string(), "to": null } });
        audit::record(tx, cx, Action::CompanyDeletionCancelled, None, &detail)?;
        Ok(())
    }
}

/// Tells the owners and admins.
fn notify(tx: &mut Tx, cx: &Context, letter: Letter) -> Result<(), Error> {
    let admins =
        member::list(tx)?.into_iter().filter(|member| member.is_active() && member.role >= Role::Admin);
    let recipients = admins.map(|admin| Recipient::from(&admin)).collect();
    mail::write(tx, cx, Kind::CompanyDeletion, letter, recipients, cx.now.plus_days(NOTICE_DAYS))?;
    Ok(())
}

/// How far the deletion of a company is. Losing it costs a look at each table.
#[derive(Debug, Clone, Copy, Default)]
pub struct Erasing {
    stage: Stage,
    /// How many rows were deleted.
    pub rows: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    #[default]
    Begin,
    People,
    Table(usize),
    Finish,
}

/// The companies to delete now.
pub async fn due(app: &App) -> Result<Vec<CompanyId>, Error> {
    let now = app.now();
    app.read_across(move |across| company_deletion::due(across, now)).await
}

/// Runs one step of a deletion that is due; returns whether there is more.
pub async fn step(app: &App, company: CompanyId, erasing: &mut Erasing) -> Result<bool, Error> {
    let access = Access::System(company);
    match erasing.stage {
        Stage::Begin => {
            if !app.write(&access, BeginDeletion).await? {
                return Ok(false);
            }
            erasing.stage = Stage::People;
        }
        Stage::People => {
            let removed = app.write(&access, RemovePeople).await?;
            erasing.rows += removed;
            if removed == 0 {
                erasing.stage = Stage::Table(0);
            }
        }
        Stage::Table(table) => {
            let deleted = app.write(&access, DeleteRows { table }).await?;
            erasing.rows += deleted;
            if deleted == 0 {
                let next = table + 1;
                erasing.stage =
                    if next < company_data::table_count() { Stage::Table(next) } else { Stage::Finish };
            }
        }
        Stage::Finish => {
            let Some(table) = app.write(&access, FinishDeletion).await? else {
                tracing::info!(company = company.0, rows = erasing.rows, "company deleted");
                return Ok(false);
            };
            erasing.stage = Stage::Table(table);
        }
    }
    Ok(true)
}

/// Lets nobody in any more, unless the deletion was cancelled; returns whether it goes on.
struct BeginDeletion;

impl Command for BeginDeletion {
    type Reply = bool;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;
    const EXCLUSIVE: bool = true;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<bool, Error> {
        let Some(found) = company_deletion::get(tx)?.filter(|found| found.is_due(cx.now)) else {
            return Ok(false);
        };
        if !found.has_begun() {
            company_deletion::begin(tx, cx.now)?;
            let (company, project) = (cx.company().id.0, cx.company().slug.as_str().to_owned());
            tx.after_commit(move || tracing::info!(company, project, "deleting a company"));
        }
        Ok(true)
    }
}

/// Removes some people, and the logins of those who belong to no other company; returns how many.
struct RemovePeople;

impl Command for RemovePeople {
    type Reply = usize;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<usize, Error> {
        let people = company_deletion::members(tx, PEOPLE)?;
        for person in &people {
            member::delete(tx, *person)?;
            departed::delete(tx, *person)?;
        }
        Ok(people.len())
    }
}

/// Deletes some rows of a table; returns how many.
struct DeleteRows {
    table: usize,
}

impl Command for DeleteRows {
    type Reply = usize;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<usize, Error> {
        Ok(company_data::delete_some(tx, self.table)?)
    }
}

/// Removes the company itself, unless a table has a row of it again; returns that table.
struct FinishDeletion;

impl Command for FinishDeletion {
    type Reply = Option<usize>;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;
    /// What runs at the same time could write rows that nobody would delete.
    const EXCLUSIVE: bool = true;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<Option<usize>, Error> {
        company::lock(tx)?;
        let filled = company_data::first_filled(tx)?;
        if filled.is_none() {
            company_deletion::finish(tx)?;
        }
        Ok(filled)
    }
}
