//! A company is deleted after a waiting period, with every row in every table, and without a trace in other companies.

use rapport_app::company_deletion::{CancelDeletion, Erasing, RequestDeletion, ScheduleDeletion, due, step};
use rapport_app::session::{Proven, read_cookie};
use rapport_app::{Access, App, Needs};
use rapport_domain::audit::Filter;
use rapport_domain::company_deletion::Deletion;
use rapport_domain::id::{CompanyId, PersonId};
use rapport_domain::mail::Kind;
use rapport_domain::member::Role;
use rapport_domain::right::Right;
use rapport_store::company_deletion;
use rapport_testkit::app::Hire;
use rapport_testkit::{TestApp, TestCompany, block_on, create_webhook};
use serde_json::{Value, json};

use crate::every_table::{count, fill};
use crate::mail::{mails, on_both_with_mail};
use crate::refusal;

/// Enough that every table takes several steps.
const ROWS: usize = 250;

fn session(company: &TestCompany, person: PersonId) -> Access {
    let proven = Proven { person, company: company.id() };
    let cookie = block_on(company.app().write(&proven.access(), proven.begin(None))).unwrap();
    Access::Credential(read_cookie(&cookie).unwrap())
}

fn owner(company: &TestCompany) -> PersonId {
    company.read(rapport_store::member::list).remove(0).person
}

fn typed(project: &str) -> RequestDeletion {
    RequestDeletion(json!({ "project": project }).as_object().unwrap().clone())
}

fn pending(company: &TestCompany) -> Option<Deletion> {
    company.read(company_deletion::get)
}

/// Deletes what is due, as the job does.
fn delete_due(app: &App) -> Vec<CompanyId> {
    let companies = block_on(due(app)).unwrap();
    for company in &companies {
        let mut erasing = Erasing::default();
        while block_on(step(app, *company, &mut erasing)).unwrap() {}
    }
    companies
}

fn actions(company: &TestCompany) -> Vec<(String, Value)> {
    let page = company.read(|snapshot| rapport_store::audit::list(snapshot, &Filter::default(), None, 100));
    let entry = |entry: rapport_store::audit::AuditEntry| {
        (entry.action, serde_json::from_str(&entry.detail).unwrap())
    };
    page.items.into_iter().rev().map(entry).collect()
}

#[test]
fn an_owner_asks_and_any_owner_cancels_and_the_others_are_told() {
    on_both_with_mail(|app| {
        let ana = session(app, owner(app));
        let bo = session(app, app.employ("bo@acme.test", "Bo", Role::Owner).person);
        app.employ("cy@acme.test", "Cy", Role::Admin);
        app.employ("di@acme.test", "Di", Role::Member);
        assert_eq!(refusal(app.write_as(&ana, typed("Acme"))), "invalid /project not_confirmed");
        let deletion = app.write_as(&ana, typed("acme")).unwrap();
        assert_eq!(deletion.at, app.clock().now().plus_days(14));
        assert_eq!(pending(app), Some(deletion.clone()));
        assert_eq!(refusal(app.write_as(&bo, typed("acme"))), "conflict deletion_requested");
        let told: Vec<String> =
            mails(app).into_iter().map(|mail| mail.recipient.as_str().to_owned()).collect();
        assert_eq!(told, ["owner@acme.test", "bo@acme.test", "cy@acme.test"]);
        assert!(mails(app).iter().all(|mail| mail.kind == Kind::CompanyDeletion), "{:?}", mails(app));

        app.write_as(&bo, CancelDeletion).unwrap();
        assert_eq!(pending(app), None);
        assert_eq!(refusal(app.write_as(&bo, CancelDeletion)), "no such deletion");
        assert_eq!(mails(app).len(), 6);
        let at = deletion.at.to_string();
        let expected = [
            ("company.deletion_requested".to_owned(), json!({ "at": at })),
            ("company.deletion_cancelled".to_owned(), json!({ "at": { "from": at, "to": null } })),
        ];
        assert_eq!(actions(app)[actions(app).len() - 2..], expected);
        app.clock().advance_days(20);
        assert_eq!(delete_due(app.app()), []);
    });
}

