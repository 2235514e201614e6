//! Invitations: one per address, usable once, valid for a week, and never readable in the database.

use rapport_app::invitation::{AcceptInvitation, Invite, Invited, Offer, ResendInvitation, RevokeInvitation};
use rapport_app::{App, Error, Origin, password};
use rapport_domain::device::Device;
use rapport_domain::invitation::{Acceptance, Way};
use rapport_domain::mail::{SECRET_PLACE, State};
use rapport_domain::member::{Email, Member, Role};
use rapport_domain::request_id::RequestId;
use rapport_testkit::{TestApp, TestCompany, all, block_on};

use crate::mail::{BASE_URL, mails, member, on_both_with_mail, take};
use crate::refusal;

fn invite(email: &str, role: Role) -> Invite {
    Invite { email: Email::parse(email).unwrap(), name: None, role }
}

fn open(company: &TestCompany) -> Vec<String> {
    let open = company.read(rapport_store::invitation::list);
    open.into_iter().map(|invitation| invitation.email.as_str().to_owned()).collect()
}

fn token_in(link: &str) -> String {
    let start = link.find("rjn_").unwrap_or_else(|| panic!("no link in {link}"));
    link[start..].split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap().to_owned()
}

/// The token of an invitation that was passed on by hand.
fn by_hand(company: &TestCompany, email: &str, role: Role) -> String {
    token_in(&company.write(invite(email, role)).unwrap().link.expect("a link"))
}

fn answer(app: &App, token: &str, password: &str) -> Result<AcceptInvitation, Error> {
    let (token, name, password) = (token.to_owned(), Some("Ana".to_owned()), password.to_owned());
    block_on(Offer::look(app, &token))?
        .answer(app.services(), Acceptance { token, name, password, login: None })
}

fn accept(company: &TestCompany, token: &str, password: &str) -> Result<Member, Error> {
    let command = answer(company.app(), token, password)?;
    let access = rapport_app::Access::System(company.id());
    let (request, device) = (RequestId::numbered(1, 1), Device::default());
    let origin = Origin { address: [192, 0, 2, 7].into(), request, device };
    block_on(company.app().write_from(&access, Some(origin), command))
}

const INVALID: &str = "invalid /token invalid_token";

#[test]
fn the_link_comes_by_mail_and_makes_its_holder_a_member() {
    on_both_with_mail(|app| {
        let Invited { invitation, link } = app.write(invite("Ana@acme.test", Role::Admin)).unwrap();
        assert_eq!((invitation.email.as_str(), link), ("ana@acme.test", None), "the inviter does not see it");
        let sent = take(app).remove(0);
        assert_eq!(sent.recipient.as_str(), "ana@acme.test");
        let token = token_in(&sent.plain);
        assert!(sent.plain.contains(&format!("{BASE_URL}/invitation/{token}")), "{}", sent.plain);
        assert!(sent.html.contains(&format!("href=\"{BASE_URL}/invitation/{token}\"")), "{}", sent.html);
        let offer = block_on(Offer::look(app.app(), &token)).unwrap();
        assert_eq!(
            (offer.company.as_str(), offer.email.as_str(), offer.way()),
            ("acme", "ana@acme.test", Some(Way::New))
        );
        let joined = accept(app, &token, "a good password").unwrap();
        assert_eq!((joined.name.as_str(), joined.role), ("Ana", Role::Admin));
        assert_eq!(refusal(accept(app, &token, "a good password")), INVALID, "it works only once");
        assert!(open(app).is_empty());
        let login = app.read(move |snapshot| rapport_store::member::login(snapshot, joined.person));
        assert!(password::verify("a good password", &login.unwrap().password_hash));
    });
}

#[test]
fn no_usable_secret_is_kept_in_the_clear_and_none_at_all_once_it_is_sent() {
    on_both_with_mail(|app| {
        app.write(invite("ana@acme.test", Role::Member)).unwrap();
        let kept =
            |condition: &str| app.number(&format!("SELECT count(*) FROM mail_content WHERE {condition}"));
        assert_eq!(kept("plain LIKE '%rjn!_%' ESCAPE '!' OR html LIKE '%rjn!_%' ESCAPE '!'"), 0);
        assert_eq!(kept(&format!("plain LIKE '%{SECRET_PLACE}%'")), 1);
        assert_eq!(kept("secret IS NOT NULL"), 1, "encrypted while it waits");
        let sent = take(app).remove(0);
        block_on(rapport_app::mail::record(app.app(), app.id(), &sent, Ok(()))).unwrap();
        assert_eq!(kept("secret IS NOT NULL"), 0);
        assert!(accept(app, &token_in(&sent.plain), "a good password").is_ok());
    });
}

#[test]
fn without_mail_the_link_is_answered_to_be_handed_over() {
    TestApp::on_both(|app| {
        let token = by_hand(app, "ana@acme.test", Role::Member);
        assert_eq!(app.rows("mail"), 0);
        assert_eq!(accept(app, &token, "a good password").unwrap().role, Role::Member);
    });
}

#[test]
fn it_holds_for_seven_days() {
    TestApp::on_both(|app| {
        let token = by_hand(app, "ana@acme.test", Role::Member);
        app.clock().advance_seconds(7 * 86_400 - 1);
        assert!(block_on(Offer::look(app.app(), &token)).is_ok());
        app.clock().advance_seconds(1);
        assert_eq!(refusal(accept(app, &token, "a good password")), INVALID);
        // An expired invitation doesn't prevent another one.
        let fresh = by_hand(app, "ana@acme.test", Role::Admin);
        assert!(accept(app, &fresh, "a good password").is_ok());
    });
}

