//! The plans of both engines: a page of the list is an index read whatever the size of the table, and both
//! ways to read a page find the same accounts.

use std::fmt::Write as _;

use rapport_domain::audience::{FieldFilter, FieldTest, ImportEffect, ImportFilter};
use rapport_domain::id::{ChannelId, CompanyId, ImportId};
use rapport_domain::pipeline::Status;
use rapport_domain::time::Time;
use rapport_testkit::PostgresServer;

use super::ranges::Source;
use super::*;
use crate::clients::plans::{Planned, planned};
use crate::{Config, Database, Store, dialect, migrate_only};

const ACCOUNTS: u32 = 20_000;
/// The number of accounts when PostgreSQL runs ANALYZE, before the tables are filled.
const FEW_ACCOUNTS: u32 = 10;
const DAY: i64 = 86_400_000_000;

/// A page to plan, and the indexes that its plan must use on SQLite and on PostgreSQL.
struct Case {
    what: &'static str,
    filter: AccountFilter,
    sort: Sort,
    sqlite: &'static str,
    postgres: &'static str,
}

fn cases() -> Vec<Case> {
    let any = AccountFilter::default;
    let q = |text: &str| AccountFilter { q: Some(text.to_owned()), ..any() };
    let statuses = |statuses: &[Status]| AccountFilter { statuses: statuses.to_vec(), ..any() };
    let channel = || AccountFilter { channels: vec![ChannelId::from_bytes([1; 16])], ..any() };
    let channels =
        || AccountFilter { channels: [1, 2].map(|n| ChannelId::from_bytes([n; 16])).to_vec(), ..any() };
    let field =
        |key: &str, test| AccountFilter { fields: vec![FieldFilter { key: key.to_owned(), test }], ..any() };
    let is = |key: &str, text: &str| field(key, FieldTest::Is(vec![text.to_owned()]));
    let begins = |key: &str, text: &str| field(key, FieldTest::BeginsWith(text.to_owned()));
    let has = |key: &str| field(key, FieldTest::Exists);
    let after = |days: i64| Some(Time::from_micros(days * DAY));
    let contacted_after = |days: i64| AccountFilter { contacted_after: after(days), ..any() };
    let and_status = |filter, statuses: &[Status]| AccountFilter { statuses: statuses.to_vec(), ..filter };
    let prospects = |filter| and_status(filter, &[Status::Prospect]);
    let held = |held| AccountFilter { campaign_hold: Some(held), ..any() };
    let imported_id = || AccountFilter { imported_id: Some("crm-17".to_owned()), ..any() };
    let overdue = |wanted: bool| AccountFilter { overdue: Some(wanted), ..any() };
    let calm = || AccountFilter { tracked: Some(true), overdue: Some(false), ..any() };
    let seen_after = |days: i64| AccountFilter { seen_after: Some(Time::from_micros(days * DAY)), ..any() };
    let never_contacted = || AccountFilter { contacted: Some(false), ..any() };
    // The id of account n is of the millisecond n.
    let created_since = |n: i64| AccountFilter { created_since: Some(Time::from_micros(n * 1_000)), ..any() };
    let import = |number: u8, effect| AccountFilter {
        import: Some(ImportFilter { id: ImportId::from_bytes([number; 16]), effect }),
        ..any()
    };
    let (created, changed) = (Some(ImportEffect::Created), Some(ImportEffect::Changed));
    let case = |what, filter, sort, sqlite, postgres| Case { what, filter, sort, sqlite, postgres };
    let (by_id, by_status, by_channel) =
        ("sqlite_autoindex_account_1", "account_by_status", "account_by_channel");
    let (by_name, by_imported_id, by_minute) =
        ("account_by_name", "account_by_imported_id", "account_seen_by_minute");
    let by_time = "cadence_by_time";
    let words = "PRIMARY KEY (company=? AND word>? AND word<?)";
    let word = "PRIMARY KEY (company=? AND word=?";
    let field_value = "PRIMARY KEY (company=? AND field=? AND value=?";
    let field_values = "PRIMARY KEY (company=? AND field=? AND value>? AND value<?)";
    let fields = "PRIMARY KEY (company=? AND field=? AND value>?)";
    let (by_field, by_account) = ("account_field_pkey", "account_field_by_account");
    let (by_value, by_code, by_first) =
        ("account_by_value", "account_by_promo_code", "account_seen_by_first");
    let (by_acquired, changes) = ("account_by_acquired", "PRIMARY KEY (company=? AND change>?");
    let (by_contact, on_hold) = ("account_by_contact", "account_on_hold");
    let of_import = "PRIMARY KEY (company=? AND import=? AND created=?";
    vec![
        case("newest", any(), Sort::NEWEST, by_id, "account_pkey"),
        case("oldest", any(), Sort::OLDEST, by_id, "account_pkey"),
        case("status", statuses(&[Status::Customer]), Sort::NEWEST, by_status, by_status),
        case("statuses", statuses(&[Status::Customer, Status::Lost]), Sort::OLDEST, by_status, by_status),
        case("channel", channel(), Sort::NEWEST, by_channel, by_channel),
        case("name", any(), By::Name.ascending(), by_name, by_name),
        case("name descending", any(), By::Name.descending(), by_name, by_name),
        case("imported_id", imported_id(), Sort::NEWEST, by_imported_id, by_imported_id),
        case(
            "imported_id by last seen",
            imported_id(),
            By::LastSeen.descending(),
            by_imported_id,
            by_imported_id,
        ),
        case("rare word", q("zanzi"), Sort::NEWEST, words, "account_word_pkey"),
        case("rare word by name", q("zanzi"), By::Name.ascending(), words, "account_word_pkey"),
        case(
            "rare and frequent word",
            q("frequent zanzi"),
            By::LastSeen.descending(),
            words,
            "account_word_pkey",
        ),
        case("frequent word", q("freq"), Sort::NEWEST, word, "account_word_pkey"),
        case("frequent word, of a status", prospects(q("freq")), Sort::OLDEST, word, "account_word_pkey"),
        case("beginning of many words", q("crm-"), Sort::NEWEST, by_id, "account_word_by_account"),
        case("frequent word by name", q("freq"), By::Name.ascending(), by_name, "account_word_by_account"),
        case("last seen", any(), By::LastSeen.descending(), by_minute, by_minute),
        case("seen lately", seen_after(995), Sort::NEWEST, by_minute, by_minute),
        case("seen some time", seen_after(5), Sort::NEWEST, by_id, "account_pkey"),
        case("rare status by name", statuses(&[Status::Lost]), By::Name.ascending(), by_status, by_status),
        case(
            "frequent status by name",
            statuses(&[Status::Prospect]),
            By::Name.ascending(),
            by_name,
            by_name,
        ),
        case("overdue", overdue(true), Sort::NEWEST, by_time, by_time),
        case("overdue by name", overdue(true), By::Name.ascending(), by_time, by_time),
        case("not overdue", overdue(false), Sort::NEWEST, by_id, "account_pkey"),
        case("tracked and not overdue", calm(), By::LastSeen.descending(), by_time, by_time),
        case("most statuses by name", statuses(&Status::ALL[..6]), By::Name.ascending(), by_name, by_name),
        case(
            "frequent status by last seen",
            statuses(&[Status::Prospect]),
            By::LastSeen.descending(),
            by_minute,
            by_minute,
        ),
        case("several channels", channels(), Sort::NEWEST, by_channel, by_channel),
        case("several channels by name", channels(), By::Name.ascending(), by_channel, by_channel),
        case(
            "channels and statuses",
            and_status(channels(), &Status::ALL[..4]),
            Sort::OLDEST,
            by_channel,
            by_channel,
        ),
        case("rare field value", is("plan", "Rare"), Sort::NEWEST, field_value, by_field),
        case("rare field value by name", is("plan", "rare"), By::Name.ascending(), field_value, by_field),
        case(
            "rare field value by last seen",
            is("plan", "rare"),
            By::LastSeen.descending(),
            field_value,
            by_field,
        ),
        case("frequent field value", is("plan", "pro"), Sort::NEWEST, field_value, by_field),
        case("frequent field value, oldest first", is("plan", "pro"), Sort::OLDEST, field_value, by_field),
        case("frequent field value by name", is("plan", "pro"), By::Name.ascending(), by_name, by_name),
        case(
            "frequent field value by last seen",
            is("plan", "pro"),
            By::LastSeen.descending(),
            by_minute,
            by_minute,
        ),
        case("frequent number", is("seats", "1"), Sort::NEWEST, field_value, by_field),
        case(
            "frequent field and status",
            and_status(is("plan", "pro"), &[Status::Prospect]),
            Sort::NEWEST,
            field_value,
            by_field,
        ),
        case(
            "frequent field, rare status",
            and_status(is("plan", "pro"), &[Status::Lost]),
            Sort::NEWEST,
            by_status,
            by_status,
        ),
        case("rare beginning", begins("plan", "ra"), Sort::NEWEST, field_values, by_field),
        case("frequent beginning", begins("plan", "p"), Sort::NEWEST, by_id, by_account),
        case("frequent beginning by name", begins("plan", "p"), By::Name.ascending(), by_name, by_account),
        case("rare field", has("odd"), Sort::NEWEST, fields, by_field),
        case("frequent field", has("plan"), Sort::NEWEST, by_id, by_account),
        case("frequent field by name", has("plan"), By::Name.ascending(), by_name, by_account),
        case("contacted lately", contacted_after(95), Sort::NEWEST, by_contact, by_contact),
        case(
            "contacted lately by last seen",
            contacted_after(95),
            By::LastSeen.descending(),
            by_contact,
            by_contact,
        ),
        case("contacted some time", contacted_after(1), Sort::NEWEST, by_id, "account_pkey"),
        case("contacted some time by name", contacted_after(1), By::Name.ascending(), by_name, by_name),
        case(
            "ever contacted",
            AccountFilter { contacted: Some(true), ..any() },
            Sort::OLDEST,
            by_id,
            "account_pkey",
        ),
        case("never contacted", never_contacted(), Sort::NEWEST, by_id, "account_pkey"),
        case("never seen", AccountFilter { seen: Some(false), ..any() }, Sort::NEWEST, by_id, "account_pkey"),
        case("status ascending", any(), By::Status.ascending(), by_status, by_status),
        case("status descending", any(), By::Status.descending(), by_status, by_status),
        case("value", any(), By::Value.descending(), by_value, by_value),
        case("value ascending", any(), By::Value.ascending(), by_value, by_value),
        case("value, of a status", prospects(any()), By::Value.descending(), by_value, by_value),
        case("by channel", any(), By::Channel.ascending(), by_channel, by_channel),
        case("by channel descending", any(), By::Channel.descending(), by_channel, by_channel),
        case("by promo code", any(), By::PromoCode.ascending(), by_code, by_code),
        case("by promo code descending", any(), By::PromoCode.descending(), by_code, by_code),
        case("least recently seen", any(), By::LastSeen.ascending(), by_minute, by_minute),
        case("first seen", any(), By::FirstSeen.descending(), by_first, by_first),
        case("first seen ascending", any(), By::FirstSeen.ascending(), by_first, by_first),
        case("last contact", any(), By::LastContact.descending(), by_contact, by_contact),
        case("last contact ascending", any(), By::LastContact.ascending(), by_contact, by_contact),
        case("never contacted", never_contacted(), By::LastContact.ascending(), by_id, "account_pkey"),
        case("acquired", any(), By::Acquired.descending(), by_acquired, by_acquired),
        case("acquired ascending", any(), By::Acquired.ascending(), by_acquired, by_acquired),
        case("updated", any(), By::Updated.descending(), changes, "account_change_pkey"),
        case("updated ascending", prospects(any()), By::Updated.ascending(), changes, "account_change_pkey"),
        case("rare word by value", q("zanzi"), By::Value.descending(), words, "account_word_pkey"),
        case("created lately", created_since(19_900), Sort::NEWEST, by_id, "account_pkey"),
        case("created some time", created_since(1), Sort::OLDEST, by_id, "account_pkey"),
        case("created some time by name", created_since(1), By::Name.ascending(), by_name, by_name),
        case("created lately by name", created_since(19_900), By::Name.ascending(), by_id, "account_pkey"),
        case("created, of a status", prospects(created_since(1)), Sort::NEWEST, by_status, by_status),
        case("held", held(true), By::Name.ascending(), on_hold, on_hold),
        case("large import", import(1, created), Sort::NEWEST, of_import, "import_account_pkey"),
        case("large import by name", import(1, None), By::Name.ascending(), by_name, by_name),
        case("small import", import(2, changed), Sort::NEWEST, of_import, "import_account_pkey"),
        case("small import by name", import(2, None), By::Name.ascending(), of_import, "import_account_pkey"),
        case("import and status", prospects(import(1, None)), Sort::OLDEST, of_import, "import_account_pkey"),
        case(
            "not held, of a status",
            and_status(held(false), &[Status::Prospect]),
            Sort::NEWEST,
            by_status,
            by_status,
        ),
    ]
}

