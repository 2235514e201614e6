//! Single sign-on: who comes in, what a company's provider can't do, and what is required where it is. The providers are
//! made up; the protocol is tested with a real one (`jobs/tests/sso`).

use std::sync::Arc;

use rapport_app::invitation::{Invite, RevokeInvitation};
use rapport_app::member::{ChangeMember, RemoveMember};
use rapport_app::person::Rename;
use rapport_app::read::profile;
use rapport_app::session::{EndOtherSessions, LogIn, Proven, read_cookie, workplaces};
use rapport_app::sso::domain::{ClaimDomain, ReleaseDomain};
use rapport_app::sso::login::{NotIn, Returned, SignedIn, finish, offered, project_of, start};
use rapport_app::sso::provider::ProviderError;
use rapport_app::sso::settings::{PutSso, RemoveSso};
use rapport_app::{Access, Error, Needs, Outside, password};
use rapport_domain::audit::{Action, Filter};
use rapport_domain::email_domain::EmailDomain;
use rapport_domain::id::PersonId;
use rapport_domain::member::{Email, Member, Role};
use rapport_domain::right::Right;
use rapport_domain::sso::Change;
use rapport_domain::sso::entry::{Claims, Reason};
use rapport_store::{audit, member};
use rapport_testkit::app::Hire;
use rapport_testkit::providers::claims;
use rapport_testkit::{Engine, TestApp, TestCompany, TestProviders, all, block_on};
use serde_json::{Value, json};

use crate::mail::take;
use crate::refusal;

pub const PASSWORD: &str = "a password of her own";
const ISSUER: &str = "https://login.acme.test";

/// Checks a rule on both engines, with providers that say what the rule tells them to.
pub fn on_both(rule: impl Fn(&TestApp, &TestProviders)) {
    for engine in Engine::BOTH {
        eprintln!("on {engine}");
        let providers = Arc::new(TestProviders::default());
        let furnished = Arc::clone(&providers);
        let app = TestApp::with(engine, move |parts| {
            parts.providers = Arc::clone(&furnished) as _;
            parts.outside = Outside { base_url: "https://crm.acme.test".to_owned(), mail_configured: true };
        });
        rule(&app, &providers);
    }
}

pub fn email(text: &str) -> Email {
    Email::parse(text).unwrap()
}

fn domain(text: &str) -> EmailDomain {
    EmailDomain::parse(text).unwrap()
}

fn claim(company: &TestCompany, text: &str) -> Result<(), Error> {
    company.write_as(&Access::CommandLine(company.id()), ClaimDomain(domain(text)))
}

/// The settings of a company, with changes.
pub fn change(company: &TestCompany, changes: Value) -> PutSso {
    let mut body = json!({
        "mode": "optional", "issuer": issuer(company), "client_id": "rapport", "client_secret": "hush",
        "domains": [format!("{}.test", company.slug())],
    });
    body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    PutSso(Change::parse(body.as_object().unwrap()).unwrap())
}

pub fn issuer(company: &TestCompany) -> String {
    ISSUER.replace("acme", company.slug())
}

/// Confirms the company's domain and turns single sign-on on.
pub fn set_up(company: &TestCompany) {
    claim(company, &format!("{}.test", company.slug())).unwrap();
    company.write(change(company, json!({}))).unwrap();
}

/// Requires it; the owner that the company was made with is the break-glass owner.
pub fn require(company: &TestCompany) -> Member {
    let owner = company.read(member::list).remove(0);
    let required = json!({"mode": "required", "break_glass_owner": owner.person.to_string()});
    company.write(change(company, required)).unwrap();
    owner
}

/// What a browser keeps, and the state that the provider repeats.
fn begin(company: &TestCompany) -> (String, String) {
    let started = block_on(start(company.app(), company.slug(), "/accounts", None));
    let started = started.unwrap_or_else(|not_in| panic!("{not_in:?}"));
    let (_, state) = started.url.rsplit_once('=').expect("a state");
    (started.cookie, state.to_owned())
}

