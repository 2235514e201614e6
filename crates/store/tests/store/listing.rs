//! The account list, compared with a plain filter and sort in memory, on both engines.

use std::cmp::Ordering;

use jiff::civil::Date;
use rapport_domain::account::Account;
use rapport_domain::audience::{FieldFilter, FieldTest};
use rapport_domain::channel::{Channel, ChannelRef, PromoCode};
use rapport_domain::company::{Settings, TrackedStages, parse_time_zone};
use rapport_domain::custom_fields::CustomFields;
use rapport_domain::id::{ChannelId, CompanyId};
use rapport_domain::money::{Amount, Currency, Money};
use rapport_domain::pipeline::Status;
use rapport_domain::search;
use rapport_domain::text::fold;
use rapport_domain::time::Time;
use rapport_store::account_list::{
    AccountFilter, AccountPage, By, CappedCount, Cursor, ListAccounts, Sort, count_capped,
};
use rapport_store::activity::{self, Seen};
use rapport_store::{Query, channel};
use serde_json::{Map, Value, json};

use crate::support::{Random, World, account_id, bytes, new_account, on_both_engines, time};

const ACCOUNTS: u64 = 300;
const DAY_SECONDS: i64 = 86_400;

fn settings() -> Settings {
    Settings {
        cadence_days: 20,
        tracked_stages: TrackedStages::from_statuses(&[Status::Customer, Status::InNegotiation])
            .expect("stages"),
        time_zone: parse_time_zone("America/New_York").expect("a zone"),
        ..Settings::default()
    }
}

fn channels() -> [ChannelRef; 2] {
    [("Partners", 1), ("Fair", 2)]
        .map(|(name, n)| ChannelRef { id: ChannelId::from_bytes(bytes(n)), name: name.to_owned() })
}

/// Varied accounts, with many equal names and times.
fn accounts() -> Vec<Account> {
    let words = [
        "Keller",
        "keller",
        "Sohn",
        "Łódź",
        "株式会社",
        "Nord",
        "Nordlys",
        "Z",
        "Ärzte",
        "O'Neil",
        "42",
        "Ⅷ",
    ];
    let mut random = Random::seeded(1);
    let mut account = |n: u64| {
        let count = 1 + random.below(3);
        let name: Vec<&str> = (0..count).map(|_| random.pick(&words)).collect();
        let mut account = new_account(n, &name.join(" "));
        account.status = random.pick(&Status::ALL);
        account.imported_id =
            (!random.one_in(3)).then(|| format!("CRM-{:03}/{}", n % 250, random.pick(&["a", "B", "_"])));
        if account.imported_id.is_some() && n >= 250 {
            account.imported_id = Some(format!("x{n}"));
        }
        account.channel = random.one_in(3).then(|| random.pick(&channels()));
        let days = |random: &mut Random, span: usize| {
            time(-DAY_SECONDS * i64::try_from(random.below(span)).expect("small"))
        };
        account.last_contact_at = random.one_in(2).then(|| days(&mut random, 40));
        let trackable = TrackedStages::may_contain(account.status);
        account.tracked_since = trackable.then(|| days(&mut random, 40));
        account.cadence_override =
            random.one_in(4).then(|| 1 + i64::try_from(random.below(30)).expect("small"));
        let day = i8::try_from(8 + random.below(9)).expect("small");
        account.snoozed_until = random.one_in(3).then(|| Date::constant(2026, 5, day));
        account.campaign_hold = random.one_in(6);
        account.acquired_at = random.one_in(2).then(|| days(&mut random, 20));
        account.promo_code =
            account.channel.as_ref().filter(|_| !random.one_in(3)).map(|_| {
                PromoCode::from_stored(random.pick(&["SPRING", "spring-2", "FAIR", "A_1"]).to_owned())
            });
        account.value = random.one_in(2).then(|| Money {
            amount: Amount::from_ten_thousandths(i64::try_from(random.below(9)).expect("small") - 1),
            currency: Currency::parse(random.pick(&["USD", "EUR", "CHF"])).expect("a currency"),
        });
        let mut fields = Map::new();
        if !random.one_in(4) {
            fields.insert(
                "plan".to_owned(),
                random.pick(&[json!("pro"), json!("Pro+"), json!("free"), json!({})]),
            );
        }
        if random.one_in(2) {
            fields.insert("seats".to_owned(), random.pick(&[json!(1), json!(2), json!("1"), json!(true)]));
        }
        if random.one_in(2) {
            let tags = [json!([]), json!(["A", "a"]), json!(["a", 2, "b"]), json!(["2", 2, false])];
            fields.insert("tags".to_owned(), random.pick(&tags));
        }
        account.custom_fields = CustomFields::from_stored(Value::Object(fields).to_string());
        if !random.one_in(3) {
            account.see(days(&mut random, 30));
            account.see(days(&mut random, 30));
        }
        account
    };
    (0..ACCOUNTS).map(&mut account).collect()
}

