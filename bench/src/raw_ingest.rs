//! The raw limit of ingest: the rows of 2,000 events in one durable transaction, accounts known beforehand.

use std::time::Duration;

use anyhow::ensure;
use rapport_domain::activity::Kind;
use rapport_domain::company::Settings;
use rapport_domain::id::AccountId;
use rapport_store::{InsertMany, Type, Value};

use crate::body::FEATURES;
use crate::chance::Chance;
use crate::dataset::{Dataset, imported_id};
use crate::measure::now;
use crate::place::Place;
use crate::raw::{self, Raw};

const EVENTS_PER_TRANSACTION: usize = 2_000;

static ACTIVITY: InsertMany = InsertMany::new(
    "activity",
    &[
        ("account", Type::Bytes),
        ("occurred_at", Type::Int),
        ("received_at", Type::Int),
        ("kind", Type::Text),
        ("feature", Type::Text),
        ("metadata", Type::Text),
    ],
    "",
);

static SEEN: InsertMany = InsertMany::new(
    "account_seen",
    &[
        ("account", Type::Bytes),
        ("first_seen_at", Type::Int),
        ("last_seen_at", Type::Int),
        ("last_seen_day", Type::Int),
        ("last_seen_minute", Type::Int),
    ],
    "ON CONFLICT (company, account) DO UPDATE SET \
     last_seen_at = CASE WHEN excluded.last_seen_at > account_seen.last_seen_at \
     THEN excluded.last_seen_at ELSE account_seen.last_seen_at END",
);

static COUNT: InsertMany = InsertMany::new(
    "activity_count",
    &[
        ("account", Type::Bytes),
        ("day", Type::Int),
        ("feature", Type::Text),
        ("count", Type::Int),
        ("last_used_at", Type::Int),
    ],
    "ON CONFLICT (company, account, day, feature) DO UPDATE SET count = activity_count.count + excluded.count, \
     last_used_at = excluded.last_used_at",
);

static MARK: InsertMany = InsertMany::new(
    "event_mark",
    &[("mark", Type::Bytes), ("at", Type::Int)],
    "ON CONFLICT (company, mark) DO NOTHING",
);

/// What the raw program does besides writing its rows.
#[derive(Debug, Clone, Copy)]
pub struct Variant {
    pub with_event_id: bool,
    /// Finds accounts by imported_id, as the service must.
    pub with_look_ups: bool,
    /// How large SQLite's log may grow, in pages.
    pub checkpoints: i64,
}

/// Events per second.
pub fn measure(place: &Place, dataset: &Dataset, variant: Variant, time: Duration) -> anyhow::Result<f64> {
    let connections = raw::connect(place, dataset.company, variant.checkpoints)?;
    let ids = std::sync::Arc::new(dataset.ids.clone());
    raw::run(connections, time, |number| {
        let mut chance = Chance::new(0x5eed ^ (number as u64) << 40);
        let ids = std::sync::Arc::clone(&ids);
        Box::new(move |raw| {
            let events = Events::draw(&mut chance, &ids, variant.with_event_id);
            events.write(raw, variant.with_look_ups)?;
            Ok(EVENTS_PER_TRANSACTION as u64)
        })
    })
}

/// The events of one transaction.
struct Events<'a> {
    /// The number of the account, its id, and the feature if one was used.
    events: Vec<(usize, &'a AccountId, Option<&'static str>)>,
    marks: Vec<[u8; 16]>,
}

impl<'a> Events<'a> {
    fn draw(chance: &mut Chance, ids: &'a [AccountId], with_event_id: bool) -> Self {
        let event = |chance: &mut Chance| {
            let number = chance.below(ids.len());
            let kind = chance.next();
            let feature = (kind & 1 == 1).then(|| FEATURES[(kind >> 1) as usize % FEATURES.len()]);
            (number, &ids[number], feature)
        };
        let events = (0..EVENTS_PER_TRANSACTION).map(|_| event(chance)).collect();
        let marks = if with_event_id { EVENTS_PER_TRANSACTION } else { 0 };
        Self { events, marks: (0..marks).map(|_| chance.bytes()).collect() }
    }