fn come_back(company: &TestCompany, cookie: &str, state: &str) -> Result<SignedIn, Reason> {
    let returned = Returned { cookie: Some(cookie), state, code: "code", ..Returned::default() };
    match block_on(finish(company.app(), company.slug(), returned, None)) {
        Ok(signed_in) => Ok(signed_in),
        Err(NotIn::Refused(reason)) => Err(reason),
        Err(NotIn::Failed(error)) => panic!("{error:?}"),
    }
}

/// Logs in with single sign-on, as the person the provider names.
fn log_in(company: &TestCompany) -> Result<Access, Reason> {
    let (cookie, state) = begin(company);
    let signed_in = come_back(company, &cookie, &state)?;
    assert_eq!(signed_in.next, "/accounts");
    Ok(Access::Credential(read_cookie(&signed_in.session.expect("a new one")).expect("a session")))
}

/// Logs in as somebody, who must come in.
pub fn enter(company: &TestCompany, providers: &TestProviders, who: Claims) -> (Access, Member) {
    providers.say(&issuer(company), who);
    let session = log_in(company).unwrap();
    let found = block_on(company.app().read(&session, Needs::Right(Right::Read), profile::page)).unwrap();
    (session, found.reply.expect("a profile").me)
}

pub fn refused(company: &TestCompany, providers: &TestProviders, who: Claims) -> Reason {
    providers.say(&issuer(company), who);
    log_in(company).expect_err("refused")
}

/// A session that begins with a password.
pub fn by_password(company: &TestCompany, person: PersonId) -> Result<Access, Error> {
    let proven = Proven { person, company: company.id() };
    let cookie = block_on(company.app().write(&proven.access(), proven.begin(None)))?;
    Ok(Access::Credential(read_cookie(&cookie).unwrap()))
}

pub fn is_alive(company: &TestCompany, session: &Access) -> bool {
    block_on(company.app().read(session, Needs::Right(Right::Read), |_, _| Ok(()))).is_ok()
}

/// A member with the login of the owner of the address, and a password.
pub fn hire(company: &TestCompany, address: &str, role: Role) -> Member {
    let password_hash = password::hash(company.app().services(), PASSWORD).unwrap();
    let hire = Hire { email: email(address), name: "Ana".to_owned(), role, password_hash, is_proven: true };
    company.write_as(&Access::System(company.id()), hire).unwrap()
}

/// The audit log's details of an action, newest first.
pub fn recorded(company: &TestCompany, action: Action) -> Vec<Value> {
    let log = company.read(|snapshot| audit::list(snapshot, &Filter::default(), None, 200)).items;
    let found = log.into_iter().filter(|entry| entry.action == action.as_str());
    found.map(|entry| serde_json::from_str(&entry.detail).expect("JSON")).collect()
}

#[test]
fn a_first_login_makes_a_member_with_a_login_of_the_company() {
    on_both(|app, providers| {
        let b = app.company("b");
        let elsewhere = hire(&b, "ana@acme.test", Role::Owner);
        set_up(app);
        let (session, ana) = enter(app, providers, claims("ana", "Ana@acme.test"));
        assert_ne!(ana.person, elsewhere.person, "the address has another login elsewhere");
        assert_eq!((ana.role, ana.name.as_str()), (Role::Member, "ana from the provider"));
        assert_eq!(ana.email.as_str(), "ana@acme.test");
        let joined = json!({"email": "ana@acme.test", "role": "member", "invited": false});
        assert_eq!(recorded(app, Action::MemberJoined), [joined]);
        assert_eq!(recorded(app, Action::SessionBegun), [json!({"by": "single sign-on"})]);
        let login = app.read(move |snapshot| member::login(snapshot, ana.person)).unwrap();
        assert_eq!((login.password_hash.as_str(), login.proven_at), (password::NOBODYS, None));
        // The next login is the same person, whatever their address is then.
        let (_, again) = enter(app, providers, claims("ana", "ana.ruiz@acme.test"));
        assert_eq!((again.person, again.email), (ana.person, ana.email));
        assert!(is_alive(app, &session));
        // A person without a password doesn't stand in the way of one who has one.
        let looked = block_on(LogIn::look(app.app(), email("ana@acme.test"), None)).unwrap();
        assert_eq!(looked.check(PASSWORD).map(|proven| proven.company), Some(b.id()));
    });
}

