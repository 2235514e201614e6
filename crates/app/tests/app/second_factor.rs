//! Second factors: authenticator apps, passkeys and recovery codes of a login, and companies that require one. The threats
//! of `docs/identity.md` that they close, and what else is true of them.

use rapport_app::failed_login;
use rapport_app::passkey::{
    AddPasskey, Aim, Answer, BeginPasskey, Challenge, RemovePasskey, Used, challenge, new_challenge,
};
use rapport_app::password_reset::{OpenReset, ProveAddress, RequestReset, answer_requests};
use rapport_app::person::ChangePassword;
use rapport_app::proof::ProveAgain;
use rapport_app::read::factors;
use rapport_app::recovery_code::MakeRecoveryCodes;
use rapport_app::second_factor::{Added, ResetFactors};
use rapport_app::second_step::{self, Asked, Completed, Shown, Standing};
use rapport_app::session::{EndSession, LogIn, Proven, read_cookie};
use rapport_app::settings::PatchSettings;
use rapport_app::totp::{ConfirmApp, RemoveApp, SetUpApp};
use rapport_app::{Access, Error, Needs, Origin, password};
use rapport_domain::audit::Filter;
use rapport_domain::credential::Presented;
use rapport_domain::device::Device;
use rapport_domain::id::PersonId;
use rapport_domain::member::{Email, Member, Role};
use rapport_domain::password::Known;
use rapport_domain::request_id::RequestId;
use rapport_domain::right::Right;
use rapport_domain::second_factor::{Code, Factor};
use rapport_domain::totp::{MAX_WRONG_CODES, TotpSecret};
use rapport_testkit::app::Hire;
use rapport_testkit::{Authenticator, TestApp, TestCompany, block_on};
use serde_json::{Value, json};

use crate::mail::{BASE_URL, mails, on_both_with_mail, take};
use crate::refusal;

const PASSWORD: &str = "the password of Ana";
const LACKS: &str = "forbidden second_factor_required";
const UNPROVEN: &str = "forbidden proof_required";
const ROLE: Needs = Needs::Right(Right::Read);

/// Ana, who is logged in to a company.
struct Ana<'a> {
    company: &'a TestCompany,
    member: Member,
    session: Presented,
}

impl<'a> Ana<'a> {
    /// With a login for this company only.
    fn at(company: &'a TestCompany) -> Self {
        Self::hired(company, false)
    }

    fn hired(company: &'a TestCompany, is_proven: bool) -> Self {
        let services = company.app().services();
        let password_hash = password::hash(services, PASSWORD).unwrap();
        let (email, name, role) = (email(), "Ana".to_owned(), Role::Member);
        let hire = Hire { email, name, role, password_hash, is_proven };
        let member = block_on(company.app().write(&Access::System(company.id()), hire)).unwrap();
        let session = begin(company, member.person);
        Self { company, member, session }
    }

    fn person(&self) -> PersonId {
        self.member.person
    }

    fn access(&self) -> Access {
        Access::Credential(self.session)
    }

    /// Sets up an authenticator app in this session.
    fn set_up_app(&self) -> (TotpSecret, Added) {
        let app = self.company.write_as(&self.access(), SetUpApp).unwrap();
        let secret = TotpSecret::parse(&app.secret).unwrap();
        let typed = secret.code_at(self.company.app().now());
        let confirmed = self.company.write_as(&self.access(), ConfirmApp { typed, session: self.session });
        (secret, confirmed.unwrap())
    }

    fn new_challenge(&self) -> Challenge {
        let holder = self.company.write_as(&self.access(), BeginPasskey).unwrap();
        new_challenge(self.company.app().services(), self.session, holder).unwrap()
    }

    fn add(&self, name: &str, state: &str, sent: &str) -> Result<Added, Error> {
        let services = self.company.app().services();
        let command = AddPasskey::check(services, self.session, name.to_owned(), state, sent)?;
        self.company.write_as(&self.access(), command)
    }

    /// Adds a passkey in this session.
    fn add_passkey(&self, name: &str) -> (Authenticator, Added) {
        let asked = self.new_challenge();
        let (authenticator, sent) = Authenticator::create(&asked.options, BASE_URL);
        let added = self.add(name, &asked.state, &sent).unwrap();
        (authenticator, added)
    }

    /// Gives the password somewhere else; what is asked for next.
    fn log_in(&self) -> Option<Asked> {
        let ticket = self.first_step(PASSWORD)?;
        block_on(Asked::by_ticket(self.company.app(), &ticket)).unwrap()
    }

    fn first_step(&self, password: &str) -> Option<String> {
        let app = self.company.app();
        let proven =
            block_on(LogIn::look(app, email(), None)).unwrap().check(password).expect("her password");
        block_on(second_step::begin(app, proven)).unwrap()
    }

    fn show(&self, asked: &Asked, typed: &str) -> Completed {
        let shown = Shown::Code(Code::read(typed).expect("a code"));
        block_on(self.company.app().write(&asked.access(), asked.complete(shown, None))).unwrap()
    }

    /// Logs in with the password and this code.
    fn try_code(&self, typed: &str) -> Completed {
        self.show(&self.log_in().expect("she has a factor"), typed)
    }

