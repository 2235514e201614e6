//! Companies, members, credentials, channels, history, events and the audit log.

use rapport_domain::audit::Filter;
use rapport_domain::channel::{Channel, ChannelCode, ChannelRef, PromoCode};
use rapport_domain::company::{Settings, Slug, TrackedStages, Weekday, parse_time_zone};
use rapport_domain::credential::{Credential, Kind, SecretHash, issue};
use rapport_domain::event::{self as domain_event, Occasion};
use rapport_domain::history::{Actor, HistoryEntry};
use rapport_domain::id::{
    AuditId, ChannelId, CompanyId, CredentialId, EventId, HistoryId, PersonId, SessionId,
};
use rapport_domain::member::{Email, Role};
use rapport_domain::money::Currency;
use rapport_domain::pipeline::{Source, Status};
use rapport_domain::right::{Grant, Grants};
use rapport_domain::session::Limits;
use rapport_store::audit::AuditEntry;
use rapport_store::credential::{Holder, Token};
use rapport_store::member::NewPerson;
use rapport_store::session::{Begun, Ended, Listed};
use rapport_store::{account, audit, channel, company, credential, event, history, member, session};

use crate::support::{World, account_id, bytes, new_account, on_both_engines, time};

fn settings() -> Settings {
    Settings {
        cadence_days: 7,
        tracked_stages: TrackedStages::from_statuses(&[Status::InNegotiation]).expect("stages"),
        digest_enabled: false,
        digest_weekday: Weekday::parse("friday").expect("a weekday"),
        time_zone: parse_time_zone("Asia/Kolkata").expect("a zone"),
        default_currency: Currency::parse("EUR").expect("a currency"),
        audit_days: 90,
        grants: Grants { export: Grant::Members, delete: Grant::Admins },
        sessions: Limits { idle_minutes: 30, max_minutes: 600 },
        second_factor_required: true,
        late_events_move: false,
    }
}

#[test]
fn a_slug_belongs_to_one_company_which_keeps_its_settings() {
    on_both_engines(|world| {
        let acme = world.company("acme");
        let other = world.company_with("other", settings());
        let again = world.write(CompanyId(0), |tx| {
            let slug = Slug::parse("acme").expect("a slug");
            company::create(tx, &slug, "Again", &Settings::default(), time(0))
        });
        assert_eq!(again.expect("answered"), None);
        let found = world.read(other, company::get).expect("there");
        assert_eq!((found.id, found.slug.as_str(), found.name.as_str()), (other, "other", "A company"));
        assert_eq!((found.settings, found.created_at), (settings(), time(0)));
        let by_slug = |slug: &'static str| {
            let read = world.store.read_across(move |across| company::by_slug(across, slug));
            read.blocking_recv().expect("an answer").expect("read").map(|company| company.id)
        };
        assert_eq!((by_slug("acme"), by_slug("ACME")), (Some(acme), None));
        let listed =
            world.store.read_across(company::list).blocking_recv().expect("an answer").expect("read");
        assert_eq!(listed.into_iter().map(|company| company.id).collect::<Vec<_>>(), [acme, other]);
        let none = world.read(CompanyId(99), company::get);
        assert_eq!(none, None);
    });
}

#[test]
fn settings_change_for_one_company() {
    on_both_engines(|world| {
        let (acme, other) = (world.company("acme"), world.company("other"));
        let before = world.write(acme, |tx| {
            let before = company::lock(tx)?;
            company::update_settings(tx, &settings())?;
            Ok(before)
        });
        assert_eq!(before.expect("changed").expect("there").settings, Settings::default());
        assert_eq!(world.read(acme, company::get).expect("there").settings, settings());
        assert_eq!(world.read(other, company::get).expect("there").settings, Settings::default());
    });
}