/// The id of account `n` as hexadecimal digits: made in the millisecond `n`.
fn id(n: u32) -> String {
    format!("{n:012x}{:020x}", 0)
}

/// Whether account `n` has the rare word, field and import.
fn is_rare(n: u32) -> bool {
    n % 2000 == 7
}

/// The rows of an account's tables, as SQL; `bytes` writes a literal.
fn fill(accounts: u32, mut run: impl FnMut(&str), bytes: impl Fn(&str) -> String) {
    run(
        "INSERT INTO company (id, slug, name, cadence_days, tracked_stages, digest_enabled, digest_weekday, \
         time_zone, default_currency, created_at) \
         VALUES (1, 'acme', 'Acme', 42, 'customer', 1, 'monday', 'UTC', 'USD', 0)",
    );
    let channel = bytes(&"01".repeat(16));
    let columns = "company, id, name, name_folded, created_at";
    run(&format!("INSERT INTO channel ({columns}) VALUES (1, {channel}, 'Fair', 'fair', 0)"));
    let second = bytes(&"02".repeat(16));
    run(&format!("INSERT INTO channel ({columns}) VALUES (1, {second}, 'Web', 'web', 0)"));
    for chunk in (0..accounts).collect::<Vec<_>>().chunks(500) {
        let [mut rows, mut words, mut seen, mut fields, mut imported] = [const { String::new() }; 5];
        for n in chunk {
            let id = bytes(&id(*n));
            let status = Status::ALL[(n % 7) as usize];
            let status = if n % 10 < 6 { Status::Prospect } else { status };
            let channel = match n % 20 {
                0 => channel.as_str(),
                1 => second.as_str(),
                _ => "NULL",
            };
            let name = n.wrapping_mul(2_654_435_761);
            let _ = write!(
                rows,
                ",(1, {id}, 'crm-{n}', 'Frequent {name}', 'frequent {name}', '{status}', '{{}}', {channel}, \
                 {}, {}, 0, 0, {}, {}, {}, {})",
                if n % 50 == 45 { "NULL".to_owned() } else { (i64::from(n % 97) * DAY).to_string() },
                i32::from(n % 1000 == 3),
                if n % 3 == 0 { (n % 500).to_string() } else { "NULL".to_owned() },
                ["'EUR'", "NULL", "NULL", "'USD'", "NULL", "NULL"][(n % 6) as usize],
                if n % 4 == 0 { format!("'CODE-{}'", n % 30) } else { "NULL".to_owned() },
                if n % 5 == 0 { (i64::from(n % 700) * DAY).to_string() } else { "NULL".to_owned() },
            );
            let plan = if is_rare(*n) { "srare" } else { "spro" };
            let _ = write!(fields, ",(1, 'plan', '{plan}', {id}), (1, 'seats', 'n1', {id})");
            if is_rare(*n) {
                let _ = write!(fields, ",(1, 'odd', '', {id})");
            }
            let _ = write!(words, ",(1, 'frequent', {id}), (1, '{name}', {id}), (1, 'crm-{n}', {id})");
            if is_rare(*n) {
                let _ = write!(words, ",(1, 'zanzibar', {id})");
            }
            if n % 10 < 7 {
                let _ =
                    write!(imported, ",(1, {}, {}, {id})", bytes(&"01".repeat(16)), i32::from(n % 10 < 6));
            }
            if is_rare(*n) {
                let _ = write!(imported, ",(1, {}, 0, {id})", bytes(&"02".repeat(16)));
            }
            let day = n % 1000;
            if n % 500 == 499 {
                continue;
            }
            let at = i64::from(day) * DAY;
            let _ = write!(seen, ",(1, {id}, 0, {at}, {day}, {})", Time::from_micros(at).minute());
        }
        run(&format!(
            "INSERT INTO account (company, id, imported_id, name, name_folded, status, custom_fields, channel, \
                 last_contact_at, campaign_hold, created_at, updated_at, value_amount, value_currency, promo_code, \
                 acquired_at) VALUES {}",
            &rows[1..]
        ));
        run(&format!("INSERT INTO account_word (company, word, account) VALUES {}", &words[1..]));
        run(&format!("INSERT INTO account_field (company, field, value, account) VALUES {}", &fields[1..]));
        let columns = "company, import, created, account";
        run(&format!("INSERT INTO import_account ({columns}) VALUES {}", &imported[1..]));
        let columns = "company, account, first_seen_at, last_seen_at, last_seen_day, last_seen_minute";
        run(&format!("INSERT INTO account_seen ({columns}) VALUES {}", &seen[1..]));
    }
    fill_cadence(run);
}