    fn passkeys(&self) -> Vec<rapport_domain::second_factor::Passkey> {
        let person = self.person();
        self.company.read(move |snapshot| factors::of(snapshot, person)).passkeys
    }
}

fn email() -> Email {
    Email::parse("ana@acme.test").unwrap()
}

/// A session without a second factor, as one that began before there was one.
fn begin(company: &TestCompany, person: PersonId) -> Presented {
    let proven = Proven { person, company: company.id() };
    read_cookie(&block_on(company.app().write(&proven.access(), proven.begin(None))).unwrap()).unwrap()
}

fn look(company: &TestCompany, session: Presented, needs: Needs) -> Result<(), Error> {
    let access = Access::Credential(session);
    block_on(company.app().read(&access, needs, |_, _| Ok(()))).map(|_| ())
}

fn begun(completed: &Completed) -> Presented {
    match completed {
        Completed::Begun(cookie) => read_cookie(cookie).unwrap(),
        other => panic!("expected a session, got {other:?}"),
    }
}

/// What a passkey is worth: checked as at the login page.
fn used(company: &TestCompany, asked: &Challenge, sent: &str, expected: Option<PersonId>) -> Option<Used> {
    let services = company.app().services();
    let answer = Answer::read(services, Aim::Login, &asked.state, sent)?;
    let known = block_on(answer.look(company.app())).unwrap()?;
    answer.check(services, known, expected)
}

/// Logs in with a passkey alone.
fn log_in_by_passkey(company: &TestCompany, authenticator: &mut Authenticator) -> Option<Completed> {
    let asked = challenge(company.app().services(), Aim::Login, &[]).unwrap();
    let sent = authenticator.answer(&asked.options);
    let used = used(company, &asked, &sent, None)?;
    let (proven, _) = block_on(second_step::with_passkey(company.app(), used.person())).unwrap()?;
    Some(block_on(company.app().write(&proven.access(), proven.complete(used, None))).unwrap())
}

/// The audit log since it had `known` entries, as action and detail.
fn log_since(company: &TestCompany, known: usize) -> Vec<Value> {
    let page = company.read(|snapshot| rapport_store::audit::list(snapshot, &Filter::default(), None, 1000));
    let entry = |entry: &rapport_store::audit::AuditEntry| {
        json!([entry.action, serde_json::from_str::<Value>(&entry.detail).unwrap()])
    };
    page.items.iter().rev().map(entry).skip(known).collect()
}

fn subjects(company: &TestCompany) -> Vec<String> {
    mails(company).into_iter().map(|mail| mail.subject).collect()
}

#[test]
fn a_stolen_password_is_not_enough() {
    on_both_with_mail(|app| {
        let ana = Ana::at(app);
        assert_eq!(ana.first_step(PASSWORD), None, "she has no second factor yet");
        let (secret, _) = ana.set_up_app();
        let sessions = app.rows("session");
        let asked = ana.log_in().expect("a second step");
        assert_eq!((asked.has_app, asked.credentials.len()), (true, 0));
        assert_eq!(app.rows("session"), sessions, "the password alone begins no session");
        assert_eq!(ana.show(&asked, "000000"), Completed::Wrong);
        app.clock().advance_seconds(30);
        let known = log_since(app, 0).len();
        let session = begun(&ana.show(&asked, &secret.code_at(app.clock().now())));
        assert!(look(app, session, ROLE).is_ok());
        assert_eq!(log_since(app, known), [json!(["session.begun", {"factor": "totp"}])]);
    });
}

#[test]
fn a_code_works_once() {
    on_both_with_mail(|app| {
        let ana = Ana::at(app);
        let (secret, _) = ana.set_up_app();
        let confirmed_with = secret.code_at(app.clock().now());
        assert_eq!(ana.try_code(&confirmed_with), Completed::Wrong, "it was used to confirm the app");
        app.clock().advance_seconds(60);
        let (before, now) = (app.clock().now().plus_seconds(-30), app.clock().now());
        begun(&ana.try_code(&secret.code_at(now)));
        assert_eq!(ana.try_code(&secret.code_at(now)), Completed::Wrong, "somebody looked over her shoulder");
        assert_eq!(ana.try_code(&secret.code_at(before)), Completed::Wrong, "it is older than the last one");
        begun(&ana.try_code(&secret.code_at(now.plus_seconds(30))));
    });
}

#[test]
fn guessed_codes_are_refused_after_a_hundred() {
    on_both_with_mail(|app| {
        let ana = Ana::at(app);
        let (secret, added) = ana.set_up_app();
        let codes = added.recovery_codes.expect("ten codes");
        app.clock().advance_seconds(60);
        let right = secret.code_at(app.clock().now());
        let wrong = if right == "123456" { "654321" } else { "123456" };
        let asked = ana.log_in().unwrap();
        for _ in 0..MAX_WRONG_CODES - 1 {
            assert_eq!(ana.show(&asked, wrong), Completed::Wrong);
        }
        assert!(!subjects(app).contains(&"Somebody knows your password on Rapport".to_owned()));
        assert_eq!(ana.show(&asked, wrong), Completed::Wrong);
        assert!(subjects(app).contains(&"Somebody knows your password on Rapport".to_owned()));
        assert_eq!(ana.show(&asked, &right), Completed::Refused);
        // She gets in another way, and then her app counts again.
        begun(&ana.show(&asked, &codes[0]));
        begun(&ana.show(&asked, &right));
    });
}

