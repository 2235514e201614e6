//! A person's new email address: it takes their password, a link that goes to the new address, and a login as them.

use rapport_app::address_change::{ConfirmAddressChange, RequestAddressChange, read_link};
use rapport_app::mail::{Outgoing, record};
use rapport_app::member::RemoveMember;
use rapport_app::password_reset::SendReset;
use rapport_app::person::ChangePassword;
use rapport_app::session::{LogIn, Proven, read_cookie};
use rapport_app::{Access, Error, Needs, password};
use rapport_domain::audit::Filter;
use rapport_domain::credential::Presented;
use rapport_domain::id::PersonId;
use rapport_domain::mail::Kind;
use rapport_domain::member::{Email, Role};
use rapport_domain::password::Known;
use rapport_domain::right::Right;
use rapport_testkit::app::Hire;
use rapport_testkit::{TestApp, TestCompany, all, block_on};
use serde_json::json;

use crate::mail::{mails, on_both_with_mail, take};
use crate::refusal;

const OLD: &str = "ana@old.test";
const NEW: &str = "ana@new.test";
const PASSWORD: &str = "only Ana knows this one";
const INVALID: &str = "invalid /token invalid_token";

fn email(text: &str) -> Email {
    Email::parse(text).unwrap()
}

fn hire(company: &TestCompany, address: &str, is_proven: bool) -> PersonId {
    let password_hash = password::hash(company.app().services(), PASSWORD).unwrap();
    let hire =
        Hire { email: email(address), name: "Ana".to_owned(), role: Role::Member, password_hash, is_proven };
    company.write_as(&Access::System(company.id()), hire).unwrap().person
}

fn presented(company: &TestCompany, person: PersonId) -> Presented {
    let proven = Proven { person, company: company.id() };
    read_cookie(&block_on(company.app().write(&proven.access(), proven.begin(None))).unwrap()).unwrap()
}

fn request(company: &TestCompany, session: Presented, address: &str) -> Result<(), Error> {
    company.write_as(&Access::Credential(session), RequestAddressChange(email(address)))
}

fn confirm(company: &TestCompany, session: Presented, link: &str) -> Result<Email, Error> {
    let link = read_link(link).expect("a well-formed link");
    company.write_as(&Access::Credential(session), ConfirmAddressChange { link, kept: session })
}

fn secret(mail: &Outgoing) -> String {
    let start = mail.plain.find("rem_").unwrap_or_else(|| panic!("no link in {}", mail.plain));
    mail.plain[start..].split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap().to_owned()
}

/// Asks for a new address; returns the secret of the link.
fn asked(company: &TestCompany, session: Presented) -> String {
    request(company, session, NEW).unwrap();
    let sent = delivered(company);
    let to: Vec<&str> = sent.iter().map(|mail| mail.recipient.as_str()).collect();
    assert_eq!(to, [NEW, OLD]);
    secret(&sent[0])
}

/// Sends what waits.
fn delivered(company: &TestCompany) -> Vec<Outgoing> {
    let sent = take(company);
    for mail in &sent {
        block_on(record(company.app(), company.id(), mail, Ok(()))).unwrap();
    }
    sent
}

fn address(company: &TestCompany, person: PersonId) -> String {
    let found = company.read(move |snapshot| rapport_store::member::get(snapshot, person)).unwrap();
    found.email.as_str().to_owned()
}

fn is_alive(company: &TestCompany, session: Presented) -> bool {
    let access = Access::Credential(session);
    block_on(company.app().read(&access, Needs::Right(Right::Read), |_, _| Ok(()))).is_ok()
}

fn logs_in(company: &TestCompany, address: &str) -> bool {
    let looked = block_on(LogIn::look(company.app(), email(address), None)).unwrap();
    looked.check(PASSWORD).is_some()
}

#[test]
fn the_address_changes_when_its_link_is_used() {
    on_both_with_mail(|app| {
        let ana = hire(app, OLD, false);
        let (here, there) = (presented(app, ana), presented(app, ana));
        app.write(SendReset(ana)).unwrap();
        let reset = take(app).remove(0);
        let link = asked(app, here);
        assert_eq!(address(app, ana), OLD, "asking changes nothing");
        assert!(logs_in(app, OLD) && !logs_in(app, NEW));

        assert_eq!(confirm(app, here, &link).unwrap().as_str(), NEW);
        assert_eq!(address(app, ana), NEW);
        assert!(logs_in(app, NEW) && !logs_in(app, OLD));
        let login = app.read(move |snapshot| rapport_store::member::login(snapshot, ana)).unwrap();
        assert!(login.proven_at.is_some(), "the link proves the address");
        assert!(is_alive(app, here) && !is_alive(app, there), "sessions elsewhere end");
        let start = reset.plain.find("rpw_").unwrap();
        let old = reset.plain[start..].split_whitespace().next().unwrap().to_owned();
        let opened = block_on(rapport_app::password_reset::OpenReset::look(app.app(), &old));
        assert!(opened.is_err(), "open links end");
        let notice = take(app).remove(0);
        assert_eq!(notice.recipient.as_str(), OLD);
        assert!(notice.plain.contains(NEW), "{}", notice.plain);
        let page = app.read(|snapshot| rapport_store::audit::list(snapshot, &Filter::default(), None, 1));
        assert_eq!(page.items[0].action, "person.email_changed");
        assert_eq!(page.items[0].detail, json!({"email": {"from": OLD, "to": NEW}}).to_string());
    });
}