#[test]
fn a_person_can_be_a_member_of_several_companies() {
    on_both_engines(|world| {
        let (acme, other) = (world.company("acme"), world.company("other"));
        let join = |company, fresh: u64, role| {
            let joined = world.write(company, move |tx| {
                let email = Email::parse("You@Acme.test").expect("an address");
                let id = PersonId::from_bytes(bytes(fresh));
                let new =
                    NewPerson { id, email: &email, name: "You", password_hash: "hash", is_proven: true };
                let made = member::insert_person(tx, &new, time(0))?;
                let person = member::proven_login(tx, &email)?.expect("the owner of the address").person;
                Ok((person, made, member::insert(tx, person, role, time(1))?))
            });
            joined.expect("joined")
        };
        let person = PersonId::from_bytes(bytes(1));
        assert_eq!(join(acme, 1, Role::Owner), (person, true, true));
        assert_eq!(join(other, 2, Role::Member), (person, false, true));
        assert_eq!(join(acme, 3, Role::Admin), (person, false, false), "already a member");
        world.write(acme, move |tx| member::update(tx, person, Role::Admin, Some(time(9)))).expect("updated");
        let acmes = world.read(acme, member::list);
        assert_eq!(acmes.len(), 1);
        let kept = (acmes[0].email.as_str(), acmes[0].role, acmes[0].deactivated_at);
        assert_eq!(kept, ("you@acme.test", Role::Admin, Some(time(9))));
        world.write(acme, move |tx| member::delete(tx, person)).expect("deleted");
        assert_eq!(world.read(acme, move |snapshot| member::get(snapshot, person)), None);
        let elsewhere = world.read(other, move |snapshot| member::get(snapshot, person)).expect("there");
        assert_eq!((elsewhere.role, elsewhere.deactivated_at), (Role::Member, None));
    });
}

fn token(company: CompanyId, number: u8, kind: Kind) -> (SecretHash, Credential) {
    let issued = issue(kind, company, [number; 20]);
    let credential = Credential {
        id: CredentialId::from_bytes(bytes(u64::from(number))),
        kind,
        name: format!("credential {number}"),
        role: Role::Admin,
        shown: issued.shown,
        created_at: time(0),
        last_used_at: None,
        person: None,
        expires_at: None,
        rate_limit: None,
    };
    (issued.hash, credential)
}

#[test]
fn credentials_live_until_they_are_deleted() {
    on_both_engines(|world| {
        let company = world.company("acme");
        let tokens = [1, 2].map(|number| token(company, number, Kind::ApiToken));
        let keys = [3, 4].map(|number| token(company, number, Kind::IngestKey));
        let all: Vec<_> = tokens.iter().chain(&keys).cloned().collect();
        let hashes: Vec<SecretHash> = all.iter().map(|(hash, _)| *hash).collect();
        world
            .write(company, move |tx| {
                all.iter().try_for_each(|(hash, credential)| credential::insert(tx, hash, credential))
            })
            .expect("inserted");
        let live = || {
            let hashes = hashes.clone();
            let known = world.read(company, move |snapshot| credential::callers(snapshot, &hashes)).known;
            assert!(known.iter().all(|known| known.holder.is_none()));
            let mut live: Vec<_> = known.into_iter().map(|known| (known.hash, known.credential)).collect();
            live.sort_by_key(|(_, credential)| credential.id);
            live
        };
        assert_eq!(live(), [tokens.clone(), keys.clone()].concat());
        let listed = world.read(company, |snapshot| credential::list(snapshot, Kind::ApiToken));
        assert_eq!(listed, [tokens[1].1.clone(), tokens[0].1.clone()], "newest first");

        let id = tokens[0].1.id;
        for (at, expected) in [(5, 5), (3, 5), (8, 8)] {
            world.write(company, move |tx| credential::touch(tx, id, time(at))).expect("touched");
            assert_eq!(live()[0].1.last_used_at, Some(time(expected)), "never goes back");
        }
        let delete =
            |kind| world.write(company, move |tx| credential::delete(tx, id, kind)).expect("answered");
        assert!(!delete(Kind::IngestKey), "a different kind");
        assert!(delete(Kind::ApiToken));
        assert!(!delete(Kind::ApiToken), "gone");
        world.write(company, |tx| credential::delete_kind(tx, Kind::IngestKey)).expect("rotated");
        assert_eq!(live(), [tokens[1].clone()]);
    });
}

