//! The audit log: who did what, when and from where. Never contains secrets. Entries are only added; retention
//! deletes those that are too old, and erasure takes the values of an account out of them.

use rapport_domain::audit::Filter;
use rapport_domain::history::Actor;
use rapport_domain::id::{AuditId, PersonId, lowest_at};
use rapport_domain::time::Time;

use crate::error::Error;
use crate::page::Page;
use crate::statement::{Statement, UpdateMany, statements};
use crate::tx::{Snapshot, Tx};
use crate::value::{Row, Type, Value};
use crate::values;

/// Selects entries between two ids and two times, newest first.
macro_rules! entries {
    ($index:literal, $keys:literal, $before:literal, $end:literal, $from:literal, $to:literal, $limit:literal) => {
        concat!(
            "SELECT id, actor_kind, actor_id, actor_name, action, target, detail, at, address, request_id ",
            "FROM audit ",
            $index,
            "WHERE company = $1 AND ",
            $keys,
            "id < ",
            $before,
            " AND id >= ",
            $end,
            " AND at >= ",
            $from,
            " AND at < ",
            $to,
            " ORDER BY id DESC LIMIT ",
            $limit
        )
    };
}

statements! {
    company INSERT = "INSERT INTO audit (company, id, actor_kind, actor_id, actor_name, action, target, detail, at, \
                      address, request_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    company LIST = entries!("", "", "$2", "$3", "$4", "$5", "$6");
    // The actions of `Action::is_login`. The first two are the condition of the index. Logouts are in it, but few.
    company WITHOUT_LOGINS = entries!(
        "/*INDEXED BY audit_without_logins*/ ",
        "action <> 'session.begun' AND action <> 'session.failed' AND action <> 'session.logged_out' AND ",
        "$2", "$3", "$4", "$5", "$6"
    );
    company BY_ACTOR = entries!("/*INDEXED BY audit_by_actor*/ ", "actor_id = $2 AND ", "$3", "$4", "$5", "$6", "$7");
    company BY_ACTION = entries!("/*INDEXED BY audit_by_action*/ ", "action = $2 AND ", "$3", "$4", "$5", "$6", "$7");
    company ABOUT = entries!("/*INDEXED BY audit_by_target*/ ", "target = $2 AND ", "$3", "$4", "$5", "$6", "$7");
    company OLD = "SELECT id FROM audit WHERE company = $1 AND id < $2 ORDER BY id LIMIT $3";
    company DELETE = "DELETE FROM audit WHERE company = $1 AND id = ANY($2)";
}

pub(crate) static SET_DETAIL: UpdateMany =
    UpdateMany::new("audit", &[("id", Type::Bytes)], &[("detail", Type::Text)]);

/// An id is generated a little after the time stored with it, or a lot after it if the clock was set back:
/// ids up to this much later may belong to a given time.
const ID_SLACK_SECONDS: i64 = 600;
const LAST: AuditId = AuditId::from_bytes([0xff; 16]);
/// How many entries of a person are read at once when only some of them are wanted.
const CHUNK: i64 = 1_000;

/// One entry; `detail` is JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub id: AuditId,
    pub actor: Actor,
    pub action: String,
    pub target: Option<String>,
    pub detail: String,
    pub at: Time,
    /// The network address the request came from; `None` on the command line and for the service itself.
    pub address: Option<String>,
    /// The id of that request; `None` like the address, and for entries from before ids were kept.
    pub request_id: Option<String>,
}

pub fn insert(tx: &mut Tx, entry: &AuditEntry) -> Result<(), Error> {
    let AuditEntry { id, actor, action, target, detail, at, address, request_id } = entry;
    let actor_id = actor.id_bytes().map(<[u8; 16]>::as_slice);
    tx.execute(
        &INSERT,
        values![
            id,
            actor.kind(),
            actor_id,
            actor.name(),
            action,
            target.as_deref(),
            detail,
            *at,
            address.as_deref(),
            request_id.as_deref()
        ],
    )?;
    Ok(())
}

/// The entries that match a filter, newest first, before `before` if given.
pub fn list(
    snapshot: &mut Snapshot,
    filter: &Filter,
    before: Option<AuditId>,
    limit: i64,
) -> Result<Page<AuditEntry>, Error> {
    let range = Range::of(filter, before);
    let wanted = limit + 1;
    let found = match (filter.person, filter.actions()) {
        (Some(person), _) => of_person(snapshot, filter, person, range, wanted)?,
        (None, Some(actions)) => {
            let mut found = Vec::new();
            for action in actions {
                found.extend(range.read(snapshot, &BY_ACTION, Some(action.as_str().into()), wanted)?);
            }
            found.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.id));
            found
        }
        (None, None) if filter.hides_logins => range.read(snapshot, &WITHOUT_LOGINS, None, wanted)?,
        (None, None) => range.read(snapshot, &LIST, None, wanted)?,
    };
    Ok(Page::from_one_more(found, limit))
}