#[test]
fn an_address_has_one_and_a_member_none() {
    TestApp::on_both(|app| {
        by_hand(app, "ana@acme.test", Role::Member);
        assert_eq!(refusal(app.write(invite("ANA@acme.test", Role::Admin))), "conflict already_invited");
        member(app, "bo@acme.test", Role::Member);
        assert_eq!(refusal(app.write(invite("bo@acme.test", Role::Member))), "conflict already_a_member");
        assert_eq!(open(app), ["ana@acme.test"]);
        assert!(open(&app.company("globex")).is_empty());
    });
}

#[test]
fn sending_it_again_makes_the_link_before_worth_nothing() {
    on_both_with_mail(|app| {
        let id = app.write(invite("ana@acme.test", Role::Member)).unwrap().invitation.id;
        let first = token_in(&take(app)[0].plain);
        app.clock().advance_days(6);
        let resent = app.write(ResendInvitation(id)).unwrap();
        assert_eq!(resent.invitation.expires_at, app.clock().now().plus_days(7));
        let again = take(app);
        assert_eq!(again.len(), 1, "the earlier mail is no longer sent");
        assert_eq!(mails(app)[0].state, State::Failed);
        let second = token_in(&again[0].plain);
        assert_eq!(refusal(accept(app, &first, "a good password")), INVALID);
        assert!(accept(app, &second, "a good password").is_ok());
        assert_eq!(refusal(app.write(ResendInvitation(id))), "no such invitation");
    });
}

#[test]
fn a_revoked_one_leads_nowhere() {
    on_both_with_mail(|app| {
        let id = app.write(invite("ana@acme.test", Role::Member)).unwrap().invitation.id;
        let token = token_in(&take(app)[0].plain);
        app.write(RevokeInvitation(id)).unwrap();
        assert_eq!(refusal(accept(app, &token, "a good password")), INVALID);
        assert_eq!(refusal(app.write(RevokeInvitation(id))), "no such invitation");
        assert_eq!(app.number("SELECT count(*) FROM mail_content WHERE secret IS NOT NULL"), 0);
    });
}

#[test]
fn the_owner_of_an_address_joins_with_their_own_password_and_name() {
    on_both_with_mail(|app| {
        let globex = app.company("globex");
        globex.write(invite("ana@acme.test", Role::Owner)).unwrap();
        let there = accept(&globex, &token_in(&take(&globex)[0].plain), "their own password").unwrap();
        app.write(invite("ana@acme.test", Role::Member)).unwrap();
        let token = token_in(&take(app)[0].plain);
        assert_eq!(block_on(Offer::look(app.app(), &token)).unwrap().way(), Some(Way::Existing));
        assert_eq!(refusal(accept(app, &token, "another password")), "invalid /password wrong_password");
        let here = accept(app, &token, "their own password").unwrap();
        assert_eq!((here.person, here.role), (there.person, Role::Member));
        assert_eq!(app.rows("person"), 3, "two owners and one Ana");
    });
}

#[test]
fn a_password_of_a_new_person_is_ten_to_256_characters() {
    TestApp::on_both(|app| {
        let token = by_hand(app, "ana@acme.test", Role::Member);
        assert_eq!(refusal(accept(app, &token, "too short")), "invalid /password too_short");
        assert_eq!(refusal(accept(app, &token, &"x".repeat(257))), "invalid /password too_long");
        assert_eq!(app.rows("person"), 1);
        assert!(accept(app, &token, "kx7!pq2?zm").is_ok());
    });
}

#[test]
fn two_who_accept_at_once_make_one_member() {
    TestApp::on_both(|app| {
        let token = by_hand(app, "ana@acme.test", Role::Member);
        let access = rapport_app::Access::System(app.id());
        let commands: Vec<_> =
            (0..4).map(|_| answer(app.app(), &token, "a good password").unwrap()).collect();
        let answers = block_on(all(commands.into_iter().map(|command| app.app().write(&access, command))));
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "{answers:?}");
        assert_eq!((app.rows("person"), app.rows("member")), (2, 2));
    });
}

#[test]
fn nobody_invites_above_themselves() {
    TestApp::on_both(|app| {
        let admin = app.token_of(Role::Admin);
        let forbidden = "forbidden role_required";
        assert_eq!(refusal(app.write_as(&admin, invite("ana@acme.test", Role::Owner))), forbidden);
        let id = app.write(invite("ana@acme.test", Role::Owner)).unwrap().invitation.id;
        assert_eq!(refusal(app.write_as(&admin, ResendInvitation(id))), forbidden);
        assert_eq!(refusal(app.write_as(&admin, RevokeInvitation(id))), forbidden);
        let member = app.token_of(Role::Member);
        assert_eq!(refusal(app.write_as(&member, invite("bo@acme.test", Role::Member))), forbidden);
    });
}

#[test]
fn what_is_no_token_of_ours_is_refused_alike() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        let token = by_hand(app, "ana@acme.test", Role::Member);
        let flipped = if token.ends_with('0') { '1' } else { '0' };
        let mistyped = format!("{}{flipped}", &token[..token.len() - 1]);
        for bad in ["", "rjn_", &mistyped, app.token_text(), globex.ingest_key_text()] {
            assert_eq!(refusal(accept(app, bad, "a good password")), INVALID, "{bad}");
        }
        // Well-formed, but of a company that doesn't exist.
        let other = rapport_domain::credential::issue(
            rapport_domain::credential::Kind::Invitation,
            rapport_domain::id::CompanyId(999),
            [7; 20],
        );
        assert_eq!(refusal(accept(app, &other.text, "a good password")), INVALID);
    });
}
