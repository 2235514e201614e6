//! The tabs of the Clients page, compared with a plain filter and sort in memory, on both engines.

use jiff::civil::Date;
use rapport_domain::account::Account;
use rapport_domain::cadence::is_snoozed;
use rapport_domain::company::{Settings, TrackedStages, parse_time_zone};
use rapport_domain::contact::{Contact, Kind};
use rapport_domain::history::Actor;
use rapport_domain::id::{CompanyId, ContactId, PersonId};
use rapport_domain::pipeline::Status;
use rapport_domain::time::Time;
use rapport_store::account::Edit;
use rapport_store::clients::{CappedCount, Client, ClientPage, ListClients, Tab, count};
use rapport_store::{Query, account, cadence, contact};

use crate::support::{Random, World, account_id, bytes, new_account, on_both_engines, time};

const ACCOUNTS: u64 = 400;
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

/// Clients and other accounts, with many equal times.
fn accounts() -> Vec<Account> {
    let mut random = Random::seeded(3);
    let mut account = |n: u64| {
        let mut account = new_account(n, "Nordlys");
        account.status =
            random.pick(&[Status::Customer, Status::InNegotiation, Status::InTrial, Status::Lost]);
        let days = |random: &mut Random| time(-DAY_SECONDS * i64::try_from(random.below(40)).expect("small"));
        account.last_contact_at = random.one_in(2).then(|| days(&mut random));
        account.tracked_since = TrackedStages::may_contain(account.status).then(|| days(&mut random));
        account.cadence_override =
            random.one_in(4).then(|| 1 + i64::try_from(random.below(30)).expect("small"));
        let day = i8::try_from(8 + random.below(9)).expect("small");
        account.snoozed_until = random.one_in(3).then(|| Date::constant(2026, 5, day));
        account
    };
    (0..ACCOUNTS).map(&mut account).collect()
}

/// The expected accounts of a tab, in order.
fn wanted(tab: Tab, now: Time) -> Vec<Account> {
    let settings = settings();
    let snoozed = |account: &Account| is_snoozed(account.snoozed_until, &settings.time_zone, now);
    let due_at = |account: &Account| account.due(&settings, now).due_at.expect("a client has a due date");
    let mut found: Vec<Account> = accounts()
        .into_iter()
        .filter(|account| {
            let due = account.due(&settings, now);
            due.tracked
                && match tab {
                    Tab::Overdue => due.overdue,
                    Tab::DueSoon => {
                        !snoozed(account) && due_at(account) > now && due_at(account) <= now.plus_days(7)
                    }
                    Tab::Snoozed => snoozed(account),
                    Tab::Tracked => true,
                }
        })
        .collect();
    match tab {
        Tab::Snoozed => found.sort_by_key(|account| (account.snoozed_until, account.id)),
        Tab::Overdue | Tab::DueSoon | Tab::Tracked => {
            found.sort_by_key(|account| (due_at(account), account.id));
        }
    }
    found
}

fn pages(world: &World, company: CompanyId, tab: Tab, limit: i64, now: Time) -> Vec<Client> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page: ClientPage =
            world.read(company, move |snapshot| ListClients { tab, after, limit, now }.run(snapshot));
        assert!(page.items.len() <= usize::try_from(limit).expect("a limit"));
        all.extend(page.items);
        assert!(all.len() <= accounts().len(), "the pages never end");
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

#[test]
fn every_tab_and_page_agrees_with_a_plain_model() {
    on_both_engines(|world| {
        // Another company's accounts, which must never be found.
        let other = world.company_with("other", settings());
        let company = world.company_with("acme", settings());
        for company in [other, company] {
            world.insert(company, accounts());
        }
        for seconds in [0, -DAY_SECONDS, 20 * 3_600, 2 * DAY_SECONDS] {
            let now = time(seconds);
            for (tab, limit) in Tab::ALL.into_iter().flat_map(|tab| [(tab, 7), (tab, 50), (tab, 200)]) {
                let wanted = wanted(tab, now);
                assert!(wanted.len() > 5, "{tab:?} has only {}", wanted.len());
                let read = pages(world, company, tab, limit, now);
                let ids =
                    |accounts: &[Account]| accounts.iter().map(|account| account.id).collect::<Vec<_>>();
                let accounts: Vec<Account> = read.iter().map(|client| client.account.clone()).collect();
                assert_eq!(ids(&accounts), ids(&wanted), "{tab:?} by {limit} at {now}");
                assert_eq!(accounts, wanted, "whole accounts");
                assert!(read.iter().all(|client| client.due == client.account.due(&settings(), now)));
                let counted = world.read(company, move |snapshot| count(snapshot, tab, now));
                let count = i64::try_from(wanted.len()).expect("small");
                assert_eq!(counted, CappedCount { count, capped: false }, "{tab:?}");
            }
        }
    });
}