#[test]
fn only_a_person_who_is_an_owner_can_ask() {
    TestApp::on_both(|app| {
        let admin = session(app, app.employ("cy@acme.test", "Cy", Role::Admin).person);
        assert_eq!(refusal(app.write_as(&admin, typed("acme"))), "forbidden role_required");
        assert_eq!(refusal(app.write_as(&admin, CancelDeletion)), "forbidden role_required");
        // The first token of a company has the role owner, but no password.
        assert_eq!(refusal(app.write(typed("acme"))), "unauthenticated");
        assert_eq!(pending(app), None);
    });
}

#[test]
fn everything_works_until_the_waiting_is_over() {
    TestApp::on_both(|app| {
        let ana = session(app, owner(app));
        app.write_as(&ana, typed("acme")).unwrap();
        app.clock().advance_days(13);
        assert_eq!(delete_due(app.app()), []);
        app.upsert(json!({"imported_id": "crm-1"}));
        assert!(block_on(app.app().read(&ana, Needs::Right(Right::Company), |_, _| Ok(()))).is_ok());
        app.clock().advance_days(1);
        assert_eq!(delete_due(app.app()), [app.id()]);
        assert_eq!(refusal(app.write(CancelDeletion)), "unauthenticated", "the token is gone");
    });
}

#[test]
fn no_row_of_the_company_is_left_in_any_table_and_others_keep_theirs() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        app.write_as(&session(app, owner(app)), typed("acme")).unwrap();
        for company in [app.id(), globex.id()] {
            fill(app, company, ROWS);
        }
        let before = count(app, globex.id());
        let rows = i64::try_from(ROWS).unwrap();
        let thin: Vec<_> = count(app, app.id()).into_iter().filter(|(_, found)| *found < rows).collect();
        let single =
            ["channel_count", "company_deletion", "digest_schedule", "field_fill", "sso", "subscription"];
        assert_eq!(thin.iter().map(|(table, _)| table.as_str()).collect::<Vec<_>>(), single);
        app.clock().advance_days(14);
        assert_eq!(delete_due(app.app()), [app.id()]);
        let left: Vec<_> = count(app, app.id()).into_iter().filter(|(_, found)| *found > 0).collect();
        assert_eq!(left, []);
        assert_eq!(app.number(&format!("SELECT count(*) FROM company WHERE id = {}", app.id().0)), 0);
        assert_eq!(count(app, globex.id()), before);
        assert_eq!(delete_due(app.app()), [], "once");
        // Its short name is free again, and a new company has none of its rows.
        let again = app.company("acme");
        assert_ne!(again.id(), app.id());
        assert_eq!(again.find("crm-1"), None);
    });
}

#[test]
fn nobody_gets_in_and_nothing_is_sent_once_it_begins() {
    TestApp::on_both(|app| {
        let ana = session(app, owner(app));
        let body = json!({"url": "https://example.com/", "events": ["account.created"]});
        app.write(create_webhook(app.app(), &body)).unwrap();
        app.write_as(&ana, typed("acme")).unwrap();
        app.clock().advance_days(14);
        let mut erasing = Erasing::default();
        assert!(block_on(step(app.app(), app.id(), &mut erasing)).unwrap());
        for access in [app.token(), app.ingest_key(), &ana] {
            let read = block_on(app.app().read(access, Needs::Right(Right::Read), |_, _| Ok(())));
            assert_eq!(refusal(read), "unauthenticated");
        }
        let looked = rapport_app::session::workplaces(app.app(), owner_of(app), None);
        assert_eq!(block_on(looked).unwrap(), []);
        assert_eq!(app.number("SELECT count(*) FROM webhook WHERE deleted_at IS NULL"), 0);
        // Too late, even for the server's administrator.
        let cancelled = app.write_as(&Access::CommandLine(app.id()), CancelDeletion);
        assert_eq!(refusal(cancelled), "conflict deletion_begun");
    });
}

