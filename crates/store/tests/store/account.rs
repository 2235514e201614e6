//! Accounts are stored completely, found by their keys, and deleted without a trace.

use jiff::civil::Date;
use rapport_domain::account::Account;
use rapport_domain::channel::{Channel, ChannelRef, PromoCode};
use rapport_domain::custom_fields::{CustomFields, FieldChange};
use rapport_domain::history::{Actor, HistoryEntry};
use rapport_domain::id::{ChannelId, HistoryId};
use rapport_domain::money::{Amount, Currency, Money};
use rapport_domain::pipeline::{Source, Status};
use rapport_domain::time::Day;
use rapport_store::account::Edit;
use rapport_store::account_list::{AccountFilter, ListAccounts, Sort};
use rapport_store::activity::{Count, NewActivity, Seen};
use rapport_store::page::Page;
use rapport_store::{Database, Query, Tx, account, account_field, activity, channel, history};
use serde_json::json;

use crate::support::{World, account_id, bytes, imported_account, new_account, on_both_engines, raw, time};

/// An account with a value in every column.
fn full_account(number: u64) -> Account {
    Account {
        imported_id: Some(format!("CRM-{number} \u{202e}\"';--")),
        status: Status::InTrial,
        custom_fields: CustomFields::from_stored(r#"{"plan":"größer","seats":1.50}"#.to_owned()),
        value: Some(Money { amount: Amount::from_ten_thousandths(12_345_678), currency: Currency::USD }),
        promo_code: Some(PromoCode::parse("Spring_26").expect("a code")),
        channel: Some(ChannelRef { id: ChannelId::from_bytes([5; 16]), name: "Partners".to_owned() }),
        acquired_at: Some(time(1)),
        last_contact_at: Some(time(-7_000_000_000)),
        imported_contact_at: Some(time(-8_000_000_000)),
        cadence_override: Some(3650),
        snoozed_until: Some(Date::constant(2026, 6, 1)),
        tracked_since: Some(time(2)),
        campaign_hold: true,
        updated_at: time(3),
        ..new_account(number, "Keller & Sohn 株式会社 🚀")
    }
}

fn add_channel(world: &World, company: rapport_domain::id::CompanyId) {
    let partners =
        Channel { id: ChannelId::from_bytes([5; 16]), name: "Partners".to_owned(), created_at: time(0) };
    assert!(world.write(company, move |tx| channel::insert(tx, &partners)).expect("inserted"));
}

#[test]
fn an_account_reads_back_as_it_was_written() {
    on_both_engines(|world| {
        let company = world.company("acme");
        add_channel(world, company);
        let full = full_account(1);
        let plain = new_account(2, "Plain");
        world.insert(company, vec![full.clone(), plain.clone()]);
        assert_eq!(world.account(company, full.id), Some(full.clone()));
        assert_eq!(world.account(company, plain.id), Some(plain.clone()));
        assert_eq!(world.account(company, account_id(3)), None);

        let changed = Account { created_at: full.created_at, ..full_account(2) };
        let written = changed.clone();
        let update = move |tx: &mut Tx| account::update(tx, &[Edit { before: &plain, after: &written }]);
        world.write(company, update).expect("updated");
        assert_eq!(world.account(company, account_id(2)), Some(changed));
        assert_eq!(world.account(company, account_id(1)), Some(full), "only its own row changes");
    });
}

#[test]
fn accounts_are_locked_by_id_and_by_imported_id() {
    on_both_engines(|world| {
        let company = world.company("acme");
        world.insert(company, (1..=5).map(|n| imported_account(n, &format!("crm-{n}"))).collect());
        let locked =
            world.write(company, |tx| account::lock(tx, &[account_id(4), account_id(9), account_id(2)]));
        let mut locked: Vec<_> = locked.expect("locked").into_iter().map(|account| account.id).collect();
        locked.sort_unstable();
        assert_eq!(locked, [account_id(2), account_id(4)]);
        let locked =
            world.write(company, |tx| account::lock_by_imported_id(tx, &["crm-5", "CRM-1", "none", "crm-3"]));
        let mut locked: Vec<_> = locked.expect("locked").into_iter().map(|account| account.id).collect();
        locked.sort_unstable();
        assert_eq!(locked, [account_id(3), account_id(5)], "an imported_id is exact and case-sensitive");

        let mut ids =
            world.read(company, |snapshot| account::ids_by_imported_id(snapshot, &["crm-2", "crm-9"]));
        ids.sort_unstable();
        assert_eq!(ids, [("crm-2".to_owned(), account_id(2))]);
        let there =
            world.read(company, |snapshot| account::existing(snapshot, &[account_id(7), account_id(1)]));
        assert_eq!(there, [account_id(1)]);
        assert_eq!(world.write(company, |tx| account::lock(tx, &[])).expect("locked"), []);
    });
}

#[test]
fn an_imported_id_is_taken_once() {
    on_both_engines(|world| {
        let company = world.company("acme");
        world.insert(
            company,
            vec![imported_account(1, "crm-1"), new_account(2, "None"), new_account(3, "None")],
        );
        let second = world.write(company, |tx| {
            account::insert(tx, &[&imported_account(4, "crm-4"), &imported_account(5, "crm-1")])
        });
        assert!(!second.expect("answered"), "reported, not an error");
        let taken = |by_other_than| {
            world.read(company, move |snapshot| {
                account::imported_id_is_taken(snapshot, "crm-1", account_id(by_other_than))
            })
        };
        assert!(taken(2));
        assert!(!taken(1), "an account's own id does not count as taken");
    });
}

fn found(world: &World, company: rapport_domain::id::CompanyId, q: &str) -> Vec<String> {
    let filter = AccountFilter { q: Some(q.to_owned()), ..AccountFilter::default() };
    let list = ListAccounts { filter, sort: Sort::OLDEST, cursor: None, limit: 50, now: time(0) };
    let page = world.read(company, move |snapshot| list.run(snapshot));
    page.items.into_iter().map(|account| account.name).collect()
}

#[test]
fn words_follow_the_name() {
    on_both_engines(|world| {
        let company = world.company("acme");
        world.insert(company, vec![new_account(1, "Keller und Sohn"), new_account(2, "Kellerei Łódź")]);
        assert_eq!(found(world, company, "keller"), ["Keller und Sohn", "Kellerei Łódź"]);
        assert_eq!(found(world, company, "sohn KEL"), ["Keller und Sohn"]);
        assert_eq!(found(world, company, "łó"), ["Kellerei Łódź"]);
        let renamed = Account { imported_id: Some("CRM-00418/a".to_owned()), ..new_account(1, "Nordlys AS") };
        let written = renamed.clone();
        let done = world.write(company, move |tx| {
            let before = new_account(1, "Keller und Sohn");
            account::update(tx, &[Edit { before: &before, after: &written }])?;
            account::replace_words(tx, &written)
        });
        done.expect("renamed");
        assert_eq!(found(world, company, "keller"), ["Kellerei Łódź"]);
        assert_eq!(found(world, company, "nord"), ["Nordlys AS"]);
        assert_eq!(found(world, company, "crm-00418/"), ["Nordlys AS"]);
    });
}

/// The index rows of accounts, in order.
fn index(world: &World) -> Vec<String> {
    let sql = "SELECT field, value, account FROM account_field ORDER BY account, field, value";
    let show = |field: String, value: String, account: &[u8]| format!("{} {field} {value}", account[15]);
    match &world.database {
        Database::Sqlite(path) => {
            let connection = rusqlite::Connection::open(path).expect("opened");
            let mut statement = connection.prepare(sql).expect("prepared");
            let rows =
                statement.query_map([], |row| Ok(show(row.get(0)?, row.get(1)?, &row.get::<_, Vec<u8>>(2)?)));
            rows.expect("read").collect::<Result<_, _>>().expect("read")
        }
        Database::Postgres(url) => {
            let mut client = raw(url);
            let rows = client.query(sql, &[]).expect("read");
            rows.iter().map(|row| show(row.get(0), row.get(1), row.get(2))).collect()
        }
    }
}

#[test]
fn the_index_of_fields_follows_every_change() {
    on_both_engines(|world| {
        let company = world.company("acme");
        let fields = |json: &str| CustomFields::from_stored(json.to_owned());
        let first = Account {
            custom_fields: fields(r#"{"plan":"Pro","seats":12.0,"tags":["A","b","a",7],"x":{},"y":true}"#),
            ..imported_account(1, "crm-1")
        };
        let second = Account { custom_fields: fields(r#"{"plan":"free"}"#), ..imported_account(2, "crm-2") };
        world.insert(company, vec![first, second]);
        let made = [
            "1 plan spro",
            "1 seats n12",
            "1 tags n7",
            "1 tags sa",
            "1 tags sb",
            "1 x ",
            "1 y btrue",
            "2 plan sfree",
        ];
        assert_eq!(index(world), made);

        let merge = |json: serde_json::Value| {
            let change = FieldChange::parse(json.as_object().expect("an object")).expect("fields");
            let done = world.write(company, move |tx| {
                let before = account::lock(tx, &[account_id(1)])?.remove(0);
                let mut account = before.clone();
                account.custom_fields = before.custom_fields.merged(&change).expect("merged");
                // As an upsert of both would.
                let third = Account {
                    custom_fields: CustomFields::from_stored(r#"{"plan":"new"}"#.to_owned()),
                    ..imported_account(3, "crm-3")
                };
                account::delete(tx, third.id, time(9))?;
                let edit = Edit { before: &before, after: &account };
                assert!(account::write(tx, &[&third], &[edit])?);
                Ok(())
            });
            done.expect("merged");
        };
        merge(json!({"plan": "PRO", "seats": 12, "none": null}));
        assert_eq!(index(world)[..8], made, "spelled differently, indexed the same");
        merge(json!({"plan": null, "seats": "12", "tags": ["b", "c"], "x": "now", "y": []}));
        let changed =
            ["1 seats s12", "1 tags sb", "1 tags sc", "1 x snow", "1 y ", "2 plan sfree", "3 plan snew"];
        assert_eq!(index(world), changed);
        world.write(company, |tx| account::delete(tx, account_id(1), time(9))).expect("deleted");
        assert_eq!(index(world), ["2 plan sfree", "3 plan snew"]);
    });
}

#[test]
fn fields_in_use_are_named_in_order() {
    on_both_engines(|world| {
        let (company, other) = (world.company("acme"), world.company("other"));
        let names = |after: Option<&'static str>, limit| {
            world.read(company, move |snapshot| account_field::names(snapshot, after, limit))
        };
        assert_eq!(names(None, 10), Page { items: vec![], more: false });
        let account = |number: u64| Account {
            custom_fields: CustomFields::from_stored(r#"{"B":1,"a":"x","plan":[],"ä":{}}"#.to_owned()),
            ..new_account(number, "Nordlys")
        };
        world.insert(company, (0..30).map(account).collect());
        let theirs = CustomFields::from_stored(r#"{"c":1}"#.to_owned());
        world.insert(other, vec![Account { custom_fields: theirs, ..new_account(1, "Nordlys") }]);
        let page =
            |items: &[&str], more| Page { items: items.iter().map(ToString::to_string).collect(), more };
        assert_eq!(names(None, 10), page(&["B", "a", "plan", "ä"], false));
        assert_eq!(names(None, 2), page(&["B", "a"], true));
        assert_eq!(names(Some("a"), 2), page(&["plan", "ä"], false));
    });
}

#[test]
fn deleting_an_account_deletes_everything_it_owns() {
    on_both_engines(|world| {
        let company = world.company("acme");
        let with_fields = |number, imported_id| Account {
            custom_fields: CustomFields::from_stored(r#"{"plan":"pro","tags":["a","b"]}"#.to_owned()),
            ..imported_account(number, imported_id)
        };
        let other = with_fields(2, "crm-2");
        world.insert(company, vec![with_fields(1, "crm-1"), other.clone()]);
        let fill = world.write(company, |tx| {
            for n in [1, 2] {
                let account = account_id(n);
                let event = NewActivity {
                    account,
                    occurred_at: time(0),
                    received_at: time(0),
                    kind: "app_opened",
                    feature: None,
                    metadata: None,
                };
                activity::insert(tx, &[event])?;
                let day = Day::from_number(20_000);
                activity::count(tx, &[Count { account, day, feature: "", count: 1, last_used_at: time(0) }])?;
                activity::see(tx, &[Seen { account, first: time(0), last: time(0), day }])?;
                let entry = HistoryEntry {
                    id: HistoryId::from_bytes(bytes(n)),
                    account,
                    from: None,
                    to: Status::Prospect,
                    source: Source::Upsert,
                    actor: Actor::System,
                    note: None,
                    at: time(0),
                    happened_at: None,
                };
                history::insert(tx, &[entry])?;
            }
            Ok(())
        });
        fill.expect("filled");
        let tables = [
            "account",
            "account_word",
            "account_field",
            "activity",
            "activity_count",
            "account_seen",
            "status_history",
        ];
        let before = tables.map(|table| world.rows_of(table));
        world.write(company, |tx| account::delete(tx, account_id(1), time(9))).expect("deleted");
        assert_eq!(tables.map(|table| world.rows_of(table)), before.map(|rows| rows / 2));
        assert_eq!(world.account(company, account_id(1)), None);
        assert!(world.account(company, other.id).is_some());
        assert_eq!(found(world, company, "crm-1"), Vec::<String>::new());
        world.insert(company, vec![imported_account(3, "crm-1")]);
    });
}