#[test]
fn a_recovery_code_works_once_and_is_announced() {
    on_both_with_mail(|app| {
        let ana = Ana::at(app);
        let (_, added) = ana.set_up_app();
        let codes = added.recovery_codes.expect("ten codes");
        assert_eq!((codes.len(), app.rows("recovery_code")), (10, 10));
        let asked = ana.log_in().unwrap();
        begun(&ana.show(&asked, &codes[3].to_uppercase().replace('-', " ")));
        let sent = take(app).pop().expect("a mail");
        assert_eq!(
            (sent.recipient.as_str(), sent.subject.as_str()),
            ("ana@acme.test", "A recovery code was used on Rapport")
        );
        assert!(sent.plain.contains("Unused codes left: 9."), "{}", sent.plain);
        assert_eq!(ana.show(&asked, &codes[3]), Completed::Wrong);
        // New codes end the old ones.
        let renewed = app.write_as(&ana.access(), MakeRecoveryCodes).unwrap();
        assert_eq!(ana.show(&asked, &codes[4]), Completed::Wrong);
        begun(&ana.show(&asked, &renewed[0]));
        let someone_else = app.employ("bo@acme.test", "Bo", Role::Member);
        let bos = Access::Credential(begin(app, someone_else.person));
        assert_eq!(refusal(app.write_as(&bos, MakeRecoveryCodes)), "conflict no_second_factor");
    });
}

#[test]
fn the_first_step_lasts_five_minutes_and_ends_with_the_password() {
    on_both_with_mail(|app| {
        let ana = Ana::at(app);
        ana.set_up_app();
        let open = |ticket: &str| block_on(Asked::by_ticket(app.app(), ticket)).unwrap().is_some();
        let ticket = ana.first_step(PASSWORD).unwrap();
        assert!(open(&ticket));
        let forged = ticket.replace(['a', 'b'], "c");
        assert!(!open(&forged) && !open("") && !open("1.e30.00"));
        app.clock().advance_seconds(299);
        assert!(open(&ticket));
        app.clock().advance_seconds(1);
        assert!(!open(&ticket), "it is five minutes old");
        let again = ana.first_step(PASSWORD).unwrap();
        let (services, chosen) = (app.app().services(), "kestrel over 7 bridges");
        let login = ana.company.read({
            let person = ana.person();
            move |snapshot| rapport_store::member::login(snapshot, person)
        });
        let known = Known { email: &email(), name: "Ana", company: "Acme" };
        let change =
            ChangePassword::check(services, &login.unwrap(), &known, (PASSWORD, chosen), ana.session)
                .unwrap();
        app.write_as(&ana.access(), change).unwrap();
        assert!(!open(&again), "the password has changed");
        let last = ana.first_step(chosen).unwrap();
        app.write(ResetFactors(ana.person())).unwrap();
        assert!(!open(&last), "she has no second factor any more");
    });
}

#[test]
fn a_passkey_alone_logs_in_and_counts_as_two_factors() {
    on_both_with_mail(|app| {
        let ana = Ana::at(app);
        let (mut laptop, added) = ana.add_passkey("Laptop");
        assert_eq!(added.recovery_codes.map(|codes| codes.len()), Some(10));
        app.clock().advance_seconds(60);
        let completed = log_in_by_passkey(app, &mut laptop).expect("accepted");
        app.set(json!({"second_factor_required": true}));
        assert!(look(app, begun(&completed), ROLE).is_ok());
        let passkey = ana.passkeys().remove(0);
        assert_eq!((passkey.name.as_str(), passkey.last_used_at), ("Laptop", Some(app.clock().now())));
        let (mut phone, added) = ana.add_passkey("Phone");
        assert!(added.recovery_codes.is_none(), "she has codes already");
        // Also after the password.
        let asked = ana.log_in().unwrap();
        assert_eq!((asked.has_app, asked.credentials.len()), (false, 2));
        let posed = challenge(app.app().services(), Aim::Login, &asked.credentials).unwrap();
        assert_eq!(posed.options["publicKey"]["allowCredentials"].as_array().map(Vec::len), Some(2));
        let shown = used(app, &posed, &phone.answer(&posed.options), Some(ana.person())).expect("accepted");
        let complete = asked.complete(Shown::Passkey(shown), None);
        begun(&block_on(app.app().write(&asked.access(), complete)).unwrap());
    });
}

