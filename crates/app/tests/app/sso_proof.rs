//! Proving again who one is, in a session that began with single sign-on.

use rapport_app::company_deletion::RequestDeletion;
use rapport_app::member::ChangeMember;
use rapport_app::sso::login::{NotIn, Returned, SignedIn, finish, start_proof};
use rapport_app::sso::settings::PutSso;
use rapport_app::{Access, Error};
use rapport_domain::audit::Action;
use rapport_domain::credential::Presented;
use rapport_domain::member::Role;
use rapport_domain::sso::entry::{Claims, Reason};
use rapport_domain::time::Time;
use rapport_testkit::providers::claims;
use rapport_testkit::{TestApp, TestCompany, TestProviders, block_on};
use serde_json::json;

use crate::refusal;
use crate::sso::{by_password, change, enter, hire, issuer, on_both, recorded, set_up};

/// Longer than a proof holds.
const LATER: i64 = 16 * 60;

/// Ana logs in, and is an owner.
fn ana(app: &TestApp, providers: &TestProviders) -> Access {
    set_up(app);
    let (session, me) = enter(app, providers, claims("ana", "ana@acme.test"));
    app.write(ChangeMember { person: me.person, role: Some(Role::Owner), active: None }).unwrap();
    session
}

fn presented(access: &Access) -> Presented {
    let Access::Credential(presented) = access else { panic!("a session") };
    *presented
}

/// Something that needs a proof.
fn sensitive(company: &TestCompany) -> PutSso {
    change(company, json!({"client_id": "another"}))
}

/// Goes to the provider because of one session, and comes back with another or the same.
fn prove(company: &TestCompany, asked: &Access, back: Option<&Access>) -> Result<SignedIn, Reason> {
    let refused = |not_in| match not_in {
        NotIn::Refused(reason) => reason,
        NotIn::Failed(error) => panic!("{error:?}"),
    };
    let started = block_on(start_proof(company.app(), presented(asked), "/settings/sso", None));
    let started = started.map_err(refused)?;
    let (_, state) = started.url.rsplit_once('=').expect("a state");
    let (cookie, session) = (Some(started.cookie.as_str()), back.map(presented));
    let returned = Returned { cookie, state, code: "code", session, ..Returned::default() };
    block_on(finish(company.app(), company.slug(), returned, None)).map_err(refused)
}

fn at(time: Time) -> Claims {
    Claims { authenticated_at: Some(time), ..claims("ana", "ana@acme.test") }
}

#[test]
fn a_login_is_a_proof_and_the_provider_renews_it() {
    on_both(|app, providers| {
        let session = ana(app, providers);
        app.write_as(&session, sensitive(app)).unwrap();
        app.clock().advance_seconds(LATER);
        assert_eq!(refusal(app.write_as(&session, change(app, json!({})))), "forbidden proof_required");
        app.write(change(app, json!({}))).unwrap();
        providers.say(&issuer(app), at(app.clock().now()));
        let signed_in = prove(app, &session, Some(&session)).expect("proved");
        assert_eq!((signed_in.session, signed_in.next.as_str()), (None, "/settings/sso"), "it is no login");
        app.write_as(&session, sensitive(app)).unwrap();
        assert_eq!(recorded(app, Action::SessionProved), [json!({"by": "single sign-on"})]);
        assert_eq!(recorded(app, Action::SessionBegun).len(), 1);
    });
}

#[test]
fn a_proof_is_a_new_login_of_the_same_person_for_the_same_session() {
    on_both(|app, providers| {
        let session = ana(app, providers);
        let (other, _) = enter(app, providers, claims("ana", "ana@acme.test"));
        enter(app, providers, claims("bo", "bo@acme.test"));
        app.clock().advance_seconds(LATER);
        let now = app.clock().now();
        let bo = Claims { authenticated_at: Some(now), ..claims("bo", "bo@acme.test") };
        let foreign = Claims { authenticated_at: Some(now), ..claims("ana", "ana@evil.test") };
        let nobody = Claims { authenticated_at: Some(now), ..claims("cy", "cy@acme.test") };
        for (who, back, reason) in [
            (claims("ana", "ana@acme.test"), Some(&session), Reason::NotAskedAgain),
            (at(now.plus_seconds(-LATER)), Some(&session), Reason::NotAskedAgain),
            (bo, Some(&session), Reason::OtherPerson),
            (nobody, Some(&session), Reason::OtherPerson),
            (foreign, Some(&session), Reason::ForeignDomain),
            (at(now), Some(&other), Reason::WrongState),
            (at(now), None, Reason::WrongState),
        ] {
            providers.say(&issuer(app), who);
            assert_eq!(prove(app, &session, back).err(), Some(reason));
            assert_eq!(refusal(app.write_as(&session, sensitive(app))), "forbidden proof_required");
        }
        assert_eq!(app.rows("member"), 3, "nobody joins by proving something");
        assert!(recorded(app, Action::SessionProved).is_empty());
    });
}

#[test]
fn a_provider_proves_nothing_for_a_session_that_began_with_a_password() {
    on_both(|app, providers| {
        ana(app, providers);
        let bo = hire(app, "bo@acme.test", Role::Owner);
        enter(app, providers, claims("bo", "bo@acme.test"));
        let session = by_password(app, bo.person).unwrap();
        assert_eq!(prove(app, &session, Some(&session)).err(), Some(Reason::Off));
        assert!(matches!(
            block_on(start_proof(app.app(), presented(app.token()), "/", None)),
            Err(NotIn::Refused(Reason::Off) | NotIn::Failed(Error::Unauthenticated))
        ));
    });
}

#[test]
fn an_owner_without_a_password_deletes_the_company_after_a_recent_proof() {
    on_both(|app, providers| {
        let session = ana(app, providers);
        let typed = || RequestDeletion(json!({ "project": "acme" }).as_object().unwrap().clone());
        app.clock().advance_seconds(LATER);
        assert_eq!(refusal(app.write_as(&session, typed())), "forbidden proof_required");
        providers.say(&issuer(app), at(app.clock().now()));
        prove(app, &session, Some(&session)).expect("proved");
        app.write_as(&session, typed()).unwrap();
    });
}