#[test]
fn a_persons_token_is_found_with_the_role_that_the_person_has_now() {
    on_both_engines(|world| {
        let (acme, other) = (world.company("acme"), world.company("other"));
        let person = PersonId::from_bytes(bytes(1));
        for (company, role) in [(acme, Role::Admin), (other, Role::Owner)] {
            world
                .write(company, move |tx| {
                    let email = Email::parse("you@acme.test").expect("an address");
                    let (id, email) = (person, &email);
                    let new = NewPerson { id, email, name: "You", password_hash: "hash", is_proven: true };
                    member::insert_person(tx, &new, time(0))?;
                    member::insert(tx, person, role, time(1)).map(drop)
                })
                .expect("joined");
        }
        let (hash, mut theirs) = token(acme, 1, Kind::ApiToken);
        (theirs.person, theirs.expires_at) = (Some(person), Some(time(99)));
        let inserted = theirs.clone();
        world.write(acme, move |tx| credential::insert(tx, &hash, &inserted)).expect("inserted");
        let holder = || {
            let mut known = world.read(acme, move |snapshot| credential::callers(snapshot, &[hash])).known;
            assert_eq!(known[0].credential, theirs);
            let role = known.remove(0).holder;
            let listed = world.read(acme, credential::tokens);
            let holder = Some(Holder { person, name: "You".to_owned(), role });
            assert_eq!(listed, [Token { credential: theirs.clone(), holder }]);
            role
        };
        assert_eq!(holder(), Some(Role::Admin));
        let update = |role, deactivated_at| {
            world.write(acme, move |tx| member::update(tx, person, role, deactivated_at)).expect("updated");
        };
        update(Role::Member, None);
        assert_eq!(holder(), Some(Role::Member));
        update(Role::Member, Some(time(5)));
        assert_eq!(holder(), None, "deactivated");
        update(Role::Owner, None);
        assert_eq!(holder(), Some(Role::Owner));
        world.write(acme, move |tx| member::delete(tx, person)).expect("deleted");
        assert_eq!(holder(), None, "a member only of another company");
    });
}

#[test]
fn a_person_ends_one_session_or_proves_who_they_are_in_it() {
    on_both_engines(|world| {
        let (acme, other) = (world.company("acme"), world.company("other"));
        let (you, somebody) = (PersonId::from_bytes(bytes(1)), PersonId::from_bytes(bytes(2)));
        let begin = |company: CompanyId, number: u8, person| {
            let hash = issue(Kind::Session, company, [number; 20]).hash;
            let id = SessionId::from_bytes(bytes(u64::from(number)));
            world
                .write(company, move |tx| {
                    let at = time(i64::from(number) * 10);
                    let (address, browser) = (Some("192.0.2.7"), Some("A test"));
                    let (created_at, proved_at) = (time(1), time(2));
                    let begun = Begun {
                        id,
                        person,
                        at,
                        created_at,
                        proved_at,
                        address,
                        browser,
                        second_factor_at: Some(time(3)),
                        by_sso: false,
                    };
                    session::insert(tx, &hash, &begun)
                })
                .expect("begun");
            (hash, id)
        };
        let (here, _) = begin(acme, 1, you);
        let (_, there) = begin(other, 2, you);
        let (_, theirs) = begin(acme, 3, somebody);
        let listed = || world.read(acme, move |snapshot| session::of_person(snapshot, you));
        assert!(listed().iter().all(|listed| listed.second_factor_at == Some(time(3))));
        let times = |listed: &Listed| (listed.created_at, listed.last_seen_at, listed.proved_at);
        assert_eq!(
            listed().iter().map(times).collect::<Vec<_>>(),
            [(time(1), time(20), time(2)), (time(1), time(10), time(2)),]
        );
        world.write(acme, move |tx| session::prove(tx, &here, time(50))).expect("proved");
        assert_eq!(listed().iter().map(|listed| listed.proved_at).collect::<Vec<_>>(), [time(2), time(50)]);

        let end = |id| world.write(acme, move |tx| session::delete_one(tx, you, id)).expect("answered");
        assert_eq!(end(theirs), None, "somebody else's");
        let (address, browser) = (Some("192.0.2.7".to_owned()), Some("A test".to_owned()));
        let ended = Ended { company: other, address, browser };
        assert_eq!(end(there), Some(ended), "in another company");
        assert_eq!(end(there), None);
        assert_eq!(listed().into_iter().map(|listed| listed.hash).collect::<Vec<_>>(), [here]);
    });
}