/// The owner of a company that nobody can read any more.
fn owner_of(app: &TestApp) -> PersonId {
    let access = Access::System(app.id());
    let found = app.app().read(&access, Needs::Server, |snapshot, _| {
        Ok(rapport_store::member::list(snapshot)?.remove(0).person)
    });
    block_on(found).unwrap().reply
}

#[test]
fn a_crash_in_the_middle_is_continued_by_another_node() {
    TestApp::on_both(|app| {
        app.write_as(&session(app, owner(app)), typed("acme")).unwrap();
        fill(app, app.id(), ROWS);
        app.clock().advance_days(14);
        let mut erasing = Erasing::default();
        for _ in 0..25 {
            assert!(block_on(step(app.app(), app.id(), &mut erasing)).unwrap());
        }
        let left = |app: &TestApp| count(app, app.id()).into_values().sum::<i64>();
        assert!(erasing.rows > 0 && left(app) > 0, "in the middle");
        // The process is gone, and with it what it remembered.
        let other = app.another_node();
        assert_eq!(delete_due(&other), [app.id()]);
        assert_eq!(left(app), 0);
        // The first one was only slow.
        let late = block_on(step(app.app(), app.id(), &mut erasing));
        assert!(late.is_err_and(|error| error.is_deleted_company()));
    });
}

#[test]
fn rows_that_a_job_writes_meanwhile_are_deleted_too() {
    TestApp::on_both(|app| {
        app.write_as(&session(app, owner(app)), typed("acme")).unwrap();
        app.clock().advance_days(14);
        let mut erasing = Erasing::default();
        let mut steps = 0;
        while block_on(step(app.app(), app.id(), &mut erasing)).unwrap() {
            steps += 1;
            if steps == 40 {
                // As if a job had written to tables that are empty already.
                fill(app, app.id(), 3);
            }
        }
        assert!(steps > 40, "{steps}");
        assert_eq!(count(app, app.id()).into_values().sum::<i64>(), 0);
    });
}

#[test]
fn logins_go_with_their_last_company() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        let hire = || Hire {
            email: rapport_domain::member::Email::parse("ana@alpha.test").unwrap(),
            name: "Ana".to_owned(),
            role: Role::Member,
            password_hash: "none".to_owned(),
            is_proven: true,
        };
        let ana = app.write_as(&Access::System(app.id()), hire()).unwrap();
        assert_eq!(globex.write_as(&Access::System(globex.id()), hire()).unwrap().person, ana.person);
        app.employ("bo@acme.test", "Bo", Role::Member);
        let theirs = session(&globex, ana.person);
        app.write_as(&session(app, owner(app)), typed("acme")).unwrap();
        app.clock().advance_days(14);
        delete_due(app.app());
        let left = app.number("SELECT count(*) FROM person WHERE email LIKE '%acme.test'");
        assert_eq!((left, app.rows("person")), (0, 2), "Ana and the owner of Globex");
        let alive = block_on(globex.app().read(&theirs, Needs::Right(Right::Read), |_, _| Ok(())));
        assert_eq!(alive.is_ok(), theirs_is_fresh(app), "sessions in other companies stay");
    });
}

/// Whether a session from two weeks ago still counts.
fn theirs_is_fresh(app: &TestApp) -> bool {
    let begun = app.clock().now().plus_days(-14);
    !rapport_domain::session::Limits::default().is_over(begun, begun, app.clock().now())
}

#[test]
fn the_servers_administrator_deletes_at_once() {
    TestApp::on_both(|app| {
        let command_line = Access::CommandLine(app.id());
        let later = app.write_as(&command_line, ScheduleDeletion { is_now: false }).unwrap();
        assert_eq!((later.requested_by, later.at), (None, app.clock().now().plus_days(14)));
        assert_eq!(delete_due(app.app()), []);
        let now = app.write_as(&command_line, ScheduleDeletion { is_now: true }).unwrap();
        assert_eq!(now.at, app.clock().now());
        assert_eq!(delete_due(app.app()), [app.id()]);
        assert_eq!((app.rows("company"), app.rows("person")), (0, 0));
    });
}
