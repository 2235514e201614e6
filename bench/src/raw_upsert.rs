//! The raw limit of upsert: the rows of 32 upserts in one durable transaction, accounts known beforehand.
//! Of four, one creates an account, one moves one, and two change a custom field.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rapport_domain::account::Account;
use rapport_domain::custom_fields::CustomFields;
use rapport_domain::event::{self, Kind, Occasion};
use rapport_domain::id::{AccountId, CredentialId, EventId, HistoryId};
use rapport_domain::pipeline::{Move, Source, Status};
use rapport_domain::search::words_of;
use rapport_domain::text::fold;
use rapport_domain::time::Time;
use rapport_store::{DeleteMany, InsertMany, Type, UpdateMany, Value};

use crate::chance::Chance;
use crate::dataset::{self, Dataset, Ids};
use crate::measure::now;
use crate::place::Place;
use crate::raw::{self, Raw};

const GROUP: usize = 32;
const CREATED: usize = GROUP / 4;
const MOVED: usize = GROUP / 4;

/// The columns that both inserts and updates of an account write, in the order `put_account` binds them.
const COLUMNS: [(&str, Type); 16] = [
    ("imported_id", Type::Text),
    ("name", Type::Text),
    ("name_folded", Type::Text),
    ("status", Type::Text),
    ("custom_fields", Type::Text),
    ("value_amount", Type::Int),
    ("value_currency", Type::Text),
    ("channel", Type::Bytes),
    ("promo_code", Type::Text),
    ("acquired_at", Type::Int),
    ("last_contact_at", Type::Int),
    ("cadence_days", Type::Int),
    ("snoozed_until", Type::Text),
    ("tracked_since", Type::Int),
    ("campaign_hold", Type::Int),
    ("updated_at", Type::Int),
];

const ALL_COLUMNS: [(&str, Type); 18] = {
    let mut all = [("id", Type::Bytes); 18];
    all[1] = ("created_at", Type::Int);
    let mut n = 0;
    while n < COLUMNS.len() {
        all[n + 2] = COLUMNS[n];
        n += 1;
    }
    all
};

static INSERT_ACCOUNT: InsertMany = InsertMany::new("account", &ALL_COLUMNS, "");
static UPDATE_ACCOUNT: UpdateMany = UpdateMany::new("account", &[("id", Type::Bytes)], &COLUMNS);
static INSERT_WORDS: InsertMany =
    InsertMany::new("account_word", &[("word", Type::Text), ("account", Type::Bytes)], "");
/// The columns that custom fields are found by.
const FIELD_COLUMNS: [(&str, Type); 3] =
    [("field", Type::Text), ("value", Type::Text), ("account", Type::Bytes)];
static INSERT_FIELDS: InsertMany = InsertMany::new("account_field", &FIELD_COLUMNS, "");
static DELETE_FIELDS: DeleteMany = DeleteMany::new("account_field", &FIELD_COLUMNS);
static INSERT_HISTORY: InsertMany = InsertMany::new(
    "status_history",
    &[
        ("account", Type::Bytes),
        ("id", Type::Bytes),
        ("from_status", Type::Text),
        ("to_status", Type::Text),
        ("source", Type::Text),
        ("actor_kind", Type::Text),
        ("actor_id", Type::Bytes),
        ("actor_name", Type::Text),
        ("note", Type::Text),
        ("at", Type::Int),
    ],
    "",
);
static INSERT_EVENT: InsertMany = InsertMany::new(
    "event",
    &[
        ("id", Type::Bytes),
        ("kind", Type::Text),
        ("account", Type::Bytes),
        ("payload", Type::Text),
        ("created_at", Type::Int),
    ],
    "",
);

/// Upserts per second.
pub fn measure(place: &Place, dataset: &Dataset, time: Duration) -> anyhow::Result<f64> {
    let connections = raw::connect(place, dataset.company, raw::LATE_CHECKPOINTS)?;
    let count = connections.len();
    let dataset = Arc::new(dataset.clone());
    raw::run(connections, time, |number| {
        let mut writer = Writer::new(Arc::clone(&dataset), number, count);
        Box::new(move |raw| {
            writer.write_group(raw)?;
            Ok(GROUP as u64)
        })
    })
}

struct Writer {
    dataset: Arc<Dataset>,
    chance: Chance,
    ids: Ids,
    /// Each connection has its own accounts, so that they never wait for each other's rows.
    first: usize,
    step: usize,
    created: usize,
    /// The seats of accounts that were changed, by number.
    seats: HashMap<usize, usize>,
    actor: CredentialId,
    payload_created: String,
    payload_moved: String,
}

/// An account of a group: its new state, and what happened to it.
struct Changed {
    account: Account,
    name_folded: String,
    words: Vec<String>,
    /// The entries that its custom fields are no longer found by, and the new ones.
    fields_removed: Vec<(String, String)>,
    fields_added: Vec<(String, String)>,
    event: Option<EventId>,
    history: HistoryId,
}

