//! The threats of `docs/identity.md`: companies that don't trust each other share a service, and any of them may know an
//! address of another's people.

use rapport_app::invitation::{Invite, Offer};
use rapport_app::member::{ChangeMember, RemoveMember};
use rapport_app::password_reset::{OpenReset, ProveAddress, RequestReset, SendReset, answer_requests};
use rapport_app::session::{LogIn, Proven, read_cookie};
use rapport_app::{Access, Error, Needs, password};
use rapport_domain::id::CompanyId;
use rapport_domain::invitation::{Acceptance, Way};
use rapport_domain::member::{Email, Member, Role};
use rapport_domain::right::Right;
use rapport_testkit::{TestApp, TestCompany, block_on};

use crate::mail::{on_both_with_mail, take};
use crate::refusal;

const ANA: &str = "ana@alpha.test";
/// A password that only the owner of the address knows.
const HERS: &str = "only Ana knows this one";
/// A password that somebody else knows, such as an admin who opened the link they made.
const KNOWN: &str = "the admin of B chose it";

fn email() -> Email {
    Email::parse(ANA).unwrap()
}

fn secret_in(text: &str, prefix: &str) -> String {
    let start = text.find(prefix).unwrap_or_else(|| panic!("no {prefix} in {text}"));
    text[start..].split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap().to_owned()
}

/// Invites Ana; returns the secret of the link, which was mailed or handed over.
fn invite(company: &TestCompany) -> String {
    let invited = company.write(Invite { email: email(), name: None, role: Role::Member }).unwrap();
    match invited.link {
        Some(link) => secret_in(&link, "rjn_"),
        None => secret_in(&take(company).remove(0).plain, "rjn_"),
    }
}

fn accept(company: &TestCompany, token: &str, password: &str, login: Option<Way>) -> Result<Member, Error> {
    let (token, password) = (token.to_owned(), password.to_owned());
    let offer = block_on(Offer::look(company.app(), &token))?;
    let access = offer.access();
    let accept = offer.answer(company.app().services(), Acceptance { token, name: None, password, login })?;
    block_on(company.app().write(&access, accept))
}

fn join(company: &TestCompany, password: &str) -> Member {
    accept(company, &invite(company), password, None).unwrap()
}

/// The company that a password opens.
fn log_in(company: &TestCompany, project: Option<&str>, password: &str) -> Option<CompanyId> {
    let looked = block_on(LogIn::look(company.app(), email(), project.map(str::to_owned))).unwrap();
    looked.check(password).map(|proven| proven.company)
}

fn session(company: &TestCompany, member: &Member) -> Access {
    let proven = Proven { person: member.person, company: company.id() };
    let cookie = block_on(company.app().write(&proven.access(), proven.begin(None))).unwrap();
    Access::Credential(read_cookie(&cookie).unwrap())
}

fn is_alive(company: &TestCompany, session: &Access) -> bool {
    block_on(company.app().read(session, Needs::Right(Right::Read), |_, _| Ok(()))).is_ok()
}

fn use_reset(company: &TestCompany, token: &str, chosen: &str) -> Result<(), Error> {
    let open = block_on(OpenReset::look(company.app(), token))?;
    let access = open.access();
    let hash = password::hash(company.app().services(), chosen)?;
    block_on(company.app().write(&access, open.confirm(hash)))
}

#[test]
fn a_login_that_another_company_made_never_opens_ours() {
    TestApp::on_both(|app| {
        let b = app.company("b");
        let squatted = join(&b, KNOWN);
        b.write(RemoveMember(squatted.person)).unwrap();
        // We invite the same address. Its owner accepts.
        join(app, HERS);
        assert_eq!(log_in(app, None, KNOWN), None);
        assert_eq!(log_in(app, None, HERS), Some(app.id()));
    });
}

#[test]
fn a_handed_over_login_is_confined_to_its_company() {
    TestApp::on_both(|app| {
        let b = app.company("b");
        let there = join(&b, KNOWN);
        let token = invite(app);
        let refused = accept(app, &token, KNOWN, Some(Way::Existing));
        assert_eq!(refusal(refused), "invalid /password wrong_password");
        let here = accept(app, &token, HERS, Some(Way::New)).unwrap();
        assert_ne!(here.person, there.person);
        assert_eq!(log_in(app, Some("b"), KNOWN), Some(b.id()));
        assert_eq!(log_in(app, Some("acme"), HERS), Some(app.id()));
        assert_eq!([log_in(app, Some("acme"), KNOWN), log_in(app, Some("b"), HERS)], [None, None]);
    });
}

#[test]
fn a_squatted_address_does_not_block_its_owner() {
    on_both_with_mail(|app| {
        let b = app.company("b");
        b.employ(ANA, "Not Ana", Role::Member);
        let hers = join(app, HERS);
        let login = app.read(move |snapshot| rapport_store::member::login(snapshot, hers.person));
        assert!(login.unwrap().proven_at.is_some(), "the link came by mail");
        assert_eq!(log_in(app, None, HERS), Some(app.id()));
        assert_eq!(app.rows("member"), 4, "two owners, the squatted login and Ana");
    });
}

