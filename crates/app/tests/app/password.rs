//! Passwords that people choose: the same rules wherever one is chosen, and the same letters from every keyboard.

use rapport_app::invitation::{Invite, Offer};
use rapport_app::password_reset::{OpenReset, SendReset};
use rapport_app::person::ChangePassword;
use rapport_app::session::{Proven, read_cookie};
use rapport_app::{Error, password};
use rapport_domain::invitation::{Acceptance, Way};
use rapport_domain::member::{Email, Role};
use rapport_domain::password::Known;
use rapport_testkit::app::Hire;
use rapport_testkit::{Engine, TestApp, TestCompany, block_on};

use crate::refusal;

const OLD: &str = "kestrel over 7 bridges";
const NEW: &str = "harbour lights in June";

fn secret_of(link: &str) -> String {
    link.rsplit('/').next().unwrap().to_owned()
}

/// Chooses a password with an invitation.
fn join(company: &TestCompany, chosen: &str) -> Result<(), Error> {
    let email = Email::parse("ida.berg@nordlys.test").unwrap();
    let invited = company.write(Invite { email, name: None, role: Role::Member })?;
    let token = secret_of(&invited.link.expect("a link"));
    let offer = block_on(Offer::look(company.app(), &token))?;
    let (name, password) = (Some("Ida Berg".to_owned()), chosen.to_owned());
    let accepted =
        offer.answer(company.app().services(), Acceptance { token, name, password, login: Some(Way::New) });
    company.write(rapport_app::invitation::RevokeInvitation(invited.invitation.id))?;
    accepted.map(drop)
}

/// Chooses a password with a link.
fn reset(company: &TestCompany, person: rapport_domain::id::PersonId, chosen: &str) -> Result<(), Error> {
    let token = secret_of(&company.write(SendReset(person))?.expect("a link"));
    let open = block_on(OpenReset::look(company.app(), &token))?;
    open.choose(company.app().services(), chosen).map(drop)
}

#[test]
fn wherever_a_password_is_chosen_one_that_others_would_guess_is_refused() {
    TestApp::on_both(|app| {
        let hire = Hire {
            email: Email::parse("ida.berg@nordlys.test").unwrap(),
            name: "Ida Berg".to_owned(),
            role: Role::Member,
            password_hash: password::hash(app.app().services(), OLD).unwrap(),
            is_proven: false,
        };
        let globex = app.company("globex");
        let ida = block_on(globex.app().write(&rapport_app::Access::System(globex.id()), hire)).unwrap();
        let proven = Proven { person: ida.person, company: globex.id() };
        let cookie = block_on(globex.app().write(&proven.access(), proven.begin(None))).unwrap();
        let session = read_cookie(&cookie).unwrap();
        let login = globex.read(move |snapshot| rapport_store::member::login(snapshot, ida.person)).unwrap();
        let change = |chosen: &str| {
            let known = Known { email: &ida.email, name: &login.name, company: "globex" };
            let services = globex.app().services();
            ChangePassword::check(services, &login, &known, (OLD, chosen), session).map(drop)
        };
        let table = [
            ("1234567890", "invalid /password too_weak"),
            ("qwertyuiop123", "invalid /password too_weak"),
            ("Ida.Berg@nordlys.test", "invalid /password too_personal"),
            ("berg ida berg ida", "invalid /password too_personal"),
            ("short", "invalid /password too_short"),
        ];
        for (chosen, expected) in table {
            assert_eq!(refusal(join(app, chosen)), expected, "{chosen}");
            assert_eq!(refusal(reset(&globex, ida.person, chosen)), expected, "{chosen}");
            assert_eq!(refusal(change(chosen)), expected, "{chosen}");
        }
        assert_eq!(
            refusal(join(app, "acme acme 2026")),
            "invalid /password too_personal",
            "the company's name"
        );
        join(app, NEW).unwrap();
        reset(&globex, ida.person, NEW).unwrap();
        change(NEW).unwrap();
    });
}

#[test]
fn the_same_letters_are_the_same_password_from_every_keyboard() {
    let app = TestApp::on(Engine::Sqlite);
    let services = app.app().services();
    let (composed, decomposed) = ("M\u{fc}nchen im Regen", "Mu\u{308}nchen im Regen");
    for chosen in [composed, decomposed] {
        let hash = password::hash(services, chosen).unwrap();
        assert!(password::verify(composed, &hash) && password::verify(decomposed, &hash));
        assert!(!password::verify("Munchen im Regen", &hash));
    }
}

#[test]
fn a_password_is_checked_as_it_was_typed() {
    let app = TestApp::on(Engine::Sqlite);
    let chosen = format!("Kestrel over 7 Bridges {}", "and on ".repeat(30));
    let hash = password::hash(app.app().services(), &chosen).unwrap();
    assert!(password::verify(&chosen, &hash));
    let others = [
        chosen.to_lowercase(),
        chosen.to_uppercase(),
        chosen.replace("Bridges", "bridges"),
        chosen.trim_end().to_owned(),
        format!(" {chosen}"),
        chosen[..72].to_owned(),
    ];
    for other in others {
        assert!(!password::verify(&other, &hash), "{other:?}");
    }
}