#[test]
fn an_answer_of_a_passkey_counts_once_and_only_for_us() {
    on_both_with_mail(|app| {
        let ana = Ana::at(app);
        let (mut laptop, _) = ana.add_passkey("Laptop");
        let services = app.app().services();
        let posed = challenge(services, Aim::Login, &[]).unwrap();
        laptop.counts = false;
        let sent = laptop.answer(&posed.options);
        let complete = || {
            let used = used(app, &posed, &sent, None)?;
            let proven = Proven { person: ana.person(), company: app.id() };
            Some(block_on(app.app().write(&proven.access(), proven.complete(used, None))).unwrap())
        };
        let twice = [complete(), complete()];
        assert!(matches!(twice, [Some(Completed::Begun(_)), Some(Completed::Wrong)]), "{twice:?}");

        (laptop.counts, laptop.counter) = (true, 10);
        begun(&log_in_by_passkey(app, &mut laptop).expect("accepted"));
        let posed = challenge(services, Aim::Login, &[]).unwrap();
        let accepted = |sent: &str| used(app, &posed, sent, None).is_some();
        assert!(accepted(&laptop.answer(&posed.options)));
        laptop.verifies = false;
        assert!(!accepted(&laptop.answer(&posed.options)), "the device must recognize its owner");
        laptop.verifies = true;
        laptop.origin = "https://crm.acme.test.evil.test".to_owned();
        assert!(!accepted(&laptop.answer(&posed.options)), "a page that looks like ours asked for it");
        laptop.origin = BASE_URL.to_owned();
        laptop.counter = 5;
        assert!(
            !accepted(&laptop.answer(&posed.options)),
            "a copy of the authenticator, as its counter shows"
        );
        laptop.counter = 100;
        let other = challenge(services, Aim::Login, &[]).unwrap();
        assert!(!accepted(&laptop.answer(&other.options)), "it answers another challenge");
        let right = laptop.answer(&posed.options);
        let named = right.replace("\"userHandle\":\"", "\"userHandle\":\"AAAA");
        assert!(!accepted(&named), "it names somebody else");
        let forged = Challenge { state: posed.state.replace('a', "b"), options: posed.options.clone() };
        assert!(used(app, &forged, &right, None).is_none(), "we didn't sign this challenge");
        assert!(accepted(&right));
        app.clock().advance_seconds(300);
        assert!(!accepted(&right), "the challenge is five minutes old");
    });
}

#[test]
fn a_passkey_of_somebody_else_is_no_second_factor() {
    on_both_with_mail(|app| {
        let ana = Ana::at(app);
        ana.set_up_app();
        let bo = app.employ("bo@acme.test", "Bo", Role::Member);
        let bo = Ana { company: app, session: begin(app, bo.person), member: bo };
        let (mut theirs, _) = bo.add_passkey("Theirs");
        let posed = challenge(app.app().services(), Aim::Login, &[]).unwrap();
        let sent = theirs.answer(&posed.options);
        assert!(used(app, &posed, &sent, Some(ana.person())).is_none());
        // Nor if it slipped through to the last step.
        let shown = used(app, &posed, &sent, None).expect("Bo's own");
        let asked = ana.log_in().unwrap();
        let complete = asked.complete(Shown::Passkey(shown), None);
        assert_eq!(block_on(app.app().write(&asked.access(), complete)).unwrap(), Completed::Wrong);
    });
}

#[test]
fn a_new_passkey_belongs_to_the_session_that_asked_for_it() {
    on_both_with_mail(|app| {
        let ana = Ana::at(app);
        let elsewhere = Ana { session: begin(app, ana.person()), member: ana.member.clone(), ..ana };
        let asked = ana.new_challenge();
        let (_, sent) = Authenticator::create(&asked.options, BASE_URL);
        assert_eq!(refusal(elsewhere.add("Theirs", &asked.state, &sent)), "invalid /passkey malformed");
        ana.add("Mine", &asked.state, &sent).unwrap();
        assert_eq!(refusal(ana.add("Twice", &asked.state, &sent)), "conflict passkey_known");
        let late = ana.new_challenge();
        let (_, sent) = Authenticator::create(&late.options, BASE_URL);
        app.clock().advance_seconds(300);
        assert_eq!(refusal(ana.add("Late", &late.state, &sent)), "invalid /passkey malformed");
        let asked = ana.new_challenge();
        let (_, sent) = Authenticator::create(&asked.options, "https://evil.test");
        assert_eq!(refusal(ana.add("Phished", &asked.state, &sent)), "invalid /passkey malformed");
        assert_eq!(ana.passkeys().len(), 1);
    });
}

#[test]
fn a_session_without_the_factor_can_neither_look_nor_add_another() {
    on_both_with_mail(|app| {
        let ana = Ana::at(app);
        let (secret, _) = ana.set_up_app();
        // As a node of the release before would begin one, by the password alone.
        let weak = begin(app, ana.person());
        let access = Access::Credential(weak);
        assert_eq!(refusal(look(app, weak, ROLE)), LACKS);
        assert_eq!(refusal(app.write_as(&access, SetUpApp)), LACKS);
        assert_eq!(refusal(app.write_as(&access, BeginPasskey)), LACKS);
        // Nor with a challenge that it got somehow.
        let holder = app.write_as(&ana.access(), BeginPasskey).unwrap();
        let asked = new_challenge(app.app().services(), weak, holder).unwrap();
        let (_, sent) = Authenticator::create(&asked.options, BASE_URL);
        let add =
            AddPasskey::check(app.app().services(), weak, "Mine".to_owned(), &asked.state, &sent).unwrap();
        assert_eq!(refusal(app.write_as(&access, add)), LACKS);
        // Showing the factor replaces the session.
        let Standing::Show(asked) = block_on(Asked::by_session(app.app(), weak)).unwrap() else {
            panic!("she has to show her factor")
        };
        app.clock().advance_seconds(60);
        let strong = begun(&ana.show(&asked, &secret.code_at(app.clock().now())));
        assert!(look(app, strong, ROLE).is_ok());
        assert_eq!(refusal(look(app, weak, Needs::Login)), "unauthenticated");
    });
}

