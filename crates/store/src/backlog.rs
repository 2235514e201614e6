//! What waits, across all companies, for monitoring. Counts are capped, so that watching a long queue stays cheap.

use rapport_domain::caps::IN_A_LIST;
use rapport_domain::id::made_at;
use rapport_domain::time::Time;

use crate::delivery_state::delivery_state;
use crate::error::Error;
use crate::statement::{Statement, statements};
use crate::tx::Across;
use crate::{values, webhook};

statements! {
    reference OWNED = concat!(
        "SELECT id, next_at FROM delivery /*INDEXED BY delivery_owned*/ WHERE state = ", delivery_state!(open),
        " AND owner IS NOT NULL LIMIT $1"
    );
    // CROSS, so that SQLite starts with the webhooks.
    reference WAITING = concat!(
        "SELECT d.id FROM webhook w CROSS JOIN delivery d /*INDEXED BY delivery_waiting*/ ",
        "WHERE w.deleted_at IS NULL AND w.disabled_by_hand = 0 AND w.auto_disabled_at IS NULL ",
        "AND d.company = w.company AND d.webhook = w.id AND d.state = ", delivery_state!(open),
        " AND d.owner IS NULL LIMIT $1"
    );
    reference HELD = concat!(
        "SELECT count(*) FROM (SELECT 1 FROM webhook w CROSS JOIN delivery d /*INDEXED BY delivery_waiting*/ ",
        "WHERE w.deleted_at IS NULL AND (w.disabled_by_hand = 1 OR w.auto_disabled_at IS NOT NULL) ",
        "AND d.company = w.company AND d.webhook = w.id AND d.state = ", delivery_state!(open),
        " AND d.owner IS NULL LIMIT $1) AS held"
    );
    reference DISABLED = "SELECT disabled_by_hand, count(*) FROM webhook WHERE deleted_at IS NULL \
                          AND (disabled_by_hand = 1 OR auto_disabled_at IS NOT NULL) GROUP BY disabled_by_hand";
    reference MAILS = "SELECT id FROM mail /*INDEXED BY mail_waiting*/ WHERE state = 0 LIMIT $1";
}

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
    deliveries.extend(ids(across, &WAITING)?);
    due.extend(webhook::with_work(across)?.into_iter().map(|(_, _, next)| next));
    let mails = ids(across, &MAILS)?;
    let held = across.query_opt(&HELD, values![IN_A_LIST])?;
    let mut backlog = Backlog {
        deliveries: capped(deliveries.len()),
        oldest_delivery: deliveries.iter().min().map(made_at),
        next_due: due.into_iter().min(),
        held: held.map_or(Ok(0), |mut row| row.take())?,
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

fn ids(across: &mut Across, statement: &Statement) -> Result<Vec<[u8; 16]>, Error> {
    let rows = across.query(statement, values![IN_A_LIST])?;
    rows.into_iter().map(|mut row| row.take()).collect()
}

fn capped(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(IN_A_LIST).min(IN_A_LIST)
}