#[test]
fn a_provider_speaks_only_for_its_companys_confirmed_domains() {
    on_both(|app, providers| {
        let b = app.company("b");
        set_up(app);
        // B would like to speak for the people of Acme.
        let theirs = json!({"domains": ["acme.test"]});
        assert_eq!(refusal(b.write(change(&b, theirs))), "conflict domain_not_confirmed");
        assert_eq!(refusal(claim(&b, "acme.test")), "conflict domain_claimed");
        let later = json!({"mode": "off", "domains": ["acme.test", "b.test"]});
        b.write(change(&b, later)).unwrap();
        claim(&b, "b.test").unwrap();
        let both = json!({"domains": ["acme.test", "b.test"]});
        b.write(change(&b, both)).unwrap();
        let newhire = || claims("newhire", "newhire@acme.test");
        assert_eq!(refused(&b, providers, newhire()), Reason::ForeignDomain);
        for (who, reason) in [
            (claims("x", "x@mail.b.test"), Reason::ForeignDomain),
            (Claims { email_verified: false, ..claims("x", "x@b.test") }, Reason::UnverifiedEmail),
            (Claims { email: None, ..claims("x", "x@b.test") }, Reason::NoEmail),
            (claims("", "x@b.test"), Reason::BadToken),
        ] {
            assert_eq!(refused(&b, providers, who), reason);
        }
        assert_eq!(b.read(member::list).len(), 1, "nobody became a member");
        enter(&b, providers, claims("x", "x@b.test"));
        // A domain that was released counts for nobody, until it is another company's.
        b.write_as(&Access::CommandLine(b.id()), ReleaseDomain(domain("b.test"))).unwrap();
        assert_eq!(block_on(offered(b.app(), "b")).unwrap(), None);
        claim(app, "b.test").unwrap();
        assert_eq!(refusal(claim(&b, "b.test")), "conflict domain_claimed");
        assert_eq!(refusal(b.write(change(&b, json!({})))), "conflict domain_not_confirmed");
    });
}

#[test]
fn a_session_by_single_sign_on_works_in_its_company_only() {
    on_both(|app, providers| {
        let b = app.company("b");
        let ana = hire(app, "ana@b.test", Role::Owner);
        assert_eq!(hire(&b, "ana@b.test", Role::Member).person, ana.person, "one login for both");
        let hers = by_password(app, ana.person).unwrap();
        set_up(&b);
        // B's provider says that somebody is Ana. In B, that's for B to say.
        let (session, me) = enter(&b, providers, claims("ana", "ana@b.test"));
        assert_eq!(me.person, ana.person, "she is a member there");
        assert_eq!(recorded(&b, Action::SsoLinked), [json!({"email": "ana@b.test"})]);
        assert_eq!(session.company(), b.id());
        let places = block_on(workplaces(b.app(), ana.person, Some(b.id()))).unwrap();
        assert_eq!(places.iter().map(|place| place.slug.as_str()).collect::<Vec<_>>(), ["b"]);
        let found = block_on(b.app().find(&session, Needs::Right(Right::Read), profile::page)).unwrap();
        assert!(found.viewer.caller.by_sso && found.viewer.caller.companies == 1, "it learns about no other");
        assert_eq!(found.reply.unwrap().sessions.len(), 1);
        let renamed = b.write_as(&session, Rename("Not Ana".to_owned()));
        assert_eq!(refusal(renamed), "conflict sso_session");
        let Access::Credential(presented) = session else { panic!("a session") };
        b.write_as(&session, EndOtherSessions(presented)).unwrap();
        assert!(is_alive(app, &hers), "her own session elsewhere goes on");
        // Her own login reaches both.
        assert_eq!(block_on(workplaces(app.app(), ana.person, None)).unwrap().len(), 2);
        app.write_as(&hers, Rename("Ana Ruiz".to_owned())).unwrap();
    });
}

#[test]
fn a_login_that_single_sign_on_made_can_be_renamed() {
    on_both(|app, providers| {
        set_up(app);
        let (session, _) = enter(app, providers, claims("ana", "ana@acme.test"));
        app.write_as(&session, Rename("Ana Ruiz".to_owned())).unwrap();
    });
}