#[test]
fn joining_needs_the_password_of_the_owner_of_the_address() {
    on_both_with_mail(|app| {
        let b = app.company("b");
        let hers = join(app, HERS);
        let token = invite(&b);
        // Who reads her mail still isn't her.
        assert_eq!(refusal(accept(&b, &token, KNOWN, Some(Way::New))), "invalid /password wrong_password");
        assert_eq!(accept(&b, &token, HERS, None).unwrap().person, hers.person);
    });
}

#[test]
fn joining_another_company_ends_sessions_and_links() {
    on_both_with_mail(|app| {
        let b = app.company("b");
        let hers = join(app, HERS);
        let open = session(app, &hers);
        app.write(SendReset(hers.person)).unwrap();
        let reset = secret_in(&take(app).remove(0).plain, "rpw_");
        let token = invite(&b);
        assert!(is_alive(app, &open));
        accept(&b, &token, HERS, None).unwrap();
        assert!(!is_alive(app, &open), "it could switch to the other company");
        assert_eq!(refusal(use_reset(app, &reset, KNOWN)), "invalid /token invalid_token");
    });
}

#[test]
fn a_removed_or_deactivated_member_stays_out_when_they_come_back() {
    TestApp::on_both(|app| {
        let ana = join(app, HERS);
        let before = session(app, &ana);
        let link = app.write(SendReset(ana.person)).unwrap().expect("a link");
        let active = |active| ChangeMember { person: ana.person, role: None, active: Some(active) };
        app.write(active(false)).unwrap();
        app.write(active(true)).unwrap();
        assert!(!is_alive(app, &before), "a session from before");
        assert_eq!(refusal(use_reset(app, &secret_in(&link, "rpw_"), KNOWN)), "invalid /token invalid_token");
        let again = session(app, &ana);
        app.write(RemoveMember(ana.person)).unwrap();
        assert!(!is_alive(app, &again));
        assert_eq!(log_in(app, None, HERS), None);
        // A new invitation makes a new login.
        let back = join(app, "a password of her own");
        assert_ne!(back.person, ana.person);
        assert!(!is_alive(app, &again), "the old login is not hers any more");
        assert_eq!(
            [log_in(app, None, HERS), log_in(app, None, "a password of her own")],
            [None, Some(app.id())]
        );
    });
}

#[test]
fn nobody_is_handed_a_link_to_a_login_that_opens_more_than_their_company() {
    TestApp::on_both(|app| {
        let confined = app.employ("bo@acme.test", "Bo", Role::Member);
        assert!(app.write(SendReset(confined.person)).unwrap().is_some());
        let hire = rapport_testkit::app::Hire {
            email: email(),
            name: "Ana".to_owned(),
            role: Role::Member,
            password_hash: "none".to_owned(),
            is_proven: true,
        };
        let proven = block_on(app.app().write(&Access::System(app.id()), hire)).unwrap();
        assert_eq!(refusal(app.write(SendReset(proven.person))), "conflict mail_not_configured");
    });
}

#[test]
fn a_mailed_link_proves_the_address_and_throws_a_squatter_out() {
    on_both_with_mail(|app| {
        let squatted = app.employ(ANA, "Not Ana", Role::Member);
        let theirs = session(app, &squatted);
        block_on(app.app().write(&theirs, ProveAddress)).unwrap();
        // The mail goes to Ana, who takes the login over.
        let mail = take(app).remove(0);
        assert_eq!(mail.recipient.as_str(), ANA);
        use_reset(app, &secret_in(&mail.plain, "rpw_"), HERS).unwrap();
        assert!(!is_alive(app, &theirs));
        let login = app.read(move |snapshot| rapport_store::member::login(snapshot, squatted.person));
        assert!(login.unwrap().proven_at.is_some());
        assert_eq!(log_in(app, None, HERS), Some(app.id()));
    });
}

#[test]
fn a_second_login_of_a_proven_address_stays_confined() {
    on_both_with_mail(|app| {
        let b = app.company("b");
        let hers = join(app, HERS);
        let other = b.employ(ANA, "Ana", Role::Member);
        b.write(SendReset(other.person)).unwrap();
        use_reset(&b, &secret_in(&take(&b).remove(0).plain, "rpw_"), KNOWN).unwrap();
        let proven = app.number("SELECT count(*) FROM person WHERE proven_at IS NOT NULL");
        assert_eq!(proven, 1);
        assert_ne!(hers.person, other.person);
        assert_eq!([log_in(app, None, HERS), log_in(app, None, KNOWN)], [Some(app.id()), Some(b.id())]);
    });
}

#[test]
fn a_forgotten_password_is_answered_for_each_login_by_its_company() {
    on_both_with_mail(|app| {
        let b = app.company("b");
        join(app, HERS);
        b.employ(ANA, "Ana", Role::Member);
        block_on(app.app().write(&Access::NO_COMPANY, RequestReset(email()))).unwrap();
        block_on(answer_requests(app.app())).unwrap();
        assert_eq!(app.rows("reset_request"), 0);
        for company in [app as &TestCompany, &b] {
            let mail = take(company).remove(0);
            assert_eq!(mail.recipient.as_str(), ANA);
            assert!(mail.plain.contains(company.slug()), "{}", mail.plain);
        }
    });
}