#[test]
fn a_required_factor_is_set_up_before_anything_is_seen() {
    on_both_with_mail(|app| {
        let (b, ana) = (app.company("b"), Ana::hired(app, true));
        let there = Ana::hired(&b, true);
        assert_eq!(there.person(), ana.person(), "she works for two companies");
        app.set(json!({"second_factor_required": true}));
        assert_eq!(refusal(look(app, ana.session, ROLE)), LACKS, "at the next request");
        assert!(look(app, ana.session, Needs::Login).is_ok());
        assert!(matches!(block_on(Asked::by_session(app.app(), ana.session)).unwrap(), Standing::SetUp));
        assert!(look(&b, there.session, ROLE).is_ok(), "the other company requires nothing");
        app.upsert(json!({"imported_id": "crm-1"}));
        let (_, added) = ana.set_up_app();
        assert!(added.recovery_codes.is_some());
        assert!(look(app, ana.session, ROLE).is_ok());
        // What was shown here counts there too.
        b.set(json!({"second_factor_required": true}));
        let proven = Proven { person: ana.person(), company: b.id() };
        let switch = proven.begin(None).replacing(ana.session);
        let moved = read_cookie(&block_on(app.app().write(&proven.access(), switch)).unwrap()).unwrap();
        assert!(look(&b, moved, ROLE).is_ok());
        let fresh = begin(&b, ana.person());
        assert_eq!(refusal(look(&b, fresh, ROLE)), LACKS);
    });
}

#[test]
fn the_last_factor_stays_while_a_company_requires_one() {
    on_both_with_mail(|app| {
        let ana = Ana::at(app);
        ana.set_up_app();
        ana.add_passkey("Laptop");
        app.set(json!({"second_factor_required": true}));
        let remove = || RemovePasskey { id: ana.passkeys().remove(0).id, kept: ana.session };
        app.write_as(&ana.access(), remove()).unwrap();
        let last = || app.write_as(&ana.access(), RemoveApp { kept: ana.session });
        assert_eq!(refusal(last()), "conflict second_factor_required");
        app.set(json!({"second_factor_required": false}));
        last().unwrap();
        assert_eq!(refusal(last()), "no such authenticator app");
        assert_eq!(["passkey", "totp", "recovery_code"].map(|table| app.rows(table)), [0, 0, 0]);
        assert_eq!(ana.first_step(PASSWORD), None);
    });
}

#[test]
fn adding_and_removing_ends_other_sessions_and_is_told() {
    on_both_with_mail(|app| {
        let ana = Ana::at(app);
        let known = log_since(app, 0).len();
        let thief = begin(app, ana.person());
        ana.add_passkey("Laptop");
        assert_eq!(refusal(look(app, thief, Needs::Login)), "unauthenticated");
        assert!(look(app, ana.session, ROLE).is_ok());
        let (secret, _) = ana.set_up_app();
        app.clock().advance_seconds(60);
        let elsewhere = begun(&ana.try_code(&secret.code_at(app.clock().now())));
        assert!(look(app, elsewhere, ROLE).is_ok());
        app.write_as(&ana.access(), RemovePasskey { id: ana.passkeys().remove(0).id, kept: ana.session })
            .unwrap();
        assert_eq!(refusal(look(app, elsewhere, Needs::Login)), "unauthenticated");
        let log: Vec<Value> = log_since(app, known);
        let factors: Vec<&Value> = log.iter().filter(|entry| entry[0] != "session.begun").collect();
        let expected = [
            json!(["factor.added", {"factor": "passkey", "name": "Laptop"}]),
            json!(["factor.added", {"factor": "totp"}]),
            json!(["factor.removed", {"factor": "passkey", "name": "Laptop"}]),
        ];
        assert_eq!(factors, expected.iter().collect::<Vec<_>>());
        let told = [
            "A way to log in was added on Rapport",
            "A way to log in was added on Rapport",
            "A way to log in was removed on Rapport",
        ];
        assert_eq!(subjects(app), told);
        assert!(take(app).iter().all(|mail| mail.recipient == email() && mail.plain.contains("/forgotten")));
    });
}