/// Of every 97 clients, two have a cadence override, two are snoozed, and two have a snooze that is over.
fn fill_cadence(mut run: impl FnMut(&str)) {
    let of_days = |days: [i64; 2]| format!("last_contact_at IN ({}, {})", days[0] * DAY, days[1] * DAY);
    for (set, days) in [
        ("cadence_days = 30", [5, 50]),
        ("snoozed_until = '1970-03-01'", [6, 51]),
        ("snoozed_until = '1971-01-01'", [7, 52]),
    ] {
        run(&format!("UPDATE account SET {set} WHERE {}", of_days(days)));
    }
    // Each of the other companies has as many clients.
    run(
        "INSERT INTO cadence (company, account, status, own, at, snoozed_until, last_contact_at, announced) \
         SELECT other.company, id, status, CASE WHEN cadence_days IS NULL THEN 0 ELSE 1 END, \
         last_contact_at + coalesce(cadence_days, 0) * 86400000000, snoozed_until, last_contact_at, \
         CASE WHEN last_contact_at < 0 THEN 1 ELSE 0 END FROM account \
         CROSS JOIN (SELECT row_number() OVER (ORDER BY id) AS company FROM account LIMIT 10) AS other \
         WHERE status IN ('customer', 'in_trial', 'in_negotiation')",
    );
    run("INSERT INTO status_history (company, account, id, from_status, to_status, source, actor_kind, at) \
         SELECT company, id, id, 'prospect', status, 'operator', 'system', 0 FROM account");
    run("INSERT INTO contact (company, account, id, kind, actor_kind, occurred_at, created_at) \
         SELECT company, id, id, 'call', 'system', last_contact_at, 0 FROM account \
         WHERE last_contact_at IS NOT NULL");
    run(
        "INSERT INTO conversation (company, id, account, channel, message_count, last_message_at, created_at) \
         SELECT company, id, id, 'email', 1, created_at, 0 FROM account",
    );
    run("INSERT INTO message (company, id, conversation, account, direction, channel, body, body_bytes, \
         body_truncated, author_kind, automatic, occurred_at, created_at) \
         SELECT company, id, id, id, 'outbound', 'email', '', 0, 0, 'system', 0, last_contact_at, 0 FROM account \
         WHERE last_contact_at IS NOT NULL");
    run("INSERT INTO account_change (company, change, account, at) \
         SELECT company, change, id, updated_at FROM account WHERE company > 0 ON CONFLICT DO NOTHING");
}