#[test]
fn members_are_linked_by_their_address_with_the_role_they_have() {
    on_both(|app, providers| {
        let confined = app.employ("bo@acme.test", "Bo", Role::Admin);
        set_up(app);
        let (_, bo) = enter(app, providers, claims("bo", "bo@acme.test"));
        assert_eq!((bo.person, bo.role, bo.name.as_str()), (confined.person, Role::Admin, "Bo"));
        // Another subject with the same address is the same member: the provider says so.
        let (_, same) = enter(app, providers, claims("bo-2", "bo@acme.test"));
        assert_eq!(same.person, confined.person);
        assert!(recorded(app, Action::MemberJoined).is_empty());
    });
}

#[test]
fn an_invitation_decides_the_role_and_is_used_up() {
    on_both(|app, providers| {
        set_up(app);
        app.write(Invite { email: email("cy@acme.test"), name: None, role: Role::Admin }).unwrap();
        let (_, cy) = enter(app, providers, claims("cy", "cy@acme.test"));
        assert_eq!(cy.role, Role::Admin);
        assert_eq!(app.rows("invitation"), 0);
        assert!(take(app).is_empty(), "its mail is not needed any more");
    });
}

#[test]
fn removed_and_deactivated_members_stay_out() {
    on_both(|app, providers| {
        set_up(app);
        let (session, ana) = enter(app, providers, claims("ana", "ana@acme.test"));
        let active = |active| ChangeMember { person: ana.person, role: None, active: Some(active) };
        app.write(active(false)).unwrap();
        assert!(!is_alive(app, &session));
        assert_eq!(refused(app, providers, claims("ana", "ana@acme.test")), Reason::Deactivated);
        assert_eq!(refused(app, providers, claims("ana-2", "ana@acme.test")), Reason::Deactivated);
        app.write(active(true)).unwrap();
        enter(app, providers, claims("ana", "ana.ruiz@acme.test"));

        app.write(RemoveMember(ana.person)).unwrap();
        for who in [
            claims("ana", "ana@acme.test"),
            claims("ana", "another@acme.test"),
            claims("ana-2", "ana@acme.test"),
            claims("ana-3", "ana.ruiz@acme.test"),
        ] {
            assert_eq!(refused(app, providers, who), Reason::Removed);
        }
        // Only the company can have her back.
        let invited =
            app.write(Invite { email: email("ana@acme.test"), name: None, role: Role::Member }).unwrap();
        app.write(RevokeInvitation(invited.invitation.id)).unwrap();
        assert_eq!(refused(app, providers, claims("ana", "ana@acme.test")), Reason::Removed);
        app.write(Invite { email: email("ana@acme.test"), name: None, role: Role::Member }).unwrap();
        let (_, back) = enter(app, providers, claims("ana", "ana@acme.test"));
        assert_ne!(back.person, ana.person, "with a new login");
        enter(app, providers, claims("ana", "ana@acme.test"));
        // A member who never used single sign-on stays out too.
        let bo = app.employ("bo@acme.test", "Bo", Role::Member);
        app.write(RemoveMember(bo.person)).unwrap();
        assert_eq!(refused(app, providers, claims("bo", "bo@acme.test")), Reason::Removed);
    });
}

#[test]
fn where_it_is_required_a_password_opens_nothing() {
    on_both(|app, providers| {
        let b = app.company("b");
        let ana = hire(app, "ana@acme.test", Role::Admin);
        hire(&b, "ana@acme.test", Role::Member);
        let (before, elsewhere) =
            (by_password(app, ana.person).unwrap(), by_password(&b, ana.person).unwrap());
        set_up(app);
        let (by_sso, _) = enter(app, providers, claims("ana", "ana@acme.test"));
        assert!(is_alive(app, &before), "optional so far");
        require(app);
        assert!(!is_alive(app, &before), "it ended");
        assert_eq!(refusal(by_password(app, ana.person)), "forbidden sso_required");
        assert!(is_alive(app, &by_sso) && is_alive(&b, &elsewhere));
        // With the same password they get into the company that takes it.
        app.clock().advance_seconds(1);
        let looked = block_on(LogIn::look(app.app(), email("ana@acme.test"), None)).unwrap();
        assert_eq!(looked.check(PASSWORD).map(|proven| proven.company), Some(b.id()));
        let places = block_on(workplaces(app.app(), ana.person, None)).unwrap();
        let needs: Vec<(&str, bool)> =
            places.iter().map(|place| (place.slug.as_str(), place.needs_sso)).collect();
        assert_eq!(needs, [("acme", true), ("b", false)]);
        b.write(RemoveMember(ana.person)).unwrap();
        let looked = block_on(LogIn::look(app.app(), email("ana@acme.test"), None)).unwrap();
        let only = looked.check(PASSWORD).expect("the right password").company;
        assert_eq!(only, app.id(), "which then says that it requires single sign-on");
        app.write(change(app, json!({}))).unwrap();
        by_password(app, ana.person).unwrap();
    });
}

