//! The weekly digest: once per company and ISO week, across restarts and with any number of nodes; sent to
//! every active member; kept to read if mail isn't configured.

use rapport_app::digest::{Made, make_due, preview, send_now};
use rapport_app::member::ChangeMember;
use rapport_app::{App, Error};
use rapport_domain::digest::{Audience, Week};
use rapport_domain::mail::Kind;
use rapport_domain::member::Role;
use rapport_domain::time::Time;
use rapport_testkit::{TestApp, TestCompany, all, block_on};
use serde_json::json;

use crate::mail::{mails, member, on_both_with_mail, take};
use crate::refusal;

/// Creates what is due, as a node that has just started.
fn look(app: &App) {
    block_on(make_due(app, &mut Made::new())).expect("looking for digests");
}

fn at(app: &TestApp, time: &str) {
    app.clock().set(Time::parse(time).unwrap());
}

/// The weeks of the existing digests, latest first.
fn weeks(company: &TestCompany) -> Vec<String> {
    let page = company.read(|snapshot| rapport_store::digest::list(snapshot, None, 100));
    page.items.into_iter().map(|digest| digest.week.to_string()).collect()
}

fn recipients(company: &TestCompany) -> Vec<String> {
    mails(company).into_iter().map(|mail| mail.recipient.as_str().to_owned()).collect()
}

// The test clock starts on Monday 5 January 2026 at 09:00 UTC: an hour after the default time.

#[test]
fn a_new_company_gets_its_first_digest_at_the_next_moment() {
    on_both_with_mail(|app| {
        look(app.app());
        assert!(weeks(app).is_empty(), "this week's time passed before the company existed");
        at(app, "2026-01-12T07:59:59Z");
        look(app.app());
        assert!(weeks(app).is_empty());
        at(app, "2026-01-12T08:00:00Z");
        look(app.app());
        assert_eq!(weeks(app), ["2026-W03"]);
        assert_eq!(recipients(app), ["owner@acme.test"]);
        assert_eq!(mails(app)[0].kind, Kind::Digest);
    });
}

#[test]
fn it_is_made_once_a_week_across_restarts() {
    on_both_with_mail(|app| {
        at(app, "2026-01-12T08:00:00Z");
        for _ in 0..5 {
            look(app.app());
            app.clock().advance_seconds(3_600);
        }
        let restarted = app.another_node();
        look(&restarted);
        assert_eq!((weeks(app).len(), mails(app).len()), (1, 1));
        at(app, "2026-01-19T08:00:01Z");
        look(&restarted);
        look(app.app());
        assert_eq!(weeks(app), ["2026-W04", "2026-W03"]);
        assert_eq!(mails(app).len(), 2);
    });
}

#[test]
fn nodes_that_look_at_once_make_one() {
    on_both_with_mail(|app| {
        let other = app.another_node();
        for number in 0..3 {
            member(app, &format!("m{number}@acme.test"), Role::Member);
        }
        at(app, "2026-01-12T08:00:00Z");
        let looking = |node: App| async move { make_due(&node, &mut Made::new()).await };
        let nodes = [app.app().clone(), other.clone(), app.app().clone(), other];
        for looked in block_on(all(nodes.map(looking))) {
            looked.unwrap();
        }
        assert_eq!((weeks(app).len(), mails(app).len()), (1, 4), "one digest, one mail per member");
    });
}

#[test]
fn changing_the_weekday_after_this_weeks_makes_no_second() {
    on_both_with_mail(|app| {
        at(app, "2026-01-12T08:00:00Z");
        look(app.app());
        app.set(json!({"digest_weekday": "wednesday"}));
        at(app, "2026-01-14T08:00:00Z");
        look(app.app());
        assert_eq!(weeks(app), ["2026-W03"]);
        at(app, "2026-01-21T08:00:00Z");
        look(app.app());
        assert_eq!(weeks(app), ["2026-W04", "2026-W03"]);
    });
}

#[test]
fn what_was_missed_by_a_change_of_schedule_is_not_made_up_for() {
    on_both_with_mail(|app| {
        app.set(json!({"digest_weekday": "friday"}));
        at(app, "2026-01-14T12:00:00Z");
        app.set(json!({"digest_weekday": "tuesday"}));
        look(app.app());
        assert!(weeks(app).is_empty(), "Tuesday's time had passed when Tuesday was chosen");
        at(app, "2026-01-20T08:00:00Z");
        look(app.app());
        assert_eq!(weeks(app), ["2026-W04"]);
    });
}

#[test]
fn a_process_that_was_away_sends_it_late_but_not_too_late() {
    on_both_with_mail(|app| {
        at(app, "2026-01-14T20:00:00Z");
        look(app.app());
        assert_eq!(weeks(app), ["2026-W03"], "two and a half days late");
        at(app, "2026-01-22T09:00:00Z");
        look(app.app());
        assert_eq!(weeks(app), ["2026-W03"], "three days are too late");
        app.set(json!({"digest_weekday": "sunday"}));
        at(app, "2026-01-26T01:00:00Z");
        look(app.app());
        assert_eq!(weeks(app), ["2026-W04", "2026-W03"], "Sunday's, during the night to Monday");
    });
}

#[test]
fn eight_is_eight_in_the_companys_zone_across_the_change_of_clocks() {
    on_both_with_mail(|app| {
        app.set(json!({"time_zone": "Europe/Berlin"}));
        for (before, moment, week) in [
            ("2026-03-23T06:59:59Z", "2026-03-23T07:00:00Z", "2026-W13"),
            ("2026-03-30T05:59:59Z", "2026-03-30T06:00:00Z", "2026-W14"),
        ] {
            let known = weeks(app).len();
            at(app, before);
            look(app.app());
            assert_eq!(weeks(app).len(), known, "{before}");
            at(app, moment);
            look(app.app());
            assert_eq!(weeks(app)[0], week);
        }
        // In a zone further east, this week's time has long passed: no second digest.
        app.set(json!({"time_zone": "Pacific/Auckland"}));
        look(app.app());
        assert_eq!(weeks(app).len(), 2);
    });
}

