//! Members and their roles: there is always an owner, and nobody exceeds their own role.

use rapport_app::Error;
use rapport_app::member::{ChangeMember, RemoveMember};
use rapport_domain::id::PersonId;
use rapport_domain::member::{Member, Role};
use rapport_testkit::{TestApp, TestCompany, all, block_on};

use crate::refusal;

fn employ(company: &TestCompany, email: &str, role: Role) -> PersonId {
    company.employ(email, "A Person", role).person
}

fn list(company: &TestCompany) -> Vec<Member> {
    company.read(rapport_store::member::list)
}

fn role(person: PersonId, role: Role) -> ChangeMember {
    ChangeMember { person, role: Some(role), active: None }
}

fn active(person: PersonId, active: bool) -> ChangeMember {
    ChangeMember { person, role: None, active: Some(active) }
}

#[test]
fn the_first_member_is_the_owner_and_others_join_with_a_role() {
    TestApp::on_both(|app| {
        let owner = list(app).remove(0);
        assert_eq!((owner.email.as_str(), owner.role), ("owner@acme.test", Role::Owner));
        app.clock().advance_seconds(1);
        let ana = app.employ("Ana@acme.test", "Ana", Role::Member);
        assert_eq!(ana.email.as_str(), "ana@acme.test");
        assert_eq!(list(app), [owner, ana]);
    });
}

#[test]
fn the_last_owner_stays() {
    TestApp::on_both(|app| {
        let owner = list(app).remove(0).person;
        let last = "conflict last_owner";
        assert_eq!(refusal(app.write(RemoveMember(owner))), last);
        assert_eq!(refusal(app.write(role(owner, Role::Admin))), last);
        assert_eq!(refusal(app.write(active(owner, false))), last);
        let second = employ(app, "two@acme.test", Role::Owner);
        app.write(active(second, false)).unwrap();
        assert_eq!(refusal(app.write(RemoveMember(owner))), last, "a deactivated owner doesn't count");
        app.write(active(second, true)).unwrap();
        assert_eq!(app.write(role(owner, Role::Member)).unwrap().role, Role::Member);
        assert_eq!(refusal(app.write(RemoveMember(second))), last);
        assert_eq!(list(app).iter().filter(|member| member.role == Role::Owner).count(), 1);
    });
}

#[test]
fn owners_who_demote_each_other_at_once_do_not_both_succeed() {
    TestApp::on_both(|app| {
        let one = list(app).remove(0).person;
        for round in 0..5 {
            let two = employ(app, &format!("owner-{round}@acme.test"), Role::Owner);
            let owners: Vec<PersonId> = list(app)
                .iter()
                .filter(|member| member.role == Role::Owner)
                .map(|member| member.person)
                .collect();
            assert_eq!(owners.len(), 2, "{one} and {two}");
            let demotions =
                owners.iter().map(|person| app.app().write(app.token(), role(*person, Role::Member)));
            let done = block_on(all(demotions)).into_iter().flatten().count();
            let left = list(app).into_iter().filter(|member| member.role == Role::Owner).count();
            assert_eq!((done, left), (1, 1));
        }
    });
}

#[test]
fn an_admin_manages_members_but_no_owner() {
    TestApp::on_both(|app| {
        let owner = list(app).remove(0).person;
        let admin = app.token_of(Role::Admin);
        let ana = employ(app, "ana@acme.test", Role::Member);
        assert_eq!(app.write_as(&admin, role(ana, Role::Admin)).unwrap().role, Role::Admin);
        let forbidden = "forbidden role_required";
        assert_eq!(refusal(app.write_as(&admin, role(ana, Role::Owner))), forbidden);
        for change in [role(owner, Role::Member), active(owner, false)] {
            assert_eq!(refusal(app.write_as(&admin, change)), forbidden);
        }
        assert_eq!(refusal(app.write_as(&admin, RemoveMember(owner))), forbidden);
        assert!(app.write_as(&admin, RemoveMember(ana)).is_ok());
        assert_eq!(list(app).len(), 1);
    });
}

#[test]
fn a_member_goes_away_and_comes_back() {
    TestApp::on_both(|app| {
        let ana = employ(app, "ana@acme.test", Role::Member);
        let since = app.clock().now();
        assert_eq!(app.write(active(ana, false)).unwrap().deactivated_at, Some(since));
        app.clock().advance_days(1);
        assert_eq!(
            app.write(active(ana, false)).unwrap().deactivated_at,
            Some(since),
            "it keeps the first time"
        );
        assert_eq!(app.write(role(ana, Role::Admin)).unwrap().deactivated_at, Some(since));
        assert_eq!(app.write(active(ana, true)).unwrap().deactivated_at, None);
        let found = app.read(move |snapshot| rapport_store::member::get(snapshot, ana)).unwrap();
        assert_eq!((found.role, found.deactivated_at), (Role::Admin, None));
    });
}

#[test]
fn who_is_no_member_is_not_found() {
    TestApp::on_both(|app| {
        let nobody = PersonId::from_bytes([3; 16]);
        let answers: [Result<(), Error>; 2] =
            [app.write(RemoveMember(nobody)), app.write(role(nobody, Role::Member)).map(|_| ())];
        for answer in answers {
            assert_eq!(refusal(answer), "no such member");
        }
    });
}