#[test]
fn a_session_of_an_earlier_release_proved_nothing_since_its_login() {
    on_both_engines(|world| {
        let company = world.company("acme");
        let person = PersonId::from_bytes(bytes(1));
        let hash = issue(Kind::Session, company, [1; 20]).hash;
        world
            .write(company, move |tx| {
                let email = Email::parse("you@acme.test").expect("an address");
                let (id, email) = (person, &email);
                let new = NewPerson { id, email, name: "You", password_hash: "hash", is_proven: true };
                member::insert_person(tx, &new, time(0))?;
                member::insert(tx, person, Role::Member, time(0))?;
                let (id, at) = (SessionId::from_bytes(bytes(1)), time(3));
                let begun = Begun {
                    id,
                    person,
                    at,
                    created_at: at,
                    proved_at: at,
                    address: None,
                    browser: None,
                    second_factor_at: None,
                    by_sso: false,
                };
                session::insert(tx, &hash, &begun)?;
                session::touch(tx, id, time(8))
            })
            .expect("begun");
        world.change("UPDATE session SET proved_at = NULL");
        let found = world.read(company, move |snapshot| session::find(snapshot, &hash)).expect("there");
        assert_eq!((found.created_at, found.last_seen_at, found.proved_at), (time(3), time(8), time(3)));
    });
}

fn new_channel(number: u64, name: &str) -> Channel {
    Channel { id: ChannelId::from_bytes(bytes(number)), name: name.to_owned(), created_at: time(0) }
}

fn new_code(channel: u64, code: &str) -> ChannelCode {
    let code = PromoCode::parse(code).expect("a code");
    ChannelCode {
        channel: ChannelId::from_bytes(bytes(channel)),
        code,
        archived_at: None,
        created_at: time(0),
    }
}

fn insert_channel(world: &World, company: CompanyId, channel: Channel) -> bool {
    world.write(company, move |tx| channel::insert(tx, &channel)).expect("answered")
}

#[test]
fn channel_names_are_unique_without_case() {
    on_both_engines(|world| {
        let company = world.company("acme");
        assert!(insert_channel(world, company, new_channel(1, "Partners")));
        assert!(insert_channel(world, company, new_channel(2, "Ärzte")));
        assert!(!insert_channel(world, company, new_channel(3, "PARTNERS")));
        assert!(!insert_channel(world, company, new_channel(4, "ärzte")));
        let rename = |number, name: &'static str| {
            let id = ChannelId::from_bytes(bytes(number));
            world.write(company, move |tx| channel::rename(tx, id, name)).expect("answered")
        };
        assert!(!rename(2, "partners"));
        assert!(rename(2, "ÄRZTE"), "its own name with different case");
        let listed = world.read(company, channel::list);
        assert_eq!(listed, [new_channel(2, "ÄRZTE"), new_channel(1, "Partners")]);
        let one = ChannelId::from_bytes(bytes(1));
        assert_eq!(world.read(company, move |s| channel::get(s, one)), Some(new_channel(1, "Partners")));
        assert_eq!(
            world.write(company, move |tx| channel::lock(tx, one)).expect("locked"),
            Some(new_channel(1, "Partners"))
        );
    });
}