/// The queries that read a case's first page, and the page after its first account.
fn queries(store: &Store, case: &Case) -> Vec<(String, usize)> {
    let (filter, sort) = (case.filter.clone(), case.sort);
    let read = store.read(CompanyId(1), move |snapshot| {
        let first = ListAccounts { filter, sort, cursor: None, limit: 50, now: Time::from_micros(60 * DAY) };
        let terms = Terms::of(&first.filter, first.now, snapshot)?;
        let narrow = terms.narrow_source(sort, snapshot)?;
        let places = first.places(snapshot, None)?;
        let groups = Groups::of(sort.by, snapshot)?;
        let mut texts = Vec::new();
        for after in [None, places.first()] {
            for sql in terms.queries(narrow.as_ref(), Order { sort, after, limit: 51 }, &groups) {
                snapshot.query_text(sql.text(), sql.values())?;
                texts.push((sql.text().to_owned(), sql.values().len() + 1));
            }
        }
        assert!(!places.is_empty(), "a case needs accounts to prove anything");
        Ok(texts)
    });
    read.blocking_recv().expect("an answer").expect("readable")
}

#[test]
fn sqlite_reads_pages_by_indexes() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("rapport.db");
    let database = Database::Sqlite(path.clone());
    migrate_only(&database).expect("migrated");
    let mut raw = rusqlite::Connection::open(&path).expect("opened");
    let tx = raw.transaction().expect("a transaction");
    fill(ACCOUNTS, |sql| tx.execute_batch(sql).expect(sql), |hex| format!("X'{hex}'"));
    tx.commit().expect("committed");
    let store = Store::open(&Config::new(database)).expect("opened");
    for case in cases() {
        let mut index_named = false;
        for (text, _) in queries(&store, &case) {
            let explain = format!("EXPLAIN QUERY PLAN {}", dialect::to_sqlite(&text));
            let mut statement = raw.prepare(&explain).expect("prepared");
            let plan: Vec<String> =
                statement.raw_query().mapped(|row| row.get(3)).collect::<Result<_, _>>().expect("explained");
            let shown = format!("{}: {text}\n{}", case.what, plan.join("\n"));
            assert!(!plan.iter().any(|line| is_scan(line)), "{shown}");
            let collected =
                text.starts_with("WITH") || text.contains(" UNION ALL ") || text.contains(" UNION ");
            let sorts = plan.iter().any(|line| line.contains("TEMP B-TREE FOR ORDER BY"));
            assert!(collected || !sorts, "{shown}");
            index_named |= plan.iter().any(|line| line.contains(case.sqlite));
            assert!(index_named, "{} is not in {shown}", case.sqlite);
        }
    }
    for Planned { what, text, index, .. } in planned() {
        let explain = format!("EXPLAIN QUERY PLAN {}", dialect::to_sqlite(&text));
        let mut statement = raw.prepare(&explain).expect("prepared");
        let plan: Vec<String> =
            statement.raw_query().mapped(|row| row.get(3)).collect::<Result<_, _>>().expect("explained");
        let shown = format!("{what}: {text}\n{}", plan.join("\n"));
        assert!(!plan.iter().any(|line| is_scan(line)), "{shown}");
        assert!(plan.iter().any(|line| line.contains(index)), "{index} is not in {shown}");
    }
    keep_few(|sql| raw.execute_batch(sql).expect("deleted"), |hex| format!("X'{hex}'"));
    both_ways_find_the_same(&store);
}