impl Writer {
    fn new(dataset: Arc<Dataset>, first: usize, step: usize) -> Self {
        let mut ids = Ids::new(0x0a11 + first as u64);
        let time = now();
        let account = dataset::account(dataset.ids[0], dataset::imported_id(0), dataset::name(0), time);
        let occasion = Occasion { id: ids.next(time), now: time, project: &dataset.project };
        let step_made = Move { from: Status::Prospect, to: Status::Contacted };
        Self {
            // As long as the payloads that the service freezes; made once, because a raw program need not make them.
            payload_created: event::account_created(occasion, &account, Source::Upsert).payload,
            payload_moved: event::status_changed(occasion, &account, step_made, Source::Upsert).payload,
            actor: ids.next(time),
            chance: Chance::new(0xface ^ (first as u64) << 40),
            created: 0,
            seats: HashMap::new(),
            dataset,
            ids,
            first,
            step,
        }
    }

    fn write_group(&mut self, raw: &mut dyn Raw) -> anyhow::Result<()> {
        let now = now();
        let created: Vec<Changed> = (0..CREATED).map(|_| self.create(now)).collect();
        let mut numbers: Vec<usize> = Vec::with_capacity(GROUP - CREATED);
        while numbers.len() < GROUP - CREATED {
            let own = self.dataset.ids.len() / self.step;
            let number = self.chance.below(own) * self.step + self.first;
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        let mut updated: Vec<Changed> = numbers
            .iter()
            .enumerate()
            .map(|(place, number)| self.change(*number, place < MOVED, now))
            .collect();
        updated.sort_unstable_by_key(|changed| changed.account.id);
        raw.begin()?;
        write_accounts(raw, &created, &updated)?;
        self.write_history(raw, &created, &updated, now)?;
        raw.commit()
    }

    fn create(&mut self, now: Time) -> Changed {
        let number = self.dataset.ids.len() + self.first + self.step * self.created;
        self.created += 1;
        let (name, imported_id) = (dataset::name(number), dataset::imported_id(number));
        let words = words_of(&name, Some(&imported_id));
        let account = dataset::account(self.ids.next(now), imported_id, name, now);
        Changed {
            name_folded: fold(&account.name),
            fields_removed: Vec::new(),
            fields_added: account.custom_fields.index(),
            account,
            words,
            event: Some(self.ids.next(now)),
            history: self.ids.next(now),
        }
    }

    fn change(&mut self, number: usize, moves: bool, now: Time) -> Changed {
        let id: AccountId = self.dataset.ids[number];
        let mut account = dataset::account(id, dataset::imported_id(number), dataset::name(number), now);
        let before = self.seats.get(&number).copied().unwrap_or(dataset::SEATS);
        let mut seats = before;
        if moves {
            account.status = Status::Contacted;
        } else {
            seats = self.chance.below(100_000);
            self.seats.insert(number, seats);
        }
        account.custom_fields = CustomFields::from_stored(dataset::fields(seats));
        let found_by = |seats: usize| vec![("seats".to_owned(), format!("n{seats}"))];
        let (fields_removed, fields_added) =
            if seats == before { (Vec::new(), Vec::new()) } else { (found_by(before), found_by(seats)) };
        Changed {
            name_folded: fold(&account.name),
            account,
            words: Vec::new(),
            fields_removed,
            fields_added,
            event: moves.then(|| self.ids.next(now)),
            history: self.ids.next(now),
        }
    }

    fn write_history(
        &self,
        raw: &mut dyn Raw,
        created: &[Changed],
        updated: &[Changed],
        now: Time,
    ) -> anyhow::Result<()> {
        let (mut history, mut events) = (Vec::new(), Vec::new());
        let all = created
            .iter()
            .map(|changed| (changed, true))
            .chain(updated.iter().map(|changed| (changed, false)));
        for (changed, is_new) in all {
            let Some(event) = &changed.event else { continue };
            let (kind, payload, from) = if is_new {
                (Kind::AccountCreated, &self.payload_created, None)
            } else {
                (Kind::AccountStatusChanged, &self.payload_moved, Some(Status::Prospect))
            };
            history.extend([
                Value::from(&changed.account.id),
                (&changed.history).into(),
                from.into(),
                changed.account.status.into(),
                Source::Upsert.into(),
                "token".into(),
                (&self.actor).into(),
                "First token".into(),
                Value::Null,
                now.into(),
            ]);
            events.extend([
                Value::from(event),
                kind.as_str().into(),
                (&changed.account.id).into(),
                payload.into(),
                now.into(),
            ]);
        }
        raw.insert(&INSERT_HISTORY, &history)?;
        raw.insert(&INSERT_EVENT, &events)
    }
}

fn write_accounts(raw: &mut dyn Raw, created: &[Changed], updated: &[Changed]) -> anyhow::Result<()> {
    let mut rows = Vec::with_capacity(created.len() * INSERT_ACCOUNT.width());
    for changed in created {
        rows.extend([Value::from(&changed.account.id), changed.account.created_at.into()]);
        put_account(changed, &mut rows);
    }
    raw.insert(&INSERT_ACCOUNT, &rows)?;
    let words = created.iter().flat_map(|changed| {
        changed.words.iter().flat_map(|word| [Value::from(word), Value::from(&changed.account.id)])
    });
    raw.insert(&INSERT_WORDS, &words.collect::<Vec<_>>())?;
    let mut rows = Vec::with_capacity(updated.len() * UPDATE_ACCOUNT.width());
    for changed in updated {
        rows.push(Value::from(&changed.account.id));
        put_account(changed, &mut rows);
    }
    raw.update(&UPDATE_ACCOUNT, &rows)?;
    let fields = |of: fn(&Changed) -> &Vec<(String, String)>| -> Vec<Value> {
        let all = created.iter().chain(updated);
        let pairs = all.flat_map(|changed| of(changed).iter().map(|pair| (pair, &changed.account.id)));
        pairs.flat_map(|((field, value), id)| [field.into(), value.into(), Value::from(id)]).collect()
    };
    raw.delete(&DELETE_FIELDS, &fields(|changed| &changed.fields_removed))?;
    raw.insert(&INSERT_FIELDS, &fields(|changed| &changed.fields_added))
}

/// The values of `COLUMNS`.
fn put_account<'a>(changed: &'a Changed, row: &mut Vec<Value<'a>>) {
    let account = &changed.account;
    row.extend([
        account.imported_id.as_deref().into(),
        (&account.name).into(),
        (&changed.name_folded).into(),
        account.status.into(),
        account.custom_fields.as_json().into(),
        Value::Null,
        Value::Null,
        Value::Null,
        Value::Null,
        Value::Null,
        Value::Null,
        Value::Null,
        Value::Null,
        account.tracked_since.into(),
        account.campaign_hold.into(),
        account.updated_at.into(),
    ]);
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::place::{Engine, Ground};
    use rapport_store::{Config, Database, Store};