#[test]
fn switched_off_it_is_not_made() {
    on_both_with_mail(|app| {
        app.set(json!({"digest_enabled": false}));
        at(app, "2026-01-12T09:00:00Z");
        look(app.app());
        app.set(json!({"digest_enabled": true}));
        look(app.app());
        assert!(weeks(app).is_empty(), "enabling it doesn't send one");
        at(app, "2026-01-19T09:00:00Z");
        look(app.app());
        assert_eq!(weeks(app), ["2026-W04"]);
    });
}

#[test]
fn it_goes_to_every_active_member_of_its_own_company() {
    on_both_with_mail(|app| {
        let globex = app.company("globex");
        member(app, "ana@acme.test", Role::Member);
        let away = member(app, "away@acme.test", Role::Admin);
        app.write(ChangeMember { person: away, role: None, active: Some(false) }).unwrap();
        at(app, "2026-01-12T08:00:00Z");
        look(app.app());
        let mut to = recipients(app);
        to.sort_unstable();
        assert_eq!(to, ["ana@acme.test", "owner@acme.test"]);
        assert_eq!(recipients(&globex), ["owner@globex.test"]);
    });
}

#[test]
fn it_names_the_overdue_most_overdue_first_with_a_link_to_each() {
    on_both_with_mail(|app| {
        let early =
            app.upsert(json!({"imported_id": "a", "name": "<b>Nordlys</b>\r\nAS", "status": "customer"}));
        app.clock().advance_days(3);
        app.upsert(json!({"imported_id": "b", "name": "Второй 🎉", "status": "in_trial"}));
        app.upsert(json!({"imported_id": "c", "name": "Prospect", "status": "prospect"}));
        app.clock().advance_days(46);
        app.upsert(json!({"imported_id": "d", "name": "Fresh", "status": "customer"}));
        at(app, "2026-02-23T10:00:00Z");
        look(app.app());
        let mail = take(app).remove(0);
        assert_eq!(mail.subject, "acme: 2 clients are overdue for contact");
        let (first, second) = (mail.plain.find("Nordlys").unwrap(), mail.plain.find("Второй").unwrap());
        assert!(first < second, "{}", mail.plain);
        assert!(mail.plain.contains("- <b>Nordlys</b> AS: 7 days overdue"), "{}", mail.plain);
        assert!(mail.plain.contains("- Второй 🎉: 4 days overdue"), "{}", mail.plain);
        let link = format!("https://crm.acme.test/accounts/{}", early.account.id);
        assert!(mail.plain.contains(&link) && mail.html.contains(&format!("href=\"{link}\"")));
        assert!(!mail.html.contains("<b>") && mail.html.contains("Nordlys"), "{}", mail.html);
        for text in [&mail.plain, &mail.html] {
            assert!(!text.contains("Prospect") && !text.contains("Fresh"), "{text}");
        }
    });
}

#[test]
fn with_nobody_overdue_it_says_so() {
    on_both_with_mail(|app| {
        at(app, "2026-01-12T08:00:00Z");
        look(app.app());
        let mail = take(app).remove(0);
        assert!(mail.plain.contains("Nobody is overdue for contact."), "{}", mail.plain);
        assert!(mail.html.contains("Nobody is overdue for contact."), "{}", mail.html);
    });
}

#[test]
fn without_mail_it_is_kept_to_read() {
    TestApp::on_both(|app| {
        at(app, "2026-01-12T08:00:00Z");
        look(app.app());
        assert_eq!((weeks(app), app.rows("mail")), (vec!["2026-W03".to_owned()], 0));
        let kept = app.read(|snapshot| {
            let week = Week::parse("2026-W03").unwrap();
            let digest = rapport_store::digest::get(snapshot, week)?.unwrap();
            rapport_store::mail::content(snapshot, digest.content)
        });
        assert!(kept.unwrap().plain.contains("Nobody is overdue"));
    });
}

#[test]
fn it_can_be_seen_before_and_sent_on_request_beside_the_weekly_one() {
    on_both_with_mail(|app| {
        let ana = member(app, "ana@acme.test", Role::Member);
        let reader = app.token_of(Role::Member);
        let seen = block_on(preview(app.app(), &reader)).unwrap();
        assert_eq!((seen.subject.as_str(), seen.overdue), ("acme: nobody is overdue for contact", 0));
        assert_eq!(app.rows("mail_content"), 0, "a preview stores nothing");
        let send = |audience| block_on(send_now(app.app(), app.token(), None, audience));
        assert_eq!(send(Audience::Member(ana)).unwrap(), 1);
        assert_eq!(recipients(app), ["ana@acme.test"]);
        assert_eq!(send(Audience::Everyone).unwrap(), 2);
        assert!(weeks(app).is_empty(), "it doesn't count as the weekly one");
        let nobody = rapport_domain::id::PersonId::from_bytes([9; 16]);
        assert_eq!(refusal(send(Audience::Member(nobody))), "no such member");
        let refused: Result<usize, Error> = block_on(send_now(app.app(), &reader, None, Audience::Everyone));
        assert_eq!(refusal(refused), "forbidden role_required");
        at(app, "2026-01-12T08:00:00Z");
        look(app.app());
        assert_eq!(weeks(app), ["2026-W03"]);
    });
}