#[test]
fn password_sessions_end_on_every_node() {
    on_both(|app, _| {
        let ana = app.employ("ana@acme.test", "Ana", Role::Admin);
        set_up(app);
        let before = by_password(app, ana.person).unwrap();
        let other = app.another_node();
        require(app);
        let found = block_on(other.read(&before, Needs::Right(Right::Read), |_, _| Ok(())));
        assert!(matches!(found, Err(Error::Unauthenticated)), "{found:?}");
    });
}

#[test]
fn the_break_glass_owner_gets_in_and_all_owners_are_told() {
    on_both(|app, _| {
        let second = app.employ("two@acme.test", "Two", Role::Owner);
        app.employ("bo@acme.test", "Bo", Role::Admin);
        set_up(app);
        let owner = app.read(member::list).remove(0);
        let before = by_password(app, owner.person).unwrap();
        assert!(take(app).is_empty());
        let owner = require(app);
        assert!(is_alive(app, &before), "their session goes on");
        assert_eq!(refusal(by_password(app, second.person)), "forbidden sso_required");
        by_password(app, owner.person).unwrap();
        assert_eq!(recorded(app, Action::SsoBreakGlassUsed), [json!({})]);
        let mut mails = take(app);
        mails.sort_by(|one, other| one.recipient.as_str().cmp(other.recipient.as_str()));
        let told: Vec<&str> = mails.iter().map(|mail| mail.recipient.as_str()).collect();
        assert_eq!(told, ["owner@acme.test", "two@acme.test"]);
        assert!(
            mails[0].subject.contains("The Owner logged in without single sign-on"),
            "{}",
            mails[0].subject
        );

        let person = owner.person;
        let kept = "conflict break_glass_owner";
        assert_eq!(refusal(app.write(RemoveMember(person))), kept);
        let demoted = ChangeMember { person, role: Some(Role::Admin), active: None };
        assert_eq!(refusal(app.write(demoted)), kept);
        let deactivated = ChangeMember { person, role: None, active: Some(false) };
        assert_eq!(refusal(app.write(deactivated)), kept);
        let next = json!({"mode": "required", "break_glass_owner": second.person.to_string()});
        app.write(change(app, next)).unwrap();
        assert!(!is_alive(app, &before), "another owner has taken over");
        app.write(RemoveMember(person)).unwrap();
    });
}

#[test]
fn only_an_owner_who_has_a_password_can_break_the_glass() {
    on_both(|app, providers| {
        set_up(app);
        let (_, ana) = enter(app, providers, claims("ana", "ana@acme.test"));
        app.write(ChangeMember { person: ana.person, role: Some(Role::Owner), active: None }).unwrap();
        let bo = app.employ("bo@acme.test", "Bo", Role::Admin).person;
        let cy = app.employ("cy@acme.test", "Cy", Role::Owner).person;
        app.write(ChangeMember { person: cy, role: None, active: Some(false) }).unwrap();
        let stranger = app.company("b").read(member::list).remove(0).person;
        for person in [ana.person, bo, cy, stranger] {
            let wanted = json!({"mode": "required", "break_glass_owner": person.to_string()});
            let refused = refusal(app.write(change(app, wanted)));
            assert_eq!(refused, "invalid /break_glass_owner not_an_owner", "{person}");
        }
    });
}

