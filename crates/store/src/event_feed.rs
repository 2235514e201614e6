//! The events of a company in the order of their numbers, for readers that follow them with a cursor.

use std::collections::HashMap;

use rapport_domain::event::Kind;
use rapport_domain::feed::Kinds;
use rapport_domain::id::EventId;
use rapport_domain::time::Time;

use crate::change::{Place, Settled};
use crate::error::Error;
use crate::statement::statements;
use crate::tx::Snapshot;
use crate::value::{Row, Value};
use crate::values;

statements! {
    company KEYS = "SELECT change, id, kind, created_at FROM event /*INDEXED BY event_by_change*/ WHERE company = $1 \
                    AND (change, id) > ($2, $3) AND change < $4 ORDER BY change, id LIMIT $5";
    company PAYLOADS = "SELECT id, payload FROM event WHERE company = $1 AND id = ANY($2)";
}

/// How many events a page looks at if some of them don't count.
const SEARCHED: i64 = 1_000;

/// Asks for the events after a place.
#[derive(Debug, Clone)]
pub struct EventsAfter {
    pub place: Place,
    pub kinds: Kinds,
    pub limit: i64,
}

/// Some events, as they are delivered, and where to continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Events {
    /// Without those whose payload was erased.
    pub payloads: Vec<String>,
    pub next: Place,
    /// When the event at `next` was created, if the page passed one.
    pub reached: Option<Time>,
    /// Whether there are further events now, which may not be of these kinds.
    pub more: bool,
}

struct Key {
    change: i64,
    id: EventId,
    kind: Kind,
    created_at: Time,
}

/// `settled` must be from before this snapshot.
pub fn after(snapshot: &mut Snapshot, asked: &EventsAfter, settled: Settled) -> Result<Events, Error> {
    let Place { change, id } = asked.place;
    let limit = usize::try_from(asked.limit).unwrap_or(0);
    let most = if asked.kinds.0.is_empty() { asked.limit + 1 } else { SEARCHED.max(asked.limit + 1) };
    let rows = snapshot.query(&KEYS, values![change, id.as_slice(), settled.0, most])?;
    let is_full = i64::try_from(rows.len()).is_ok_and(|found| found == most);
    let keys: Vec<Key> = rows.into_iter().map(read_key).collect::<Result<_, _>>()?;
    let total = keys.len();
    let (mut wanted, mut passed) = (Vec::new(), 0_usize);
    for key in &keys {
        let counts = asked.kinds.include(key.kind);
        if counts && wanted.len() == limit {
            break;
        }
        if counts {
            wanted.push(key.id);
        }
        passed += 1;
    }
    let last = passed.checked_sub(1).map(|last| &keys[last]);
    Ok(Events {
        payloads: payloads(snapshot, &wanted)?,
        next: last.map_or(asked.place, |key| Place { change: key.change, id: *key.id.as_bytes() }),
        reached: last.map(|key| key.created_at),
        more: passed < total || is_full,
    })
}

fn read_key(mut row: Row) -> Result<Key, Error> {
    Ok(Key {
        change: row.take()?,
        id: row.take()?,
        kind: Kind::parse(&row.take::<String>()?).ok_or_else(|| Error::fault("an unknown kind of event"))?,
        created_at: row.take()?,
    })
}

/// The payloads of these events that were not erased, in this order.
fn payloads(snapshot: &mut Snapshot, ids: &[EventId]) -> Result<Vec<String>, Error> {
    let keys: Vec<Value> = ids.iter().map(Value::from).collect();
    let mut found: HashMap<EventId, String> = HashMap::with_capacity(ids.len());
    for mut row in snapshot.query_keys(&PAYLOADS, &[], &keys)? {
        let (id, payload): (EventId, Option<String>) = (row.take()?, row.take()?);
        found.extend(payload.map(|payload| (id, payload)));
    }
    Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
}