fn fill(world: &World) -> CompanyId {
    let company = world.company_with("acme", settings());
    // Another company's accounts, which must never be found.
    let other = world.company_with("other", settings());
    for company in [other, company] {
        world
            .write(company, |tx| {
                for ChannelRef { id, name } in channels() {
                    assert!(channel::insert(tx, &Channel { id, name, created_at: time(0) })?);
                }
                Ok(())
            })
            .expect("channels");
        world.insert(company, accounts());
        world
            .write(company, |tx| {
                let seen: Vec<Seen> = accounts()
                    .iter()
                    .filter_map(|account| {
                        let (first, last) = (account.first_seen_at?, account.last_seen_at?);
                        Some(Seen {
                            account: account.id,
                            first,
                            last,
                            day: last.day_in(&settings().time_zone),
                        })
                    })
                    .collect();
                activity::see(tx, &seen)
            })
            .expect("seen");
    }
    company
}

/// The meaning of a filter.
fn matches(account: &Account, filter: &AccountFilter, now: Time) -> bool {
    let AccountFilter {
        q, statuses, channels, imported_id, tracked, overdue, seen_before, seen_after, ..
    } = filter;
    let AccountFilter { seen, contacted, contacted_before, contacted_after, campaign_hold, fields, .. } =
        filter;
    let due = account.due(&settings(), now);
    let found = q.as_deref().is_none_or(|q| {
        let words = search::words_of(&account.name, account.imported_id.as_deref());
        let begins = |prefix: &String| words.iter().any(|word| word.starts_with(prefix));
        let (asked, whole) = (search::query_words(q), search::whole(q));
        whole.is_empty() || (!asked.is_empty() && asked.iter().all(begins)) || begins(&whole)
    });
    found
        && (statuses.is_empty() || statuses.contains(&account.status))
        && (channels.is_empty()
            || account.channel.as_ref().is_some_and(|channel| channels.contains(&channel.id)))
        && imported_id.as_ref().is_none_or(|id| account.imported_id.as_ref() == Some(id))
        && tracked.is_none_or(|tracked| due.tracked == tracked)
        && overdue.is_none_or(|overdue| due.overdue == overdue)
        && seen_before.is_none_or(|time| account.last_seen_at.is_some_and(|seen| seen < time))
        && seen_after.is_none_or(|time| account.last_seen_at.is_some_and(|seen| seen > time))
        && seen.is_none_or(|seen| account.last_seen_at.is_some() == seen)
        && contacted.is_none_or(|contacted| account.last_contact_at.is_some() == contacted)
        && contacted_before.is_none_or(|time| account.last_contact_at.is_some_and(|at| at < time))
        && contacted_after.is_none_or(|time| account.last_contact_at.is_some_and(|at| at > time))
        && campaign_hold.is_none_or(|held| account.campaign_hold == held)
        && fields.iter().all(|field| has_field(account, field))
}

fn has_field(account: &Account, FieldFilter { key, test }: &FieldFilter) -> bool {
    let kept = account.custom_fields.to_map();
    let Some(kept) = kept.get(key) else { return false };
    let elements = kept.as_array().map_or(std::slice::from_ref(kept), Vec::as_slice);
    let says = |value: &Value, asked: &str| match value {
        Value::String(text) => fold(text) == fold(asked),
        Value::Array(_) | Value::Object(_) | Value::Null => false,
        value => {
            let shown = value.to_string();
            shown == asked
        }
    };
    let begins =
        |value: &Value, start: &str| value.as_str().is_some_and(|text| fold(text).starts_with(&fold(start)));
    match test {
        FieldTest::Exists => true,
        FieldTest::Is(values) => {
            elements.iter().any(|element| values.iter().any(|asked| says(element, asked)))
        }
        FieldTest::BeginsWith(start) => elements.iter().any(|element| begins(element, start)),
    }
}