#[test]
fn an_app_counts_only_after_its_first_code() {
    on_both_with_mail(|app| {
        let ana = Ana::at(app);
        let first = app.write_as(&ana.access(), SetUpApp).unwrap();
        assert_eq!(ana.first_step(PASSWORD), None);
        let confirm = |secret: &str, ahead: i64| {
            let typed = TotpSecret::parse(secret).unwrap().code_at(app.clock().now().plus_seconds(ahead));
            app.write_as(&ana.access(), ConfirmApp { typed, session: ana.session })
        };
        assert_eq!(refusal(confirm(&first.secret, 300)), "invalid /code wrong_code");
        // A second try has a secret of its own.
        let second = app.write_as(&ana.access(), SetUpApp).unwrap();
        assert!(
            second.uri.contains("ana%40acme.test") && second.uri.contains(&second.secret),
            "{}",
            second.uri
        );
        assert_eq!(refusal(confirm(&first.secret, 0)), "invalid /code wrong_code");
        confirm(&second.secret, 0).unwrap();
        assert_eq!(refusal(app.write_as(&ana.access(), SetUpApp)), "conflict totp_known");
        assert_eq!(refusal(confirm(&second.secret, 0)), "no such authenticator app");
        let plain = app.number("SELECT count(*) FROM totp WHERE length(secret) < 40");
        assert_eq!(plain, 0, "the secret is encrypted");
    });
}

#[test]
fn only_an_owner_resets_factors_and_only_of_a_login_that_works_here_alone() {
    on_both_with_mail(|app| {
        let ana = Ana::at(app);
        assert_eq!(refusal(app.write(ResetFactors(ana.person()))), "conflict no_second_factor");
        ana.set_up_app();
        let (mut laptop, _) = ana.add_passkey("Laptop");
        let admin = app.token_of(Role::Admin);
        assert_eq!(refusal(app.write_as(&admin, ResetFactors(ana.person()))), "forbidden role_required");
        let b = app.company("b");
        assert_eq!(refusal(b.write(ResetFactors(ana.person()))), "no such member");
        let known = log_since(app, 0).len();
        app.write(ResetFactors(ana.person())).unwrap();
        assert_eq!(log_since(app, known), [json!(["factor.reset", {"email": "ana@acme.test"}])]);
        assert_eq!(subjects(app).pop().as_deref(), Some("Your second factor was reset on Rapport"));
        assert_eq!(refusal(look(app, ana.session, Needs::Login)), "unauthenticated");
        assert!(log_in_by_passkey(app, &mut laptop).is_none());
        assert_eq!(ana.first_step(PASSWORD), None);
    });
}

#[test]
fn a_login_that_works_elsewhere_is_reset_by_its_holder_or_on_the_server() {
    on_both_with_mail(|app| {
        let ana = Ana::hired(app, true);
        ana.set_up_app();
        assert_eq!(refusal(app.write(ResetFactors(ana.person()))), "conflict login_not_confined");
        assert!(look(app, ana.session, ROLE).is_ok());
        let on_server = Access::CommandLine(app.id());
        block_on(app.app().write(&on_server, ResetFactors(ana.person()))).unwrap();
        assert_eq!(ana.first_step(PASSWORD), None);
    });
}

#[test]
fn an_owner_removes_their_own_factors_on_their_profile_only() {
    on_both_with_mail(|app| {
        let owner = app.read(rapport_store::member::list).remove(0);
        let owner = Ana { company: app, session: begin(app, owner.person), member: owner };
        owner.set_up_app();
        let refused = app.write_as(&owner.access(), ResetFactors(owner.person()));
        assert_eq!(refusal(refused), "conflict own_second_factor");
    });
}

/// A link for a new password, taken from the last mail.
fn use_link(company: &TestCompany, chosen: &str) {
    let sent = take(company).pop().expect("a mail").plain;
    let start = sent.find("rpw_").expect("a link");
    let token = sent[start..].split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap();
    let open = block_on(OpenReset::look(company.app(), token)).unwrap();
    let (access, hash) = (open.access(), password::hash(company.app().services(), chosen).unwrap());
    block_on(company.app().write(&access, open.confirm(hash))).unwrap();
}

#[test]
fn reading_somebodys_mail_does_not_get_past_their_factor() {
    on_both_with_mail(|app| {
        let ana = Ana::at(app);
        let (secret, _) = ana.set_up_app();
        take(app);
        block_on(app.app().write(&Access::NO_COMPANY, RequestReset(email()))).unwrap();
        block_on(answer_requests(app.app())).unwrap();
        use_link(app, "chosen by the thief");
        let ticket = ana.first_step("chosen by the thief").expect("the second step");
        app.clock().advance_seconds(60);
        let asked = block_on(Asked::by_ticket(app.app(), &ticket)).unwrap().unwrap();
        begun(&ana.show(&asked, &secret.code_at(app.clock().now())));
        assert_eq!(app.number("SELECT count(*) FROM person WHERE proven_at IS NOT NULL"), 0);
    });
}

#[test]
fn a_squatters_passkey_ends_when_the_owner_proves_the_address() {
    on_both_with_mail(|app| {
        let squatter = Ana::at(app);
        let (mut theirs, _) = squatter.add_passkey("Not Ana's");
        take(app);
        block_on(app.app().write(&squatter.access(), ProveAddress)).unwrap();
        use_link(app, "only Ana knows this one");
        assert_eq!(app.number("SELECT count(*) FROM person WHERE proven_at IS NOT NULL"), 1);
        assert!(log_in_by_passkey(app, &mut theirs).is_none());
        assert_eq!(squatter.first_step("only Ana knows this one"), None, "she sets up her own");
    });
}