    /// The one row of a company that `dataset::load` needs.
    pub fn create_company(place: &Place) {
        Store::open(&Config::new(place.database.clone())).unwrap().close();
        let sql = "INSERT INTO company (slug, name, cadence_days, tracked_stages, digest_enabled, digest_weekday, \
                   time_zone, default_currency, created_at) \
                   VALUES ('acme', 'Acme', 42, 'customer,in_trial', 1, 'monday', 'UTC', 'USD', 0)";
        match &place.database {
            Database::Sqlite(path) => rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap(),
            Database::Postgres(url) => {
                postgres::Client::connect(url, postgres::NoTls).unwrap().batch_execute(sql).unwrap();
            }
        }
    }

    #[test]
    fn a_group_writes_the_rows_of_its_upserts_on_both_engines() {
        for engine in [Engine::Sqlite, Engine::Postgres] {
            let ground = Ground::prepare(engine);
            let place = ground.fresh().unwrap();
            create_company(&place);
            let dataset = dataset::load(&place, "acme", 100).unwrap();
            let words = place.count("SELECT count(*) FROM account_word").unwrap();
            let mut raw = raw::connect(&place, dataset.company, raw::LATE_CHECKPOINTS).unwrap();
            let mut writer = Writer::new(Arc::new(dataset), 0, 1);
            writer.write_group(raw[0].as_mut()).unwrap();
            let count = |sql: &str| place.count(sql).unwrap();
            assert_eq!(count("SELECT count(*) FROM account"), 108, "{engine}");
            assert_eq!(count("SELECT count(*) FROM status_history"), 116, "{engine}");
            assert_eq!(count("SELECT count(*) FROM event"), 116, "{engine}");
            assert_eq!(count("SELECT count(*) FROM account WHERE status = 'contacted'"), 8, "{engine}");
            let changed = "SELECT count(*) FROM account WHERE updated_at > created_at";
            assert_eq!(count(changed), 24, "{engine}");
            assert_eq!(count("SELECT count(*) FROM account_word"), words + 32, "{engine}");
            assert_eq!(count("SELECT count(*) FROM account_field"), 3 * 108, "{engine}");
            let seats = "SELECT count(DISTINCT account) FROM account_field WHERE field = 'seats'";
            assert_eq!(count(seats), 108, "{engine}");
            let old = "SELECT count(*) FROM account_field WHERE field = 'seats' AND value = 'n7'";
            assert_eq!(count(old), 92, "the old values of changed accounts are gone, {engine}");
        }
    }
}
