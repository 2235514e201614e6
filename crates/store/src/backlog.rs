//! What waits, across all companies, for monitoring. Counts are capped, so that watching a long queue stays cheap.

use rapport_domain::caps::{IN_A_LIST, ON_A_PAGE};
use rapport_domain::id::{CompanyId, WebhookId, made_at};
use rapport_domain::time::Time;

use crate::delivery_state::delivery_state;
use crate::error::Error;
use crate::statement::statements;
use crate::tx::Across;
use crate::value::Row;
use crate::{values, webhook};

statements! {
    reference OWNED = concat!(
        "SELECT id, next_at FROM delivery /*INDEXED BY delivery_owned*/ WHERE state = ", delivery_state!(open),
        " AND owner IS NOT NULL LIMIT $1"
    );
    // One webhook at a time: joined to the webhooks, PostgreSQL would read everything that waits.
    reference WAITING = concat!(
        "SELECT id FROM delivery /*INDEXED BY delivery_waiting*/ WHERE company = $1 AND webhook = $2 AND state = ",
        delivery_state!(open), " AND owner IS NULL LIMIT $3"
    );
    reference HOLDING = concat!(
        "SELECT w.company, w.id FROM webhook w WHERE w.deleted_at IS NULL ",
        "AND (w.disabled_by_hand = 1 OR w.auto_disabled_at IS NOT NULL) ",
        "AND (SELECT 1 FROM delivery d /*INDEXED BY delivery_waiting*/ ",
        "WHERE d.company = w.company AND d.webhook = w.id AND d.state = ", delivery_state!(open),
        " AND d.owner IS NULL LIMIT 1 OFFSET 0) IS NOT NULL"
    );
    reference DISABLED = "SELECT disabled_by_hand, count(*) FROM webhook WHERE deleted_at IS NULL \
                          AND (disabled_by_hand = 1 OR auto_disabled_at IS NOT NULL) GROUP BY disabled_by_hand";
    reference MAILS = "SELECT id FROM mail /*INDEXED BY mail_waiting*/ WHERE state = 0 LIMIT $1";
}

/// How many webhooks are asked what waits for them. With more of them, a count says at least how much it is.
const MOST_WEBHOOKS: i64 = ON_A_PAGE;

/// How much waits, and since when. Counts end at [`IN_A_LIST`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Open deliveries that are not held.
    pub deliveries: i64,
    /// When the oldest of the counted deliveries was created.
    pub oldest_delivery: Option<Time>,
    /// The earliest time at which one of them is due, which may be in the future.
    pub next_due: Option<Time>,
    /// Open deliveries of disabled webhooks.
    pub held: i64,
    pub disabled_by_hand: i64,
    pub disabled_by_failures: i64,
    /// Mails that wait to be sent.
    pub mails: i64,
    pub oldest_mail: Option<Time>,
}

pub fn read(across: &mut Across) -> Result<Backlog, Error> {
    let (mut deliveries, mut due) = (Vec::new(), Vec::new());
    for mut row in across.query(&OWNED, values![IN_A_LIST])? {
        deliveries.push(row.take::<[u8; 16]>()?);
        due.push(row.take::<Time>()?);
    }
    let working = webhook::with_work(across)?;
    due.extend(working.iter().map(|(_, _, next)| *next));
    let working = working.into_iter().map(|(company, webhook, _)| (company, webhook));
    deliveries.extend(waiting(across, working, deliveries.len())?);
    let holding: Result<Vec<(CompanyId, WebhookId)>, Error> =
        across.query(&HOLDING, &[])?.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect();
    let held = waiting(across, holding?.into_iter(), 0)?;
    let mails = ids(across.query(&MAILS, values![IN_A_LIST])?)?;
    let mut backlog = Backlog {
        deliveries: capped(deliveries.len()),
        oldest_delivery: deliveries.iter().min().map(made_at),
        next_due: due.into_iter().min(),
        held: capped(held.len()),
        mails: capped(mails.len()),
        oldest_mail: mails.iter().min().map(made_at),
        ..Backlog::default()
    };
    for mut row in across.query(&DISABLED, &[])? {
        let by_hand: bool = row.take()?;
        let count = if by_hand { &mut backlog.disabled_by_hand } else { &mut backlog.disabled_by_failures };
        *count = row.take()?;
    }
    Ok(backlog)
}

/// What waits for these webhooks, until the cap is reached; `counted` is what was counted already.
fn waiting(
    across: &mut Across,
    webhooks: impl Iterator<Item = (CompanyId, WebhookId)>,
    counted: usize,
) -> Result<Vec<[u8; 16]>, Error> {
    let mut found = Vec::new();
    for (company, webhook) in webhooks.take(usize::try_from(MOST_WEBHOOKS).unwrap_or(usize::MAX)) {
        let room = IN_A_LIST - capped(counted + found.len());
        if room == 0 {
            break;
        }
        found.extend(ids(across.query(&WAITING, values![company, &webhook, room])?)?);
    }
    Ok(found)
}

fn ids(rows: Vec<Row>) -> Result<Vec<[u8; 16]>, Error> {
    rows.into_iter().map(|mut row| row.take()).collect()
}

fn capped(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(IN_A_LIST).min(IN_A_LIST)
}