#[test]
fn a_wrong_factor_is_a_failed_login_of_its_person_alone() {
    on_both_with_mail(|app| {
        let b = app.company("b");
        let ana = Ana::at(app);
        // Somebody else's login with the same address.
        b.employ("ana@acme.test", "Not Ana", Role::Member);
        let known = [log_since(app, 0).len(), log_since(&b, 0).len()];
        let request = RequestId::parse(b"abc-1").unwrap();
        let origin = Origin { address: [192, 0, 2, 7].into(), request, device: Device::of("") };
        block_on(failed_login::record_factor(app.app(), ana.person(), Factor::Totp, origin)).unwrap();
        let failed = json!(["session.failed", {"email": "ana@acme.test", "factor": "totp"}]);
        assert_eq!(log_since(app, known[0]), [failed]);
        assert_eq!(log_since(&b, known[1]), [Value::Null; 0]);
    });
}

#[test]
fn a_session_that_was_left_open_changes_no_factor() {
    on_both_with_mail(|app| {
        let ana = Ana::at(app);
        ana.set_up_app();
        let (mut laptop, _) = ana.add_passkey("Laptop");
        let id = ana.passkeys().remove(0).id;
        let waiting = ana.new_challenge();
        let (_, sent) = Authenticator::create(&waiting.options, BASE_URL);
        let add = |state: &str| {
            AddPasskey::check(app.app().services(), ana.session, "New".to_owned(), state, &sent).unwrap()
        };
        let add = add(&waiting.state);
        app.clock().advance_seconds(16 * 60);
        let kept = ana.session;
        let refused = [
            refusal(app.write_as(&ana.access(), BeginPasskey)),
            refusal(app.write_as(&ana.access(), add)),
            refusal(app.write_as(&ana.access(), RemovePasskey { id, kept })),
            refusal(app.write_as(&ana.access(), SetUpApp)),
            refusal(app.write_as(&ana.access(), ConfirmApp { typed: "000000".to_owned(), session: kept })),
            refusal(app.write_as(&ana.access(), RemoveApp { kept })),
            refusal(app.write_as(&ana.access(), MakeRecoveryCodes)),
            refusal(app.write_as(&ana.access(), ProveAddress)),
        ];
        assert_eq!(refused, [UNPROVEN; 8]);
        let owner = app.read(rapport_store::member::list).remove(0).person;
        let owner = Access::Credential(begin(app, owner));
        app.clock().advance_seconds(16 * 60);
        assert_eq!(refusal(app.write_as(&owner, ResetFactors(ana.person()))), UNPROVEN);
        let require = || PatchSettings(json!({"second_factor_required": true}).as_object().unwrap().clone());
        assert_eq!(refusal(app.write_as(&owner, require())), UNPROVEN);
        // She proves with a passkey who she is, in this session.
        prove(&ana, &mut laptop, ana.session).unwrap();
        app.write_as(&ana.access(), MakeRecoveryCodes).unwrap();
        app.write_as(&ana.access(), RemovePasskey { id, kept }).unwrap();
    });
}

/// Proves again who she is, with the answer to a challenge that was for a session.
fn prove(ana: &Ana, authenticator: &mut Authenticator, asked_in: Presented) -> Result<(), Error> {
    let services = ana.company.app().services();
    let posed = challenge(services, Aim::Proof(asked_in), &[]).unwrap();
    let sent = authenticator.answer(&posed.options);
    let answer = Answer::read(services, Aim::Proof(ana.session), &posed.state, &sent);
    let answer = answer.ok_or(Error::NotFound("challenge"))?;
    let known = block_on(answer.look(ana.company.app())).unwrap().expect("a passkey");
    let used = answer.check(services, known, None).expect("a right answer");
    ana.company.write_as(&ana.access(), ProveAgain::with_passkey(used, ana.session))
}

#[test]
fn a_passkey_proves_only_its_person_only_here_and_once() {
    on_both_with_mail(|app| {
        let ana = Ana::at(app);
        let (mut laptop, _) = ana.add_passkey("Laptop");
        laptop.counts = false;
        let bo = app.employ("bo@acme.test", "Bo", Role::Member);
        let bo = Ana { company: app, session: begin(app, bo.person), member: bo };
        let (mut theirs, _) = bo.add_passkey("Theirs");
        app.clock().advance_seconds(16 * 60);
        assert_eq!(refusal(prove(&ana, &mut theirs, ana.session)), "invalid /passkey wrong_passkey");
        assert_eq!(refusal(prove(&ana, &mut laptop, bo.session)), "no such challenge", "of another session");
        let services = app.app().services();
        let login = challenge(services, Aim::Login, &[]).unwrap();
        let sent = laptop.answer(&login.options);
        let aim = Aim::Proof(ana.session);
        assert!(Answer::read(services, aim, &login.state, &sent).is_none(), "it was asked for a login");
        assert_eq!(refusal(app.write_as(&ana.access(), MakeRecoveryCodes)), UNPROVEN);
        let known = log_since(app, 0).len();
        prove(&ana, &mut laptop, ana.session).unwrap();
        assert_eq!(log_since(app, known), [json!(["session.proved", {"factor": "passkey"}])]);
        app.write_as(&ana.access(), MakeRecoveryCodes).unwrap();

        let posed = challenge(services, aim, &[]).unwrap();
        let sent = laptop.answer(&posed.options);
        let again = || {
            let answer = Answer::read(services, aim, &posed.state, &sent).expect("ours");
            let known = block_on(answer.look(app.app())).unwrap().expect("a passkey");
            let used = answer.check(services, known, None).expect("a right answer");
            app.write_as(&ana.access(), ProveAgain::with_passkey(used, ana.session))
        };
        again().unwrap();
        assert_eq!(refusal(again()), "invalid /passkey wrong_passkey", "it counts once");
    });
}