#[test]
fn the_client_secret_goes_to_no_other_provider_and_is_never_shown() {
    on_both(|app, _| {
        claim(app, "acme.test").unwrap();
        let without = |changes: Value| {
            let PutSso(change) = change(app, changes);
            PutSso(Change { client_secret: None, ..change })
        };
        let missing = "invalid /client_secret required";
        assert_eq!(refusal(app.write(without(json!({})))), missing);
        app.write(change(app, json!({}))).unwrap();
        app.write(without(json!({"client_id": "another"}))).unwrap();
        let elsewhere = json!({"issuer": "https://login.evil.test"});
        assert_eq!(refusal(app.write(without(elsewhere.clone()))), missing);
        app.write(change(app, elsewhere)).unwrap();
        app.write(RemoveSso).unwrap();
        assert_eq!(refusal(app.write(RemoveSso)), "no such single sign-on settings");

        let log = app.read(|snapshot| audit::list(snapshot, &Filter::default(), None, 200)).items;
        assert!(!format!("{log:?}").contains("hush"), "{log:?}");
        let changes = recorded(app, Action::SsoChanged);
        let (from, to) = ("https://login.acme.test", "https://login.evil.test");
        let expected = json!({"issuer": {"from": from, "to": to}, "client_id": {"from": "another", "to": "rapport"},
            "client_secret": "replaced"});
        assert_eq!(changes[0], expected);
        assert_eq!(changes[1], json!({"client_id": {"from": "rapport", "to": "another"}}));
        assert_eq!(changes[2]["client_secret"], "set");
        assert_eq!(changes[2]["mode"], json!({"from": null, "to": "optional"}));
        assert_eq!(recorded(app, Action::SsoRemoved).len(), 1);
    });
}

#[test]
fn settings_are_for_owners() {
    on_both(|app, _| {
        claim(app, "acme.test").unwrap();
        for role in [Role::Viewer, Role::Member, Role::Admin] {
            let token = app.token_of(role);
            assert_eq!(refusal(app.write_as(&token, change(app, json!({})))), "forbidden role_required");
            assert_eq!(refusal(app.write_as(&token, RemoveSso)), "forbidden role_required");
            assert_eq!(refusal(app.write_as(&token, ClaimDomain(domain("b.test")))), "unauthenticated");
        }
        assert_eq!(app.rows("sso"), 0);
    });
}

#[test]
fn a_login_counts_once_in_one_browser_for_one_company_and_not_for_long() {
    on_both(|app, providers| {
        let b = app.company("b");
        set_up(app);
        set_up(&b);
        providers.say(&issuer(app), claims("ana", "ana@acme.test"));
        providers.say(&issuer(&b), claims("eve", "eve@b.test"));
        let (cookie, state) = begin(app);
        let (hers, her_state) = begin(app);
        // Another browser brings the answer, or none at all does.
        assert_eq!(come_back(app, &hers, &state).err(), Some(Reason::WrongState));
        assert_eq!(come_back(app, "", &state).err(), Some(Reason::WrongState));
        assert_eq!(come_back(app, &cookie, "").err(), Some(Reason::WrongState));
        // B's provider sends the browser back with an answer of Acme's.
        assert_eq!(come_back(&b, &cookie, &state).err(), Some(Reason::WrongState));
        let (theirs, their_state) = begin(&b);
        assert_eq!(come_back(app, &theirs, &their_state).err(), Some(Reason::WrongState));
        assert!(come_back(app, &cookie, &state).is_ok());
        assert_eq!(come_back(app, &cookie, &state).err(), Some(Reason::Replayed));
        app.clock().advance_seconds(600);
        assert_eq!(come_back(app, &hers, &her_state).err(), Some(Reason::WrongState), "too late");
    });
}

#[test]
fn what_the_provider_says_instead_of_a_code_is_taken_as_a_refusal() {
    on_both(|app, providers| {
        set_up(app);
        providers.say(&issuer(app), claims("ana", "ana@acme.test"));
        let acme = issuer(app);
        for (error, code, named, reason) in [
            ("access_denied", "", "", Reason::Cancelled),
            ("server_error", "", "", Reason::ProviderRefused),
            ("server_error", "code", "", Reason::ProviderRefused),
            ("", "", "", Reason::ProviderRefused),
            ("", "code", "https://login.evil.test", Reason::WrongIssuer),
        ] {
            let (cookie, state) = begin(app);
            let (cookie, issuer) = (Some(cookie.as_str()), named);
            let returned = Returned { cookie, state: &state, code, error, issuer, ..Returned::default() };
            let refused = block_on(finish(app.app(), "acme", returned, None)).err();
            assert!(matches!(refused, Some(NotIn::Refused(found)) if found == reason), "{error} {named}");
        }
        let (cookie, state) = begin(app);
        let right = Returned {
            cookie: Some(&cookie),
            state: &state,
            code: "code",
            issuer: &acme,
            ..Returned::default()
        };
        assert!(block_on(finish(app.app(), "acme", right, None)).is_ok());
    });
}