    fn write(mut self, raw: &mut dyn Raw, with_look_ups: bool) -> anyhow::Result<()> {
        let now = now();
        let day = Value::from(now.day_in(&Settings::default().time_zone));
        let at = Value::from(now);
        let minute = Value::from(now.minute());
        raw.begin()?;
        if with_look_ups {
            let mut numbers: Vec<usize> = self.events.iter().map(|(number, ..)| *number).collect();
            numbers.sort_unstable();
            numbers.dedup();
            let imported_ids: Vec<String> = numbers.into_iter().map(imported_id).collect();
            ensure!(raw.look_up(&imported_ids)? == imported_ids.len(), "an account is missing");
        }
        self.marks.sort_unstable();
        let marks: Vec<Value> = self.marks.iter().flat_map(|mark| [Value::Bytes(mark), at]).collect();
        if !marks.is_empty() {
            raw.insert(&MARK, &marks)?;
        }
        let mut rows: Vec<Value> = Vec::with_capacity(self.events.len() * ACTIVITY.width());
        for (_, account, feature) in &self.events {
            let kind = if feature.is_some() { Kind::FeatureUsed } else { Kind::AppOpened };
            rows.extend([
                Value::from(*account),
                at,
                at,
                kind.as_str().into(),
                (*feature).into(),
                Value::Null,
            ]);
        }
        raw.insert(&ACTIVITY, &rows)?;
        self.events.sort_unstable_by_key(|(_, account, feature)| (**account, feature.unwrap_or("")));
        rows.clear();
        for same in self.events.chunk_by(|a, b| a.1 == b.1) {
            rows.extend([Value::from(same[0].1), at, at, day, minute]);
        }
        raw.insert(&SEEN, &rows)?;
        rows.clear();
        for same in self.events.chunk_by(|a, b| (a.1, a.2) == (b.1, b.2)) {
            let (_, account, feature) = same[0];
            let count = Value::from(i64::try_from(same.len())?);
            rows.extend([Value::from(account), day, feature.unwrap_or("").into(), count, at]);
        }
        raw.insert(&COUNT, &rows)?;
        raw.commit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::{Engine, Ground};

    /// A company created without the program.
    fn loaded(ground: &Ground) -> (Place, Dataset) {
        let place = ground.fresh().unwrap();
        crate::raw_upsert::tests::create_company(&place);
        let dataset = crate::dataset::load(&place, "acme", 300).unwrap();
        crate::dataset::expect_loaded(&place, 300).unwrap();
        (place, dataset)
    }

    #[test]
    fn the_raw_program_writes_the_rows_of_its_events_on_both_engines() {
        for engine in [Engine::Sqlite, Engine::Postgres] {
            let ground = Ground::prepare(engine);
            let (place, dataset) = loaded(&ground);
            let events = Events::draw(&mut Chance::new(3), &dataset.ids, true);
            let mut raw = raw::connect(&place, dataset.company, raw::DEFAULT_CHECKPOINTS).unwrap();
            events.write(raw[0].as_mut(), true).unwrap();
            let count = |sql: &str| place.count(sql).unwrap();
            assert_eq!(count("SELECT count(*) FROM activity"), 2_300, "{engine}");
            assert_eq!(count("SELECT CAST(sum(count) AS BIGINT) FROM activity_count"), 2_300, "{engine}");
            assert_eq!(count("SELECT count(*) FROM account_seen"), 300, "{engine}");
            assert_eq!(count("SELECT count(*) FROM event_mark"), 2_000, "{engine}");
            let older = "SELECT count(*) FROM account_seen WHERE first_seen_at >= last_seen_at";
            assert!(count(older) < 30, "{engine}: last seen moved for nearly all of the 300");
        }
    }

    #[test]
    fn a_copy_is_an_independent_database() {
        for engine in [Engine::Sqlite, Engine::Postgres] {
            let ground = Ground::prepare(engine);
            let (place, dataset) = loaded(&ground);
            let copy = ground.copy(&place).unwrap();
            let events = Events::draw(&mut Chance::new(3), &dataset.ids, false);
            let mut raw = raw::connect(&copy, dataset.company, raw::DEFAULT_CHECKPOINTS).unwrap();
            events.write(raw[0].as_mut(), false).unwrap();
            assert_eq!(copy.count("SELECT count(*) FROM activity").unwrap(), 2_300, "{engine}");
            assert_eq!(place.count("SELECT count(*) FROM activity").unwrap(), 300, "{engine}");
        }
    }
}
