//! Where single sign-on ends: what a session of it can't do to a login, and what a password can't do where it is required.

use rapport_app::address_change::RequestAddressChange;
use rapport_app::company_deletion::{Erasing, ScheduleDeletion, step as delete_step};
use rapport_app::departed::step;
use rapport_app::invitation::{Invite, Offer};
use rapport_app::member::{LeaveCompany, RemoveMember};
use rapport_app::password_reset::{
    MakeResetLink, OpenReset, ProveAddress, RequestReset, SendReset, answer_requests,
};
use rapport_app::read::own_data;
use rapport_app::second_step::{self, Asked, Shown};
use rapport_app::session::{EndOneSession, Proven};
use rapport_app::totp::{ConfirmApp, SetUpApp};
use rapport_app::{Access, Error, Needs};
use rapport_domain::audit::Action;
use rapport_domain::invitation::Acceptance;
use rapport_domain::member::Role;
use rapport_domain::right::Right;
use rapport_domain::second_factor::Code;
use rapport_domain::sso::entry::Reason;
use rapport_domain::totp::TotpSecret;
use rapport_store::session as sessions;
use rapport_testkit::providers::claims;
use rapport_testkit::{TestApp, block_on};
use serde_json::json;

use crate::mail::take;
use crate::refusal;
use crate::sso::{
    PASSWORD, by_password, change, email, enter, hire, is_alive, on_both, recorded, refused, require, set_up,
};

#[test]
fn a_session_by_single_sign_on_neither_moves_on_nor_touches_the_login() {
    on_both(|app, providers| {
        let b = app.company("b");
        let ana = hire(app, "ana@acme.test", Role::Owner).person;
        assert_eq!(hire(&b, "ana@acme.test", Role::Owner).person, ana);
        let hers = by_password(&b, ana).unwrap();
        set_up(app);
        let (session, _) = enter(app, providers, claims("ana", "ana@acme.test"));
        let Access::Credential(presented) = session else { panic!("a session") };
        // Neither to another company, nor to a session of its own that could.
        for company in [b.id(), app.id()] {
            let proven = Proven { person: ana, company };
            let moved = block_on(app.app().write(&proven.access(), proven.begin(None).replacing(presented)));
            assert_eq!(refusal(moved), "conflict sso_session");
        }
        let changed = app.write_as(&session, RequestAddressChange(email("eve@evil.test")));
        assert_eq!(refusal(changed), "conflict sso_session");
        let listed = app.read(move |snapshot| sessions::of_person(snapshot, ana));
        let there = listed.iter().find(|listed| !listed.by_sso).expect("her session in B").id;
        assert_eq!(refusal(app.write_as(&session, EndOneSession(there))), "no such session");
        assert!(is_alive(&b, &hers));
        let data = block_on(app.app().read(&session, Needs::Right(Right::Own), own_data::login));
        let data = data.unwrap().reply.expect("her data");
        let count = |member: &str| data[member].as_array().expect("a list").len();
        assert_eq!((count("companies"), count("sessions")), (1, 1), "it learns about no other company");
        let data = block_on(b.app().read(&hers, Needs::Right(Right::Own), own_data::login));
        let data = data.unwrap().reply.expect("her data");
        assert_eq!(data["companies"].as_array().expect("a list").len(), 2);
    });
}

#[test]
fn second_factors_are_up_to_the_provider() {
    on_both(|app, providers| {
        set_up(app);
        app.set(json!({ "second_factor_required": true }));
        let (session, _) = enter(app, providers, claims("ana", "ana@acme.test"));
        assert!(is_alive(app, &session), "it is asked for none of ours");
        assert_eq!(refusal(app.write_as(&session, SetUpApp)), "conflict sso_session");
        let bo = hire(app, "bo@acme.test", Role::Member).person;
        assert!(!is_alive(app, &by_password(app, bo).unwrap()), "with a password it is required");
    });
}

#[test]
fn where_it_is_required_a_second_factor_opens_nothing() {
    on_both(|app, _| {
        let ana = hire(app, "ana@acme.test", Role::Member).person;
        let session = by_password(app, ana).unwrap();
        let Access::Credential(presented) = session else { panic!("a session") };
        let secret = TotpSecret::parse(&app.write_as(&session, SetUpApp).unwrap().secret).unwrap();
        let typed = secret.code_at(app.app().now());
        app.write_as(&session, ConfirmApp { typed, session: presented }).unwrap();
        let proven = Proven { person: ana, company: app.id() };
        let ticket = block_on(second_step::begin(app.app(), proven)).unwrap().expect("she has a factor");
        set_up(app);
        require(app);
        app.clock().advance_seconds(60);
        let asked = block_on(Asked::by_ticket(app.app(), &ticket)).unwrap().expect("a ticket that holds");
        let code = Code::read(&secret.code_at(app.app().now())).expect("a code");
        let completed = block_on(app.app().write(&asked.access(), asked.complete(Shown::Code(code), None)));
        assert_eq!(refusal(completed), "forbidden sso_required");
    });
}

