//! The totals of companies too large to add up while a page loads.

use rapport_domain::id::CompanyId;
use rapport_domain::time::Time;
use rapport_store::stage_totals::{self, Kept, Total};
use rapport_store::{Lane, Tx};

use crate::App;
use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;

/// Unchanged totals are written again after this long, so that "as of" stays true.
const FRESH_SECONDS: i64 = 5 * 60;
/// Accounts counted by one statement.
const STEP: i64 = 5_000;

/// When the totals of a company were last counted, on any node; `None` if none are stored.
pub async fn counted_at(app: &App, company: CompanyId) -> Result<Option<Time>, Error> {
    let access = Access::System(company);
    let found = app.read(&access, Needs::Server, |snapshot, _| stage_totals::kept(snapshot)).await?;
    Ok(found.reply.map(|kept| kept.counted_at))
}

/// Counts a company's accounts, and stores the totals if pages need them and they are new. Returns whether it
/// did.
pub async fn recount(app: &App, company: CompanyId) -> Result<bool, Error> {
    let access = Access::System(company);
    let read = app.read(&access, Needs::Server, |snapshot, _| {
        Ok((stage_totals::count_all(snapshot, STEP)?, stage_totals::kept(snapshot)?))
    });
    let (totals, kept) = read.await?.reply;
    // A large stage shows its stored total until a recount finds it small.
    let was_large = kept.as_ref().is_some_and(|kept| stage_totals::has_large_stage(&kept.totals));
    let needed = was_large || stage_totals::has_large_stage(&totals);
    if !needed || !is_news(&totals, kept.as_ref(), app.now()) {
        return Ok(false);
    }
    app.write(&access, KeepTotals(totals)).await?;
    Ok(true)
}

fn is_news(totals: &[Total], kept: Option<&Kept>, now: Time) -> bool {
    kept.is_none_or(|kept| kept.totals != totals || now >= kept.counted_at.plus_seconds(FRESH_SECONDS))
}

struct KeepTotals(Vec<Total>);

impl Command for KeepTotals {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        Ok(stage_totals::keep(tx, &self.0, cx.now)?)
    }
}