#[test]
fn every_way_to_log_in_is_a_proof() {
    on_both_with_mail(|app| {
        let ana = Ana::at(app);
        let (secret, added) = ana.set_up_app();
        let codes = added.recovery_codes.expect("ten codes");
        let (mut laptop, _) = ana.add_passkey("Laptop");
        app.clock().advance_seconds(16 * 60);
        let by_code = begun(&ana.try_code(&secret.code_at(app.clock().now())));
        let by_recovery = begun(&ana.try_code(&codes[0]));
        let by_passkey = begun(&log_in_by_passkey(app, &mut laptop).expect("accepted"));
        for session in [by_code, by_recovery, by_passkey] {
            app.write_as(&Access::Credential(session), BeginPasskey).unwrap();
        }
        assert_eq!(refusal(app.write_as(&ana.access(), BeginPasskey)), UNPROVEN, "this one is older");
    });
}

/// Somebody whose company requires a factor needs a proof before they set it up, and may give one.
#[test]
fn a_factor_that_is_required_is_set_up_with_a_proof() {
    on_both_with_mail(|app| {
        let ana = Ana::at(app);
        app.set(json!({"second_factor_required": true}));
        app.clock().advance_seconds(16 * 60);
        assert_eq!(refusal(app.write_as(&ana.access(), SetUpApp)), UNPROVEN);
        let person = ana.person();
        let login = app.read(move |snapshot| rapport_store::member::login(snapshot, person)).unwrap();
        let proof = ProveAgain::check(&login, PASSWORD, ana.session).unwrap();
        app.write_as(&ana.access(), proof).unwrap();
        assert_eq!(refusal(look(app, ana.session, ROLE)), LACKS, "the proof is no factor");
        ana.set_up_app();
        assert!(look(app, ana.session, ROLE).is_ok());
        // Nobody proves anything in a session that lacks the factor.
        let weak = begin(app, ana.person());
        let proof = ProveAgain::check(&login, PASSWORD, weak).unwrap();
        assert_eq!(refusal(app.write_as(&Access::Credential(weak), proof)), LACKS);
    });
}

/// A stolen session doesn't become younger when somebody shows the second factor that it lacks.
#[test]
fn showing_the_factor_makes_a_session_no_younger() {
    on_both_with_mail(|app| {
        let ana = Ana::at(app);
        let (_, added) = ana.set_up_app();
        let codes = added.recovery_codes.expect("ten codes");
        let weak = begin(app, ana.person());
        let began = app.clock().now();
        app.clock().advance_days(1);
        let Standing::Show(asked) = block_on(Asked::by_session(app.app(), weak)).unwrap() else {
            panic!("she has to show her factor")
        };
        let strong = begun(&ana.show(&asked, &codes[0]));
        let person = ana.person();
        let sessions = app.read(move |snapshot| rapport_store::session::of_person(snapshot, person));
        let strong = sessions.into_iter().find(|listed| listed.hash.matches(&strong.hash)).expect("listed");
        let now = app.clock().now();
        assert_eq!((strong.created_at, strong.proved_at, strong.second_factor_at), (began, now, Some(now)));
        // Nor does an ended one come back.
        let weak = begin(app, ana.person());
        let Standing::Show(asked) = block_on(Asked::by_session(app.app(), weak)).unwrap() else {
            panic!("she has to show her factor")
        };
        app.write_as(&Access::Credential(weak), EndSession(weak)).unwrap();
        let shown = Shown::Code(Code::read(&codes[1]).expect("a code"));
        let late = block_on(app.app().write(&asked.access(), asked.complete(shown, None)));
        assert_eq!(refusal(late), "unauthenticated");
    });
}

#[test]
fn without_a_host_name_there_are_no_passkeys() {
    TestApp::on_both(|app| {
        let services = app.app().services();
        assert!(services.passkeys().is_err(), "the default base URL is an IP address");
        assert!(challenge(services, Aim::Login, &[]).is_err());
        let ana = Ana::at(app);
        let (secret, _) = ana.set_up_app();
        app.clock().advance_seconds(60);
        begun(&ana.try_code(&secret.code_at(app.clock().now())));
    });
}
