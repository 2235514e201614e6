//! Reminders: emits `client.contact_due` for clients that became overdue, once per episode, in small steps.
//!
//! A step lists overdue, unannounced clients outside of any transaction. Inside one it locks those accounts,
//! asks `domain` again and opens their episodes. If several nodes do this at once, the database gives each
//! episode to only one of them.

use jiff::civil::Date;
use rapport_domain::account::Account;
use rapport_domain::cadence::{self, Reminder};
use rapport_domain::id::{AccountId, CompanyId};
use rapport_store::{Lane, Tx, account};

use crate::App;
use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;
use crate::outbox::Outbox;

/// Accounts announced per transaction.
pub const STEP: i64 = 100;

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stepped {
    /// Events written.
    pub announced: usize,
    /// Whether the next step can follow immediately.
    pub more: bool,
}

/// Announces some of a company's overdue clients.
pub async fn step(app: &App, company: CompanyId) -> Result<Stepped, Error> {
    let access = Access::System(company);
    let now = app.now();
    let read = app.read(&access, Needs::Server, move |snapshot, _| {
        rapport_store::cadence::unannounced(snapshot, now, STEP)
    });
    let overdue = read.await?.reply;
    if overdue.is_empty() {
        return Ok(Stepped { announced: 0, more: false });
    }
    let is_full = i64::try_from(overdue.len()).is_ok_and(|found| found == STEP);
    let Announced { events, settled } = app.write(&access, Announce(overdue)).await?;
    // If nothing was settled, someone made contact in the meantime; the next round checks again.
    Ok(Stepped { announced: events, more: is_full && settled > 0 })
}

/// Clears some snoozes that have ended in every time zone; returns whether there are more.
pub async fn end_snoozes(app: &App, company: CompanyId) -> Result<bool, Error> {
    let access = Access::System(company);
    let date = cadence::begun_everywhere(app.now());
    let read = app.read(&access, Needs::Server, move |snapshot, _| {
        rapport_store::cadence::ended_snoozes(snapshot, date, STEP)
    });
    let ended = read.await?.reply;
    let more = !ended.is_empty();
    for accounts in ended.chunks(usize::try_from(STEP).unwrap_or(1)) {
        app.write(&access, EndSnoozes { accounts: accounts.to_vec(), date }).await?;
    }
    Ok(more)
}

/// Announces those of these accounts that are overdue and whose episode isn't announced yet.
pub struct Announce(pub Vec<AccountId>);

/// How many events were written, and how many accounts need no further check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announced {
    pub events: usize,
    pub settled: usize,
}

impl Command for Announce {
    type Reply = Announced;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Announced, Error> {
        let locked = account::lock(tx, &self.0)?;
        let overdue: Vec<(&Account, Reminder)> = locked
            .iter()
            .filter_map(|account| {
                cadence::reminder(&account.clock(), cx.settings(), cx.now).map(|reminder| (account, reminder))
            })
            .collect();
        let accounts: Vec<&Account> = overdue.iter().map(|(account, _)| *account).collect();
        let opened = rapport_store::cadence::open_episodes(tx, &accounts, cx.now)?;
        rapport_store::cadence::set_announced(tx, &accounts)?;
        let mut outbox = Outbox::default();
        let mut events = 0;
        for (account, reminder) in overdue.iter().filter(|(account, _)| opened.contains(&account.id)) {
            outbox.contact_due(cx, account, *reminder);
            events += usize::from(!account.sample);
        }
        outbox.write(tx, cx)?;
        Ok(Announced { events, settled: accounts.len() })
    }
}

struct EndSnoozes {
    accounts: Vec<AccountId>,
    date: Date,
}

impl Command for EndSnoozes {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<(), Error> {
        // Everyone who changes an account's clock locks the account first, so this cannot deadlock.
        account::lock(tx, &self.accounts)?;
        Ok(rapport_store::cadence::end_snoozes(tx, &self.accounts, self.date)?)
    }
}