#[test]
fn only_live_codes_attribute() {
    on_both_engines(|world| {
        let company = world.company("acme");
        insert_channel(world, company, new_channel(1, "Partners"));
        insert_channel(world, company, new_channel(2, "Fair"));
        let insert = |channel, code: &'static str| {
            world
                .write(company, move |tx| channel::insert_code(tx, &new_code(channel, code)))
                .expect("answered")
        };
        assert!(insert(1, "Spring_26"));
        assert!(insert(2, "FAIR"));
        assert!(!insert(2, "SPRING_26"), "codes are unique per company, ignoring case");
        let attributed = || {
            let folded = ["spring_26", "fair", "none"].map(str::to_owned);
            let mut found = world.read(company, move |snapshot| channel::attributions(snapshot, &folded));
            found.sort_by(|a, b| a.0.cmp(&b.0));
            found
                .into_iter()
                .map(|(folded, found)| (folded, found.code.as_str().to_owned(), found.channel))
                .collect()
        };
        let on = |number, name: &str| ChannelRef {
            id: ChannelId::from_bytes(bytes(number)),
            name: name.to_owned(),
        };
        let fair = ("fair".to_owned(), "FAIR".to_owned(), on(2, "Fair"));
        let spring = ("spring_26".to_owned(), "Spring_26".to_owned(), on(1, "Partners"));
        let found: Vec<_> = attributed();
        assert_eq!(found, [fair.clone(), spring]);

        let spring = PromoCode::parse("sPRING_26").expect("a code");
        let archive = |channel, at| {
            let code = spring.clone();
            let id = ChannelId::from_bytes(bytes(channel));
            world.write(company, move |tx| channel::archive_code(tx, id, &code, at)).expect("answered")
        };
        assert!(!archive(2, Some(time(1))), "it belongs to another channel");
        assert!(archive(1, Some(time(1))));
        assert_eq!(attributed(), [fair]);
        assert!(!insert(2, "spring_26"), "an archived code is still taken");
        assert!(archive(1, None));
        assert_eq!(attributed().len(), 2);
        let codes = world.read(company, |snapshot| channel::codes(snapshot, ChannelId::from_bytes(bytes(1))));
        assert_eq!(codes, [new_code(1, "Spring_26")]);
        assert_eq!(world.read(company, channel::all_codes), [new_code(2, "FAIR"), new_code(1, "Spring_26")]);
        let deleted = |channel| {
            let code = spring.clone();
            let id = ChannelId::from_bytes(bytes(channel));
            world.write(company, move |tx| channel::delete_code(tx, id, &code)).expect("answered")
        };
        assert_eq!([deleted(2), deleted(1), deleted(1)], [false, true, false]);
    });
}

#[test]
fn a_channel_knows_if_it_is_in_use_and_deletes_its_codes() {
    on_both_engines(|world| {
        let company = world.company("acme");
        insert_channel(world, company, new_channel(1, "Partners"));
        let id = ChannelId::from_bytes(bytes(1));
        world.write(company, |tx| channel::insert_code(tx, &new_code(1, "one"))).expect("inserted");
        assert!(!world.read(company, move |snapshot| channel::is_in_use(snapshot, id)));
        let mut account = new_account(1, "Nordlys");
        account.channel = Some(ChannelRef { id, name: "Partners".to_owned() });
        world.insert(company, vec![account]);
        assert!(world.read(company, move |snapshot| channel::is_in_use(snapshot, id)));
        world.write(company, move |tx| channel::delete(tx, id)).expect("deleted");
        assert_eq!((world.rows_of("channel"), world.rows_of("promo_code")), (0, 0));
    });
}

#[test]
fn history_pages_have_no_gaps_and_keep_who_did_it() {
    on_both_engines(|world| {
        let company = world.company("acme");
        let actors = [
            Actor::Token { id: CredentialId::from_bytes([1; 16]), name: "CI".to_owned() },
            Actor::IngestKey { id: CredentialId::from_bytes([2; 16]) },
            Actor::Person { id: PersonId::from_bytes([3; 16]), name: "You".to_owned() },
            Actor::CommandLine,
            Actor::System,
        ];
        let entries: Vec<HistoryEntry> = (0..23_u64)
            .zip(actors.into_iter().cycle())
            .map(|(n, actor)| HistoryEntry {
                id: HistoryId::from_bytes(bytes(n)),
                account: account_id(1),
                from: (n > 0).then_some(Status::Lost),
                to: Status::ALL[usize::try_from(n).expect("small") % 7],
                source: Source::ALL[usize::try_from(n).expect("small") % 6],
                actor,
                note: (n % 2 == 0).then(|| format!("note {n}")),
                at: time(0),
                happened_at: (n % 3 == 0).then(|| time(i64::try_from(n).expect("small"))),
            })
            .collect();
        let mut newest_first = entries.clone();
        newest_first.reverse();
        let foreign = HistoryEntry { account: account_id(2), ..entries[3].clone() };
        world
            .write(company, move |tx| {
                history::insert(tx, &entries)?;
                history::insert(tx, std::slice::from_ref(&foreign))
            })
            .expect("inserted");
        for limit in [1, 7, 23, 50] {
            let mut all: Vec<HistoryEntry> = Vec::new();
            loop {
                let before = all.last().map(|entry| entry.id);
                let page = world.read(company, move |snapshot| {
                    history::of_account(snapshot, account_id(1), before, limit)
                });
                all.extend(page.items);
                if !page.more {
                    break;
                }
            }
            assert_eq!(all, newest_first, "pages of {limit}");
        }
    });
}