#[test]
fn postgres_reads_pages_by_indexes() {
    let url = PostgresServer::shared().fresh_database();
    let database = Database::Postgres(url.clone());
    migrate_only(&database).expect("migrated");
    let mut raw = postgres::Client::connect(&url, postgres::NoTls).expect("connected");
    crate::plans::keep_statistics(&mut raw);
    let bytes = |hex: &str| format!("'\\x{hex}'::bytea");
    fill(FEW_ACCOUNTS, |sql| raw.batch_execute(sql).expect("filled"), bytes);
    raw.batch_execute("ANALYZE").expect("analyzed");
    raw.batch_execute(
        "DELETE FROM company; DELETE FROM channel; DELETE FROM account; DELETE FROM account_word; \
         DELETE FROM account_field; DELETE FROM account_seen; DELETE FROM cadence; DELETE FROM status_history; \
         DELETE FROM contact; DELETE FROM conversation; DELETE FROM message; DELETE FROM import_account",
    )
    .expect("emptied");
    fill(ACCOUNTS, |sql| raw.batch_execute(sql).expect("filled"), bytes);
    let store = Store::open(&Config::new(database)).expect("opened");
    raw.batch_execute(crate::engine::postgres::SESSION).expect("set");
    let mut faults = plans_are_index_reads(&store, &mut raw, "analyzed with few accounts");
    crate::plans::forget_statistics(&mut raw);
    faults.extend(plans_are_index_reads(&store, &mut raw, "never analyzed"));
    raw.batch_execute("SET statement_timeout = 0").expect("set");
    raw.batch_execute("VACUUM ANALYZE").expect("analyzed");
    faults.extend(plans_are_index_reads(&store, &mut raw, "analyzed"));
    assert!(faults.is_empty(), "{} plans are wrong:\n{}", faults.len(), faults.join("\n"));
    keep_few(|sql| raw.batch_execute(sql).expect("deleted"), bytes);
    both_ways_find_the_same(&store);
}