#[test]
fn settings_that_changed_meanwhile_are_the_ones_that_count() {
    on_both(|app, providers| {
        set_up(app);
        providers.say(&issuer(app), claims("ana", "ana@acme.test"));
        let (cookie, state) = begin(app);
        app.write(change(app, json!({"mode": "off"}))).unwrap();
        assert_eq!(come_back(app, &cookie, &state).err(), Some(Reason::Off));
        app.write(change(app, json!({}))).unwrap();
        let (session, _) = enter(app, providers, claims("ana", "ana@acme.test"));
        app.write(change(app, json!({"mode": "off"}))).unwrap();
        assert!(!is_alive(app, &session), "turning it off ends what it began");
        app.write(change(app, json!({}))).unwrap();
        assert!(!is_alive(app, &session), "for good");
        let (session, _) = enter(app, providers, claims("ana", "ana@acme.test"));
        app.write(RemoveSso).unwrap();
        assert!(!is_alive(app, &session));
    });
}

#[test]
fn two_first_logins_at_once_make_one_member() {
    on_both(|app, providers| {
        set_up(app);
        providers.say(&issuer(app), claims("ana", "ana@acme.test"));
        let attempts: Vec<(String, String)> = (0..8).map(|_| begin(app)).collect();
        let finished = attempts.iter().map(|(cookie, state)| {
            let returned = Returned { cookie: Some(cookie), state, code: "code", ..Returned::default() };
            finish(app.app(), "acme", returned, None)
        });
        let in_all = block_on(all(finished)).into_iter().flatten().count();
        assert_eq!((in_all, app.rows("member")), (8, 2), "the owner and Ana");
    });
}

#[test]
fn a_refused_login_is_recorded_once_a_minute_with_its_reason_only() {
    on_both(|app, providers| {
        set_up(app);
        let foreign = || claims("eve", "eve@evil.test");
        refused(app, providers, foreign());
        refused(app, providers, foreign());
        providers.fail(&issuer(app), ProviderError::Unreachable("10.0.0.1 is not public".to_owned()));
        assert!(matches!(
            block_on(start(app.app(), "acme", "/", None)),
            Err(NotIn::Refused(Reason::ProviderUnreachable))
        ));
        let reason = |word: &str| json!({"by": "single sign-on", "reason": word});
        assert_eq!(
            recorded(app, Action::SessionFailed),
            [reason("provider_unreachable"), reason("foreign_domain")]
        );
        app.clock().advance_seconds(60);
        refused(app, providers, foreign());
        assert_eq!(recorded(app, Action::SessionFailed).len(), 3);
    });
}

#[test]
fn a_company_is_found_by_its_name_an_address_or_its_domain() {
    on_both(|app, _| {
        let found = |typed: &str| block_on(project_of(app.app(), typed)).unwrap();
        let table = ["acme", " Acme ", "acme.test", "Ana@ACME.test"];
        assert!(table.iter().all(|typed| found(typed).is_none()), "nothing is set up");
        claim(app, "acme.test").unwrap();
        claim(app, "other.test").unwrap();
        app.write(change(app, json!({}))).unwrap();
        for typed in table {
            assert_eq!(found(typed).as_deref(), Some("acme"), "{typed}");
        }
        for typed in ["", "b", "other.test", "ana@mail.acme.test", "ana@", "acme.test/x", "nobody.test"] {
            assert_eq!(found(typed), None, "{typed}");
        }
        let offer = block_on(offered(app.app(), "acme")).unwrap().expect("offered");
        assert_eq!((offer.name.as_str(), offer.is_required), ("acme", false));
    });
}