#[test]
fn the_latest_move_is_when_what_moved_the_account_happened() {
    on_both_engines(|world| {
        let company = world.company("acme");
        // The account, where it came from, when it was recorded, and when it happened.
        let table = [
            (1, None, 50, None),
            (2, None, 10, None),
            (2, Some(Status::Lost), 20, None),
            (3, None, 10, None),
            (3, Some(Status::Lost), 40, Some(15)),
            (4, None, 90, Some(80)),
            (4, Some(Status::Lost), 20, None),
            (4, Some(Status::Lost), 60, Some(12)),
        ];
        let entries: Vec<HistoryEntry> = (0..)
            .zip(table)
            .map(|(n, (account, from, at, happened_at))| HistoryEntry {
                id: HistoryId::from_bytes(bytes(n)),
                account: account_id(account),
                from,
                to: Status::Contacted,
                source: Source::Automation,
                actor: Actor::System,
                note: None,
                at: time(at),
                happened_at: happened_at.map(time),
            })
            .collect();
        let found = world.write(company, move |tx| {
            let accounts = [1, 2, 3, 4, 5].map(|number| new_account(number, "Nordlys"));
            account::insert(tx, &accounts.iter().collect::<Vec<_>>())?;
            history::insert(tx, &entries)?;
            let accounts = accounts.map(|account| account.id);
            Ok((history::latest_moves(tx, &accounts)?, history::entered(tx, &accounts)?))
        });
        let (mut found, mut entered) = found.expect("read");
        found.sort_unstable();
        entered.sort_unstable();
        let expected = [(1, None), (2, Some(20)), (3, Some(15)), (4, Some(20))];
        assert_eq!(found, expected.map(|(account, at)| (account_id(account), at.map(time))));
        // The latest record decides since when an account is in its stage, also if what moved it happened earlier.
        let expected = [(1, 50), (2, 20), (3, 15), (4, 12)];
        assert_eq!(entered, expected.map(|(account, at)| (account_id(account), time(at))));
    });
}

#[test]
fn events_keep_their_payload_to_the_byte() {
    on_both_engines(|world| {
        let company = world.company("acme");
        let slug = Slug::parse("acme").expect("a slug");
        let made = |n: u64| {
            let occasion = Occasion { id: EventId::from_bytes(bytes(n)), now: time(0), project: &slug };
            domain_event::account_created(occasion, &new_account(1, "Łódź \"&\" 🚀"), Source::Import)
        };
        let events = vec![made(1), made(2)];
        let written = events.clone();
        world.write(company, move |tx| event::insert(tx, &written)).expect("inserted");
        assert_eq!(
            world.read(company, |s| event::get(s, EventId::from_bytes(bytes(2)))),
            Some(events[1].clone())
        );
        assert_eq!(world.read(company, |s| event::get(s, EventId::from_bytes(bytes(3)))), None);
        assert_eq!(world.read(company, |s| event::of_account(s, account_id(1))), events);
    });
}

#[test]
fn the_audit_log_is_read_newest_first() {
    on_both_engines(|world| {
        let company = world.company("acme");
        let entry = |n: u64| AuditEntry {
            id: AuditId::from_bytes(bytes(n)),
            actor: Actor::CommandLine,
            action: "key.rotated".to_owned(),
            target: n.is_multiple_of(2).then(|| "crd_1".to_owned()),
            detail: r#"{"kind":"ingest_key"}"#.to_owned(),
            at: time(0),
            address: Some(format!("192.0.2.{n}")),
            request_id: (n > 1).then(|| format!("abc-{n}")),
        };
        world
            .write(company, move |tx| (1..=5).try_for_each(|n| audit::insert(tx, &entry(n))))
            .expect("inserted");
        let first = world.read(company, |snapshot| audit::list(snapshot, &Filter::default(), None, 3));
        assert_eq!((first.items, first.more), (vec![entry(5), entry(4), entry(3)], true));
        let before = Some(AuditId::from_bytes(bytes(3)));
        let rest = world.read(company, move |snapshot| audit::list(snapshot, &Filter::default(), before, 3));
        assert_eq!((rest.items, rest.more), (vec![entry(2), entry(1)], false));
    });
}