#[test]
fn where_it_is_required_no_link_for_a_password_is_made() {
    on_both(|app, _| {
        let b = app.company("b");
        let ana = hire(app, "ana@acme.test", Role::Admin).person;
        let link = app.write_as(&Access::CommandLine(app.id()), MakeResetLink(ana)).unwrap();
        let token = link.rsplit('/').next().unwrap().to_owned();
        let session = by_password(app, ana).unwrap();
        set_up(app);
        assert!(block_on(OpenReset::look(app.app(), &token)).is_ok());
        let owner = require(app);
        let asks = |address: &str| {
            block_on(app.app().write(&Access::NO_COMPANY, RequestReset(email(address)))).unwrap();
            block_on(answer_requests(app.app())).unwrap();
            take(app).into_iter().map(|mail| mail.recipient.as_str().to_owned()).collect::<Vec<_>>()
        };
        let over = block_on(OpenReset::look(app.app(), &token)).err().map(|error| refusal::<()>(Err(error)));
        assert_eq!(over.as_deref(), Some("invalid /token invalid_token"), "made before it was required");
        assert_eq!(asks("ana@acme.test"), [""; 0]);
        assert_eq!(refusal(app.write(SendReset(ana))), "forbidden sso_required");
        let made = app.write_as(&Access::CommandLine(app.id()), MakeResetLink(ana));
        assert_eq!(refusal(made), "forbidden sso_required");
        assert_eq!(refusal(app.write_as(&session, ProveAddress)), "unauthenticated", "it ended");
        // The break-glass owner needs a password.
        assert_eq!(asks(owner.email.as_str()), [owner.email.as_str()]);
        app.write(SendReset(owner.person)).unwrap();
        // Her password is of use in another company, which then sends the link.
        assert_eq!(hire(&b, "ana@acme.test", Role::Member).person, ana);
        assert_eq!(asks("ana@acme.test"), [owner.email.as_str()], "what was sent to the owner before");
        assert_eq!(take(&b).remove(0).recipient.as_str(), "ana@acme.test");
        app.write(change(app, json!({}))).unwrap();
        app.write(SendReset(ana)).unwrap();
    });
}

#[test]
fn where_it_is_required_an_invitation_takes_no_password() {
    on_both(|app, providers| {
        set_up(app);
        app.write(Invite { email: email("cy@acme.test"), name: None, role: Role::Admin }).unwrap();
        let mail = take(app).remove(0).plain;
        let start = mail.find("rjn_").expect("a link");
        let token = mail[start..].split_whitespace().next().unwrap().to_owned();
        let accepted = |app: &TestApp| -> Result<(), Error> {
            let offer = block_on(Offer::look(app.app(), &token))?;
            let token = token.clone();
            let acceptance = Acceptance { token, name: None, password: PASSWORD.to_owned(), login: None };
            let (access, accept) = (offer.access(), offer.answer(app.app().services(), acceptance)?);
            block_on(app.app().write(&access, accept)).map(drop)
        };
        // Somebody typed their password just before it became required.
        let offer = block_on(Offer::look(app.app(), &token)).unwrap();
        assert!(!offer.needs_sso);
        let (access, late) = (offer.access(), offer.join_with(None, "hash".to_owned()));
        require(app);
        assert!(block_on(Offer::look(app.app(), &token)).unwrap().needs_sso);
        assert_eq!(refusal(accepted(app)), "forbidden sso_required");
        assert_eq!(refusal(block_on(app.app().write(&access, late))), "forbidden sso_required");
        let (_, cy) = enter(app, providers, claims("cy", "cy@acme.test"));
        assert_eq!(cy.role, Role::Admin, "the invitation is still good for its role");
        assert_eq!(refusal(accepted(app)), "invalid /token invalid_token");
    });
}

#[test]
fn who_leaves_stays_out_also_when_their_login_is_gone() {
    on_both(|app, providers| {
        set_up(app);
        let owner = require(app);
        let break_glass = by_password(app, owner.person).unwrap();
        hire(app, "two@acme.test", Role::Owner);
        assert_eq!(refusal(app.write_as(&break_glass, LeaveCompany)), "conflict break_glass_owner");
        let (session, ana) = enter(app, providers, claims("ana", "ana@acme.test"));
        app.write_as(&session, LeaveCompany).unwrap();
        assert_eq!(recorded(app, Action::MemberLeft).len(), 1);
        let look = || while block_on(step(app.app(), None)).unwrap().is_some() {};
        look();
        assert_eq!(refused(app, providers, claims("ana", "ana@acme.test")), Reason::Removed);
        app.clock().advance_days(30);
        look();
        let known = app.read(move |snapshot| rapport_store::member::login(snapshot, ana.person));
        assert!(known.is_none(), "the login is gone");
        assert_eq!(app.rows("sso_identity"), 0);
        for who in
            [claims("ana", "ana@acme.test"), claims("ana", "new@acme.test"), claims("x", "ana@acme.test")]
        {
            assert_eq!(refused(app, providers, who), Reason::Removed);
        }
        let bo = enter(app, providers, claims("bo", "bo@acme.test")).1;
        app.write(RemoveMember(bo.person)).unwrap();
        assert_eq!(refused(app, providers, claims("bo", "bo@acme.test")), Reason::Removed);
    });
}

#[test]
fn nobody_joins_a_company_whose_deletion_has_begun() {
    on_both(|app, providers| {
        set_up(app);
        enter(app, providers, claims("ana", "ana@acme.test"));
        app.write_as(&Access::CommandLine(app.id()), ScheduleDeletion { is_now: true }).unwrap();
        assert!(block_on(delete_step(app.app(), app.id(), &mut Erasing::default())).unwrap());
        assert_eq!(app.rows("sso"), 0);
        let found = block_on(rapport_app::sso::login::offered(app.app(), "acme")).unwrap();
        assert_eq!(found, None);
    });
}
