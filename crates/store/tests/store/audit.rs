//! The audit log: every filter finds the same entries as looking at all of them, on every page size, and retention
//! deletes the oldest in steps.

use rapport_domain::audit::{Filter, Wanted};
use rapport_domain::history::Actor;
use rapport_domain::id::{AuditId, CompanyId, CredentialId, PersonId, lowest_at};
use rapport_store::audit::{self, AuditEntry};

use crate::support::{World, bytes, on_both_engines, time};

const ACTIONS: [&str; 7] = [
    "session.begun",
    "webhook.created",
    "session.failed",
    "webhook.deleted",
    "sessions.ended",
    "settings.changed",
    "of.a_later_version",
];
const ENTRIES: u64 = 40;

fn person(number: u64) -> PersonId {
    PersonId::from_bytes(bytes(number))
}

/// One entry a minute, with actors and actions in turn.
fn entry(number: u64) -> AuditEntry {
    let at = time(i64::try_from(number).unwrap() * 60);
    let mut id = *lowest_at::<AuditId>(at).as_bytes();
    id[15] = 1;
    let actor = match number % 4 {
        0 => Actor::Person { id: person(1), name: "Ana".to_owned() },
        1 => Actor::Person { id: person(2), name: "Bo".to_owned() },
        2 => Actor::Token { id: CredentialId::from_bytes(bytes(50)), name: "CRM".to_owned() },
        _ => Actor::System,
    };
    AuditEntry {
        id: AuditId::from_bytes(id),
        actor,
        action: ACTIONS[usize::try_from(number).unwrap() % ACTIONS.len()].to_owned(),
        target: None,
        detail: "{}".to_owned(),
        at,
        address: None,
        request_id: None,
    }
}

fn fill(world: &World, company: CompanyId, entries: Vec<AuditEntry>) {
    let inserted =
        world.write(company, move |tx| entries.iter().try_for_each(|entry| audit::insert(tx, entry)));
    inserted.expect("inserted");
}

/// All entries that match, read in pages of this size.
fn all(world: &World, company: CompanyId, filter: Filter, limit: i64) -> Vec<AuditEntry> {
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let page = world.read(company, move |snapshot| audit::list(snapshot, &filter, before, limit));
        before = page.items.last().map(|last: &AuditEntry| last.id);
        found.extend(page.items);
        if !page.more {
            return found;
        }
    }
}

fn matches(filter: &Filter, entry: &AuditEntry) -> bool {
    let by = |wanted: PersonId| matches!(&entry.actor, Actor::Person { id, .. } if *id == wanted);
    filter.person.is_none_or(by)
        && filter.admits_action(&entry.action)
        && filter.from.is_none_or(|from| entry.at >= from)
        && filter.to.is_none_or(|to| entry.at < to)
}

#[test]
fn filters_find_what_looking_at_every_entry_would() {
    on_both_engines(|world| {
        let company = world.company("acme");
        let other = world.company("globex");
        fill(world, company, (0..ENTRIES).map(entry).collect());
        fill(world, other, (0..ENTRIES).map(entry).collect());
        let newest_first: Vec<AuditEntry> = (0..ENTRIES).rev().map(entry).collect();
        let actions = [None, Some("webhook.deleted"), Some("webhook"), Some("session"), Some("token")];
        let times = [
            (None, None),
            (Some(time(300)), Some(time(1_200))),
            (None, Some(time(61))),
            (Some(time(2_340)), None),
        ];
        let mut tried = 0;
        for person in [None, Some(person(1)), Some(person(9))] {
            for action in actions {
                for (from, to) in times {
                    for hides_logins in [false, true] {
                        let action = action.map(|word| Wanted::parse(word).expect("an action"));
                        let filter = Filter { person, action, hides_logins, from, to };
                        let expected: Vec<AuditEntry> =
                            newest_first.iter().filter(|entry| matches(&filter, entry)).cloned().collect();
                        for limit in [3, 100] {
                            assert_eq!(all(world, company, filter, limit), expected, "{filter:?}");
                        }
                        tried += usize::from(!expected.is_empty());
                    }
                }
            }
        }
        assert!(tried > 30, "{tried}");
    });
}

#[test]
fn an_id_from_a_clock_that_ran_ahead_is_found_by_its_time() {
    on_both_engines(|world| {
        let company = world.company("acme");
        let late = AuditEntry { at: time(0), ..entry(5) };
        fill(world, company, vec![late.clone(), entry(6)]);
        let filter = Filter { to: Some(time(1)), ..Filter::default() };
        assert_eq!(all(world, company, filter, 10), [late]);
    });
}

#[test]
fn the_oldest_entries_are_deleted_in_steps() {
    on_both_engines(|world| {
        let company = world.company("acme");
        let other = world.company("globex");
        fill(world, company, (0..10).map(entry).collect());
        fill(world, other, vec![entry(0)]);
        let prune = || world.write(company, |tx| audit::prune(tx, time(7 * 60), 5)).expect("pruned");
        assert_eq!((prune(), prune(), prune()), (5, 2, 0));
        let left = all(world, company, Filter::default(), 100);
        assert_eq!(left, [entry(9), entry(8), entry(7)]);
        assert_eq!(all(world, other, Filter::default(), 100), [entry(0)]);
    });
}