#[test]
fn a_link_works_once_and_for_an_hour() {
    on_both_with_mail(|app| {
        let ana = hire(app, OLD, true);
        let session = presented(app, ana);
        let link = asked(app, session);
        app.clock().advance_seconds(3_600);
        assert_eq!(refusal(confirm(app, session, &link)), INVALID);
        let link = asked(app, session);
        app.clock().advance_seconds(3_599);
        let both = [&link, &link].map(|link| {
            let link = read_link(link).unwrap();
            let access = Access::Credential(session);
            async move { app.app().write(&access, ConfirmAddressChange { link, kept: session }).await }
        });
        let done = block_on(all(both)).into_iter().flatten().count();
        assert_eq!((done, address(app, ana).as_str()), (1, NEW));
    });
}

/// A stranger who gets the mail to a mistyped address has the link, and nothing else.
#[test]
fn a_link_is_worth_nothing_without_the_login_it_is_for() {
    on_both_with_mail(|app| {
        let ana = hire(app, OLD, true);
        let bo = hire(app, "bo@acme.test", true);
        let link = asked(app, presented(app, ana));
        assert_eq!(refusal(confirm(app, presented(app, bo), &link)), INVALID);
        assert_eq!((address(app, ana).as_str(), address(app, bo).as_str()), (OLD, "bo@acme.test"));
        assert_eq!(confirm(app, presented(app, ana), &link).unwrap().as_str(), NEW, "it isn't used up");
    });
}

/// Neither the answer nor anything that the company can see tells whether the new address has a login.
#[test]
fn asking_for_an_address_says_nothing_about_its_owner() {
    on_both_with_mail(|app| {
        let globex = app.company("globex");
        hire(&globex, "known@beta.test", true);
        let ana = presented(app, hire(app, OLD, true));
        let mut seen = Vec::new();
        for address in ["known@beta.test", "free@beta.test"] {
            let (before, logged) = (mails(app).len(), app.rows("audit"));
            request(app, ana, address).unwrap();
            let new = mails(app).split_off(before);
            let listed: Vec<(Kind, String)> = new.into_iter().map(|mail| (mail.kind, mail.subject)).collect();
            let kept = format!("SELECT count(*) FROM address_change WHERE email = '{address}'");
            seen.push((listed, app.rows("audit") - logged, app.number(&kept)));
        }
        assert_eq!(seen[0], seen[1]);
        let sent = take(app);
        let to = |address: &str| sent.iter().find(|mail| mail.recipient.as_str() == address).unwrap();
        assert!(!to("known@beta.test").plain.contains("rem_"), "no link goes there");
        assert!(to("known@beta.test").plain.contains("already has a login"));
        assert!(to("free@beta.test").plain.contains("rem_"));
        // The third is the last within the hour, whichever addresses these were.
        request(app, ana, "known@beta.test").unwrap();
        assert_eq!(refusal(request(app, ana, "free@beta.test")), "too many too_many_mails");
    });
}

#[test]
fn an_address_that_was_proven_meanwhile_is_refused() {
    on_both_with_mail(|app| {
        let ana = hire(app, OLD, true);
        let session = presented(app, ana);
        let link = asked(app, session);
        hire(&app.company("globex"), NEW, true);
        assert_eq!(refusal(confirm(app, session, &link)), "conflict person_known");
        assert_eq!(address(app, ana), OLD);
        // A login that somebody else made for the address and never proved is no obstacle.
        let bo = hire(app, "bo@acme.test", true);
        hire(&app.company("initech"), "free@new.test", false);
        request(app, presented(app, bo), "free@new.test").unwrap();
    });
}

#[test]
fn open_links_end_with_the_password_and_with_the_membership() {
    on_both_with_mail(|app| {
        let ana = hire(app, OLD, true);
        let session = presented(app, ana);
        let link = asked(app, session);
        let login = app.read(move |snapshot| rapport_store::member::login(snapshot, ana)).unwrap();
        let services = app.app().services();
        let known = Known { email: &email(OLD), name: &login.name, company: "Acme" };
        let typed = (PASSWORD, "a new password of hers");
        let change = ChangePassword::check(services, &login, &known, typed, session).unwrap();
        app.write_as(&Access::Credential(session), change).unwrap();
        assert_eq!(refusal(confirm(app, session, &link)), INVALID);
        assert_eq!(delivered(app).len(), 1, "a notice of the new password");
        asked(app, session);
        app.write(RemoveMember(ana)).unwrap();
        assert_eq!(app.rows("address_change"), 0);
    });
}

#[test]
fn the_notice_comes_however_much_other_mail_there_was() {
    on_both_with_mail(|app| {
        let ana = hire(app, OLD, true);
        for _ in 0..3 {
            app.write(SendReset(ana)).unwrap();
        }
        assert_eq!(refusal(app.write(SendReset(ana))), "too many too_many_mails");
        request(app, presented(app, ana), NEW).unwrap();
        let notices = mails(app).into_iter().filter(|mail| mail.kind == Kind::AddressNotice);
        assert_eq!(notices.map(|mail| mail.recipient.as_str().to_owned()).collect::<Vec<_>>(), [OLD]);
    });
}

#[test]
fn what_cannot_be_is_refused() {
    on_both_with_mail(|app| {
        let ana = presented(app, hire(app, OLD, true));
        assert_eq!(refusal(request(app, ana, "Ana@Old.test")), "invalid /email unchanged");
        assert_eq!(
            refusal(app.write(RequestAddressChange(email(NEW)))),
            "unauthenticated",
            "a token is no person"
        );
        assert_eq!(app.rows("mail"), 0);
        assert!(read_link("rem_x").is_none());
    });
    TestApp::on_both(|app| {
        let ana = presented(app, hire(app, OLD, true));
        assert_eq!(refusal(request(app, ana, NEW)), "conflict mail_not_configured");
        assert_eq!(app.rows("address_change"), 0);
    });
}