/// Walks the entries of a person, of whom there are as many as one person can make.
fn of_person(
    snapshot: &mut Snapshot,
    filter: &Filter,
    person: PersonId,
    mut range: Range,
    wanted: i64,
) -> Result<Vec<AuditEntry>, Error> {
    let is_whole = filter.action.is_none() && !filter.hides_logins;
    let chunk = if is_whole { wanted } else { CHUNK };
    let enough = usize::try_from(wanted).unwrap_or(1);
    let mut found = Vec::new();
    loop {
        let read = range.read(snapshot, &BY_ACTOR, Some(Value::from(&person)), chunk)?;
        let is_last = i64::try_from(read.len()).unwrap_or(0) < chunk;
        range.before = read.last().map_or(range.before, |last| last.id);
        found.extend(read.into_iter().filter(|entry| filter.admits_action(&entry.action)));
        if is_last || found.len() >= enough {
            return Ok(found);
        }
    }
}

/// The entries about one thing, newest first, before `before` if given.
pub fn about(
    snapshot: &mut Snapshot,
    target: &str,
    before: Option<AuditId>,
    limit: i64,
) -> Result<Vec<AuditEntry>, Error> {
    Range::of(&Filter::default(), before).read(snapshot, &ABOUT, Some(target.into()), limit)
}

/// Replaces the details of entries.
pub fn set_details(tx: &mut Tx, details: &[(AuditId, String)]) -> Result<(), Error> {
    let rows = details.iter().flat_map(|(id, detail)| [Value::from(id), Value::from(detail)]);
    tx.update(&SET_DETAIL, &rows.collect::<Vec<Value>>())
}

/// Deletes some entries from before `cutoff`; returns how many.
pub fn prune(tx: &mut Tx, cutoff: Time, limit: i64) -> Result<usize, Error> {
    let rows = tx.query(&OLD, values![&lowest_at::<AuditId>(cutoff), limit])?;
    let old: Vec<AuditId> = rows.into_iter().map(|mut row| row.take()).collect::<Result<_, _>>()?;
    let keys: Vec<Value> = old.iter().map(Value::from).collect();
    tx.execute_keys(&DELETE, &[], &keys)?;
    Ok(old.len())
}

/// The part of the log that a filter's times and a page's beginning leave.
#[derive(Clone, Copy)]
struct Range {
    before: AuditId,
    end: AuditId,
    from: Time,
    to: Time,
}

impl Range {
    fn of(filter: &Filter, before: Option<AuditId>) -> Self {
        let latest = filter.to.map_or(LAST, |to| lowest_at(to.plus_seconds(ID_SLACK_SECONDS)));
        let from = filter.from.unwrap_or(Time::from_micros(0));
        Self {
            before: before.unwrap_or(LAST).min(latest),
            end: lowest_at(from),
            from,
            to: filter.to.unwrap_or(Time::from_micros(i64::MAX)),
        }
    }

    fn read(
        self,
        snapshot: &mut Snapshot,
        statement: &'static Statement,
        key: Option<Value>,
        limit: i64,
    ) -> Result<Vec<AuditEntry>, Error> {
        let Self { before, end, from, to } = self;
        let range = [Value::from(&before), Value::from(&end), from.into(), to.into(), limit.into()];
        let values: Vec<Value> = key.into_iter().chain(range).collect();
        snapshot.query(statement, &values)?.into_iter().map(read).collect()
    }
}

fn read(mut row: Row) -> Result<AuditEntry, Error> {
    let row = &mut row;
    Ok(AuditEntry {
        id: row.take()?,
        actor: Actor::from_parts(&row.take::<String>()?, row.take()?, row.take()?),
        action: row.take()?,
        target: row.take()?,
        detail: row.take()?,
        at: row.take()?,
        address: row.take()?,
        request_id: row.take()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapport_domain::audit::Action;

    #[test]
    fn the_statement_without_logins_names_each_of_them() {
        for action in Action::ALL {
            let is_named = WITHOUT_LOGINS.sql.contains(&format!("action <> '{}'", action.as_str()));
            assert_eq!(is_named, action.is_login(), "{action:?}");
        }
    }
}