/// Removes most accounts, except the rare ones: a walk that checks all of them must end before the statement timeout,
/// even on a busy machine.
fn keep_few(mut run: impl FnMut(&str), bytes: impl Fn(&str) -> String) {
    let limit = bytes(&id(ACCOUNTS / 20));
    let rare: Vec<String> = (0..ACCOUNTS).filter(|n| is_rare(*n)).map(|n| bytes(&id(n))).collect();
    let rare = rare.join(", ");
    for (table, id) in [
        ("account", "id"),
        ("account_word", "account"),
        ("account_field", "account"),
        ("account_seen", "account"),
        ("cadence", "account"),
        ("import_account", "account"),
    ] {
        run(&format!("DELETE FROM {table} WHERE {id} >= {limit} AND {id} NOT IN ({rare})"));
    }
}

/// The faults in the plans, with the current statistics.
fn plans_are_index_reads(store: &Store, raw: &mut postgres::Client, state: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut check = |plan: &[String], index: &str, named: bool, what: &str, text: &str| {
        let scans = plan.iter().any(|line| line.contains("Seq Scan on") && !line.contains("on company"));
        if scans || !named {
            faults.push(format!("{state}: {what}: {index}\n{text}\n{}", plan.join("\n")));
        }
    };
    for case in cases() {
        let mut index_named = false;
        for (text, parameters) in queries(store, &case) {
            let plan = explained(raw, &text, parameters);
            index_named |= plan.iter().any(|line| line.contains(case.postgres));
            check(&plan, case.postgres, index_named, case.what, &text);
        }
    }
    for Planned { what, text, parameters, index } in planned() {
        let plan = explained(raw, &text, parameters);
        let named = plan.iter().any(|line| line.contains(index));
        check(&plan, index, named, &what, &text);
    }
    faults
}