fn sorted(mut accounts: Vec<Account>, sort: Sort) -> Vec<Account> {
    accounts.sort_by(|a, b| {
        let (first, second) = (key(a, sort.by), key(b, sort.by));
        let order = match (&first, &second) {
            // Groups and accounts without a value are in the same order in both directions.
            (Some((one, _)), Some((other, _))) if one != other => return one.cmp(other),
            (Some(_), None) => return Ordering::Less,
            (None, Some(_)) => return Ordering::Greater,
            (first, second) => (first, a.id).cmp(&(second, b.id)),
        };
        if sort.descending { order.reverse() } else { order }
    });
    accounts
}

/// The group and the text that an account is sorted by; `None` if it lacks what the list is sorted by.
fn key(account: &Account, by: By) -> Option<(String, String)> {
    let number = |number: i64| format!("{:020}", i128::from(number) - i128::from(i64::MIN));
    let time = |time: Option<Time>| time.map(|time| number(time.as_micros()));
    let key = match by {
        // All of them were written in one transaction on PostgreSQL, and one by one in the order of their ids on SQLite.
        By::Created | By::Updated => String::new(),
        By::Name => fold(&account.name),
        By::Status => Status::ALL.iter().position(|status| *status == account.status)?.to_string(),
        By::Value => {
            let money = account.value?;
            let is_own = money.currency == settings().default_currency;
            let group = if is_own { String::new() } else { money.currency.code().to_owned() };
            return Some((group, number(money.amount.ten_thousandths())));
        }
        By::Channel => fold(&account.channel.as_ref()?.name),
        By::PromoCode => account.promo_code.as_ref()?.as_str().to_owned(),
        By::LastSeen => time(account.last_seen_at)?,
        By::FirstSeen => time(account.first_seen_at)?,
        By::LastContact => time(account.last_contact_at)?,
        By::Acquired => time(account.acquired_at)?,
    };
    Some((String::new(), key))
}

fn page(world: &World, company: CompanyId, list: ListAccounts) -> AccountPage {
    world.read(company, move |snapshot| list.run(snapshot))
}

/// Reads page after page; the cursor is converted to text and back, as on the wire.
fn pages(
    world: &World,
    company: CompanyId,
    filter: &AccountFilter,
    sort: Sort,
    limit: i64,
    now: Time,
) -> Vec<Account> {
    let mut all = Vec::new();
    let mut cursor = None;
    loop {
        let page = page(world, company, ListAccounts { filter: filter.clone(), sort, cursor, limit, now });
        assert!(page.items.len() <= usize::try_from(limit).expect("a limit"));
        all.extend(page.items);
        let Some(next) = page.next else { return all };
        cursor = Some(Cursor::parse(&next.to_string(), sort).expect("a cursor of this sort"));
        assert!(all.len() <= accounts().len(), "the pages never end");
    }
}

fn random_filter(random: &mut Random) -> AccountFilter {
    let queries = [
        "keller", "KELL soh", "nord", "nordl", "łó", "crm-0", "CRM-017/", "sohn x", "***", "  ", "株",
        "o'neil", "z 42",
    ];
    let moment = |random: &mut Random| {
        time(
            -DAY_SECONDS * i64::try_from(random.below(30)).expect("small") - 1
                + i64::try_from(random.below(3)).expect("small"),
        )
    };
    let statuses = if random.one_in(2) { 0 } else { random.below(4) };
    AccountFilter {
        q: random.one_in(2).then(|| random.pick(&queries).to_owned()),
        statuses: (0..statuses).map(|_| random.pick(&Status::ALL)).collect(),
        channels: (0..random.below(6)).filter_map(|n| channels().get(n).map(|channel| channel.id)).collect(),
        imported_id: random
            .one_in(12)
            .then(|| random.pick(&["CRM-017/a", "CRM-100/B", "x260", "X260"]).to_owned()),
        tracked: random.one_in(4).then(|| random.one_in(2)),
        overdue: random.one_in(3).then(|| random.one_in(2)),
        seen_before: random.one_in(5).then(|| moment(random)),
        seen_after: random.one_in(5).then(|| moment(random)),
        seen: random.one_in(6).then(|| random.one_in(2)),
        contacted: random.one_in(6).then(|| random.one_in(2)),
        contacted_before: random.one_in(6).then(|| moment(random)),
        contacted_after: random.one_in(6).then(|| moment(random)),
        campaign_hold: random.one_in(5).then(|| random.one_in(3)),
        fields: (0..[0, 0, 1, 1, 2][random.below(5)]).map(|_| random_field(random)).collect(),
        created_since: None,
        created_before: None,
        import: None,
    }
}

