//! Counts accounts and their values per channel and promo code, in steps short enough that nothing waits for
//! them. An account that changes during a count may be counted with its old values; the next count corrects
//! that.

use std::time::Duration;

use rapport_domain::channel_total::{CodeTotal, Counted, SHOWN_SECONDS, Totals};
use rapport_domain::id::CompanyId;
use rapport_store::channel_total::{self, Place};
use rapport_store::{Lane, Tx, company};

use crate::App;
use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;

/// Accounts scanned per read.
const STEP: i64 = 2_000;

/// A count in progress.
#[derive(Debug, Default)]
pub struct Count {
    after: Option<Place>,
    totals: Totals,
}

/// The companies whose next count is due.
pub async fn due(app: &App) -> Result<Vec<CompanyId>, Error> {
    let now = app.now();
    let found = app.read_across(|across| Ok((company::list(across)?, channel_total::all_counted(across)?)));
    let (companies, counted) = found.await?;
    let is_due = |id: &CompanyId| counted.get(id).is_none_or(|counted| counted.next() <= now);
    Ok(companies.into_iter().map(|company| company.id).filter(is_due).collect())
}

/// Runs one step of a count; returns whether there is more.
pub async fn step(app: &App, company: CompanyId, count: &mut Count) -> Result<bool, Error> {
    let (access, after) = (Access::System(company), count.after);
    let read =
        app.read(&access, Needs::Server, move |snapshot, _| channel_total::step(snapshot, after, STEP));
    let (parts, end) = read.await?.reply;
    parts.into_iter().for_each(|part| count.totals.add(part));
    count.after = end;
    Ok(end.is_some())
}

/// Stores a finished count. An unchanged result is written only now and then, so that open pages aren't
/// notified of a change that didn't happen.
pub async fn keep(app: &App, company: CompanyId, count: Count, took: Duration) -> Result<(), Error> {
    let (access, now) = (Access::System(company), app.now());
    let totals = count.totals.into_rows();
    let read = app.read(&access, Needs::Server, |snapshot, _| {
        Ok((channel_total::counted(snapshot)?, channel_total::all(snapshot)?))
    });
    let (counted, known) = read.await?.reply;
    let is_fresh = counted.is_some_and(|counted| now < counted.at.plus_seconds(SHOWN_SECONDS));
    if is_fresh && known == totals {
        return Ok(());
    }
    let took_micros = i64::try_from(took.as_micros()).unwrap_or(i64::MAX);
    app.write(&access, Keep { totals, took_micros }).await
}

struct Keep {
    totals: Vec<CodeTotal>,
    took_micros: i64,
}

impl Command for Keep {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let counted = Counted { at: cx.now, took_micros: self.took_micros };
        Ok(channel_total::replace(tx, &self.totals, counted)?)
    }
}