fn explained(raw: &mut postgres::Client, text: &str, parameters: usize) -> Vec<String> {
    raw.batch_execute(&format!("PREPARE page AS {text}")).expect("prepared");
    let values =
        if parameters == 0 { String::new() } else { format!("({})", vec!["NULL"; parameters].join(", ")) };
    let rows = raw.query(&format!("EXPLAIN EXECUTE page{values}"), &[]).expect("explained");
    raw.batch_execute("DEALLOCATE page").expect("deallocated");
    rows.iter().map(|row| row.get(0)).collect()
}

/// A scan of a table, rather than of rows that a query has collected.
fn is_scan(line: &str) -> bool {
    ["SCAN a", "SCAN e", "SCAN w", "SCAN s", "SCAN k", "SCAN m", "SCAN cadence"]
        .iter()
        .any(|scan| line == *scan || line.starts_with(&format!("{scan} ")))
}

/// Reads the same pages by walking and by collecting, whichever way would have been chosen.
fn both_ways_find_the_same(store: &Store) {
    let q = |text: &str| Some(text.to_owned());
    let seen_before = Some(Time::from_micros(600 * DAY));
    let any = AccountFilter::default;
    let is = |key: &str, text: &str| FieldFilter {
        key: key.to_owned(),
        test: FieldTest::Is(vec![text.to_owned()]),
    };
    let filters = [
        AccountFilter { q: q("frequent zanzi"), ..any() },
        AccountFilter { q: q("crm-17"), ..any() },
        AccountFilter { overdue: Some(true), seen_before, q: q("frequent 1"), ..any() },
        AccountFilter { overdue: Some(false), seen_before, statuses: vec![Status::Customer], ..any() },
        AccountFilter { tracked: Some(false), channels: vec![ChannelId::from_bytes([1; 16])], ..any() },
        AccountFilter {
            fields: vec![is("plan", "pro"), is("seats", "1")],
            statuses: vec![Status::Lost],
            ..any()
        },
        AccountFilter { fields: vec![is("plan", "rare")], seen: Some(true), ..any() },
        AccountFilter {
            contacted_after: Some(Time::from_micros(60 * DAY)),
            campaign_hold: Some(true),
            ..any()
        },
        AccountFilter {
            import: Some(ImportFilter { id: ImportId::from_bytes([1; 16]), effect: None }),
            statuses: vec![Status::Lost],
            ..any()
        },
        AccountFilter {
            created_since: Some(Time::from_micros(200_000)),
            created_before: Some(Time::from_micros(600_000)),
            channels: vec![ChannelId::from_bytes([1; 16])],
            ..any()
        },
        AccountFilter {
            contacted: Some(false),
            channels: [1, 2].map(|n| ChannelId::from_bytes([n; 16])).to_vec(),
            ..any()
        },
    ];
    let mut compared = 0;
    for (filter, sort) in
        filters.into_iter().flat_map(|filter| Sort::all().map(move |sort| (filter.clone(), sort)))
    {
        let read = store.read(CompanyId(1), move |snapshot| {
            let terms = Terms::of(&filter, Time::from_micros(60 * DAY), snapshot)?;
            let first = keys_of(snapshot, &terms, None, sort, None)?;
            let later = first.get(5).cloned();
            let mut compared = 0;
            for after in [None, later.as_ref()] {
                let walked = keys_of(snapshot, &terms, None, sort, after)?;
                for source in terms.sources(sort) {
                    let collected = keys_of(snapshot, &terms, Some(&source), sort, after)?;
                    assert_eq!(collected, walked, "{filter:?} {sort:?} after {after:?}");
                    compared += usize::from(!walked.is_empty());
                }
            }
            Ok(compared)
        });
        compared += read.blocking_recv().expect("an answer").expect("the same keys");
    }
    assert!(compared > 40, "only {compared} pages were compared");
}

fn keys_of(
    snapshot: &mut Snapshot,
    terms: &Terms,
    narrow: Option<&Source<'_>>,
    sort: Sort,
    after: Option<&Place>,
) -> Result<Vec<Place>, Error> {
    let mut places = Vec::new();
    let groups = Groups::of(sort.by, snapshot)?;
    for sql in terms.queries(narrow, Order { sort, after, limit: 51 }, &groups) {
        for row in snapshot.query_text(sql.text(), sql.values())? {
            places.push(read_place(sort, row)?);
        }
    }
    places.truncate(51);
    Ok(places)
}