fn random_field(random: &mut Random) -> FieldFilter {
    let (key, values): (&str, &[&str]) = random.pick(&[
        ("plan", ["PRO", "free", "1"].as_slice()),
        ("seats", &["1", "2", "3", "true"]),
        ("tags", &["a", "B", "2", "false"]),
        ("none", &["x"]),
    ]);
    let texts = |count: usize, random: &mut Random| -> Vec<String> {
        (0..count).map(|_| random.pick(values).to_owned()).collect()
    };
    let test = match random.below(5) {
        0 => FieldTest::Exists,
        1 => FieldTest::BeginsWith(random.pick(&["p", "PR", "a", "1", "x"]).to_owned()),
        2 => FieldTest::Is(texts(3, random)),
        _ => FieldTest::Is(texts(1, random)),
    };
    FieldFilter { key: key.to_owned(), test }
}

#[test]
fn every_filter_sort_and_page_agrees_with_a_plain_model() {
    on_both_engines(|world| {
        let company = fill(world);
        let all = accounts();
        let mut random = Random::seeded(2);
        let mut found = 0;
        for round in 0..660 {
            let filter = if round < Sort::all().count() {
                AccountFilter::default()
            } else {
                random_filter(&mut random)
            };
            let sort = Sort::all().nth(round % Sort::all().count()).expect("a sort");
            let limit = random.pick(&[1, 7, 50, 51, 200]);
            let now = time(random.pick(&[0, -DAY_SECONDS, 15 * 3600 + 1, 20 * 3600]));
            let wanted: Vec<Account> =
                all.iter().filter(|account| matches(account, &filter, now)).cloned().collect();
            let wanted = sorted(wanted, sort);
            // Reading a long list one by one would only take time.
            let limit = if wanted.len() > 60 { limit.max(50) } else { limit };
            let read = pages(world, company, &filter, sort, limit, now);
            let shown = |accounts: &[Account]| {
                accounts
                    .iter()
                    .map(|account| (account.id, account.name.clone(), account.status))
                    .collect::<Vec<_>>()
            };
            assert_eq!(shown(&read), shown(&wanted), "{filter:?} {sort:?} by {limit} at {now}");
            assert_eq!(read, wanted, "whole accounts");
            found += usize::from(!wanted.is_empty());
            let count = world.read(company, move |snapshot| count_capped(snapshot, &filter, now, 40));
            let expected = i64::try_from(wanted.len()).expect("small");
            assert_eq!(count, CappedCount { count: expected.min(40), capped: expected > 40 });
        }
        assert!(found > 100, "only {found} filters found anything");
    });
}

#[test]
fn a_page_stays_in_its_bounds() {
    on_both_engines(|world| {
        let company = fill(world);
        for (asked, given) in [(-5, 1), (0, 1), (1, 1), (50, 50), (200, 200), (9000, 200)] {
            let list = ListAccounts {
                filter: AccountFilter::default(),
                sort: Sort::default(),
                cursor: None,
                limit: asked,
                now: time(0),
            };
            let page = page(world, company, list);
            assert_eq!(page.items.len(), given, "limit {asked}");
            assert!(page.next.is_some());
            assert_eq!(page.items[0].id, account_id(ACCOUNTS - 1), "newest first");
        }
    });
}

#[test]
fn a_list_read_while_accounts_come_has_no_repeats() {
    on_both_engines(|world| {
        let company = world.company("acme");
        world.insert(company, (0..20).map(|n| new_account(n * 2, "Nordlys")).collect());
        let list = |cursor| ListAccounts {
            filter: AccountFilter::default(),
            sort: Sort::NEWEST,
            cursor,
            limit: 8,
            now: time(0),
        };
        let first = page(world, company, list(None));
        world.insert(company, vec![new_account(100, "Newer"), new_account(23, "Between")]);
        let second = page(world, company, list(first.next));
        let ids: Vec<_> = second.items.iter().map(|account| account.id).collect();
        let expected = [23, 22, 20, 18, 16, 14, 12, 10].map(account_id);
        assert_eq!(ids, expected);
    });
}

#[test]
fn a_cursor_of_another_sort_is_refused() {
    on_both_engines(|world| {
        let company = fill(world);
        let list = |sort, cursor| ListAccounts {
            filter: AccountFilter::default(),
            sort,
            cursor,
            limit: 1,
            now: time(0),
        };
        let newest = page(world, company, list(Sort::NEWEST, None)).next.expect("more");
        let read =
            world.store.read(company, move |snapshot| list(By::Name.ascending(), Some(newest)).run(snapshot));
        assert!(read.blocking_recv().expect("an answer").is_err(), "the cursor belongs to another sort");
    });
}