#[test]
fn a_snooze_that_is_over_everywhere_is_forgotten_and_changes_no_tab() {
    on_both_engines(|world| {
        let company = world.company_with("acme", settings());
        world.insert(company, accounts());
        let (now, over) = (time(0), Date::constant(2026, 5, 11));
        let noted = "SELECT count(*) FROM cadence WHERE snoozed_until <= '2026-05-11'";
        assert!(world.number(noted) > 10);
        let ended = world.read(company, move |snapshot| cadence::ended_snoozes(snapshot, over, 1_000));
        world.write(company, move |tx| cadence::end_snoozes(tx, &ended, over)).expect("ended");
        assert_eq!(world.number(noted), 0);
        for tab in Tab::ALL {
            let read: Vec<Account> =
                pages(world, company, tab, 200, now).into_iter().map(|client| client.account).collect();
            assert_eq!(read, wanted(tab, now), "{tab:?}");
        }
    });
}

#[test]
fn a_clock_is_written_only_where_it_changed() {
    on_both_engines(|world| {
        let company = world.company("acme");
        let mut customer = new_account(1, "Nordlys");
        (customer.status, customer.tracked_since) = (Status::Customer, Some(time(0)));
        world.insert(company, vec![customer, new_account(2, "A prospect")]);
        assert_eq!(world.rows_of("cadence"), 1);
        let change = |number: u64, change: fn(&mut Account)| {
            let changed = world.write(company, move |tx| {
                let before = account::lock(tx, &[account_id(number)])?.pop().expect("an account");
                let mut account = before.clone();
                change(&mut account);
                account::update(tx, &[Edit { before: &before, after: &account }])
            });
            changed.expect("changed");
        };
        // An invalid row, which any write would correct.
        let spoiled = "SELECT count(*) FROM cadence WHERE status = 'spoiled'";
        world.change("UPDATE cadence SET status = 'spoiled'");
        change(1, |account| account.name = "Renamed".to_owned());
        assert_eq!(world.number(spoiled), 1, "a name does not affect the clock");
        change(1, |account| account.cadence_override = Some(3));
        assert_eq!((world.number(spoiled), world.rows_of("cadence")), (0, 1));
        change(1, |account| account.status = Status::Lost);
        assert_eq!(world.rows_of("cadence"), 0, "lost accounts have none");
        change(2, |account| {
            (account.status, account.tracked_since) = (Status::InTrial, Some(time(9)));
        });
        assert_eq!(world.rows_of("cadence"), 1, "a new client gets one");
    });
}

#[test]
fn the_line_names_how_and_by_whom_contact_was_made_last() {
    on_both_engines(|world| {
        let company = world.company("acme");
        let at = time(-3 * DAY_SECONDS);
        let client = |number: u64, contacted: bool| {
            let mut account = new_account(number, "Nordlys");
            (account.status, account.tracked_since) = (Status::Customer, Some(time(0)));
            account.last_contact_at = contacted.then_some(at);
            account
        };
        world.insert(company, vec![client(1, true), client(2, true), client(3, true), client(4, false)]);
        let ada = Actor::Person { id: PersonId::from_bytes([1; 16]), name: "Ada".to_owned() };
        let made = [
            (1, Kind::Meeting, ada.clone(), at),
            (1, Kind::Call, ada, time(-9 * DAY_SECONDS)),
            (2, Kind::Email, Actor::System, at),
        ];
        for (number, (account, kind, actor, occurred_at)) in (10_u64..).zip(made) {
            let contact = Contact {
                id: ContactId::from_bytes(bytes(number)),
                account: account_id(account),
                kind,
                note: None,
                actor,
                occurred_at,
                created_at: time(0),
            };
            world.write(company, move |tx| contact::insert(tx, &contact)).expect("recorded");
        }
        let lines: Vec<String> =
            pages(world, company, Tab::Tracked, 50, time(0)).into_iter().map(|client| client.why).collect();
        let expected = [
            "last contact: meeting by Ada, 9 May 2026; every 42 days",
            "last contact: email by a colleague, 9 May 2026; every 42 days",
            "last contact: 9 May 2026; every 42 days",
            "never contacted; client since 12 May 2026; every 42 days",
        ];
        assert_eq!(lines, expected);
    });
}
