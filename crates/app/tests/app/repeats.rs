//! Requests with a key: their command runs once, and every repeat gets the response of the first one.

use std::sync::Arc;
use std::thread;

use rapport_app::account::CreateAccount;
use rapport_app::credential::{CreateToken, NewCredential};
use rapport_app::retention::{Round, step};
use rapport_app::submission::{Claim, Outcome, Repeatable, Response};
use rapport_app::{Answer, App, Command, Error, Viewer};
use rapport_domain::account::{Account, Create};
use rapport_domain::credential::{SecretHash, TokenRequest};
use rapport_domain::member::Role;
use rapport_domain::repeat::{Key, MAX_KEPT_BYTES, MAX_KEYS_OF_SHARE, RequestHash, RequestHasher};
use rapport_store::{Database, Snapshot};
use rapport_testkit::{TestApp, block_on, raw};
use serde_json::json;

use crate::refusal;

const CREDENTIAL: SecretHash = SecretHash::from_bytes([9; 32]);

fn request(body: &str) -> RequestHash {
    let mut hasher = RequestHasher::new("POST", "/api/accounts/");
    hasher.body(body.as_bytes());
    hasher.finish()
}

pub fn claim(key: &str, body: &str) -> Claim {
    Claim { id: Key::parse(key).unwrap().response_of(&CREDENTIAL), request: request(body) }
}

/// Creates an account with this name; the response is its id and the name, padded to `bytes`.
pub fn creating(claim: Claim, name: &str, bytes: usize) -> Repeatable<CreateAccount, ()> {
    let body = json!({ "name": name });
    let command = CreateAccount(Create::parse(body.as_object().unwrap()).unwrap());
    let render = Arc::new(move |_: &mut Snapshot, _: &Viewer, made: Answer<Account>| {
        let mut body = format!("{} {}", made.reply.id, made.reply.name);
        body.extend(std::iter::repeat_n(' ', bytes.saturating_sub(body.len())));
        Ok((Response { status: 201, body, is_secret: false }, ()))
    });
    Repeatable { claim, command, render }
}

fn create(app: &TestApp, key: &str, name: &str) -> Outcome<()> {
    app.write(creating(claim(key, name), name, 0)).unwrap()
}

/// The body of a response, whether it was made now or before.
fn body(outcome: &Outcome<()>) -> String {
    match outcome {
        Outcome::Done { response, .. } => response.body.clone(),
        Outcome::Repeated { body: Some(body), status: 201 } => body.clone(),
        other => panic!("{other:?}"),
    }
}

/// Bytes in SQL.
pub fn bytes_literal(database: &Database, hex: &str) -> String {
    match database {
        Database::Sqlite(_) => format!("x'{hex}'"),
        Database::Postgres(_) => format!("'\\x{hex}'"),
    }
}

fn prune(app: &TestApp) {
    let mut round = Round::default();
    while block_on(step(app.app(), app.id(), &mut round)).expect("a step") {}
}

#[test]
fn a_repeat_does_nothing_and_gets_the_same_response() {
    TestApp::on_both(|app| {
        let first = create(app, "a", "Nordlys");
        assert!(matches!(first, Outcome::Done { .. }));
        for _ in 0..2 {
            let again = create(app, "a", "Nordlys");
            assert_eq!(again, Outcome::Repeated { status: 201, body: Some(body(&first)) });
        }
        assert_eq!(create(app, "a", "Another"), Outcome::Reused);
        assert_eq!(app.rows("account"), 1);
        assert!(
            matches!(create(app, "b", "Nordlys"), Outcome::Done { .. }),
            "another key is another request"
        );
        let mut other = claim("a", "Nordlys");
        other.id = Key::parse("a").unwrap().response_of(&SecretHash::from_bytes([8; 32]));
        let other = app.write(creating(other, "Nordlys", 0)).unwrap();
        assert!(matches!(other, Outcome::Done { .. }), "another credential has its own keys");
        let globex = app.company("globex");
        let elsewhere = globex.write(creating(claim("a", "Nordlys"), "Nordlys", 0)).unwrap();
        assert!(matches!(elsewhere, Outcome::Done { .. }), "and so has another company");
        assert_eq!(app.rows("account"), 4);
    });
}

#[test]
fn repeats_at_the_same_time_on_two_nodes_act_once() {
    TestApp::on_both(|app| {
        const KEYS: usize = 20;
        const REPEATS: usize = 4;
        // Two processes can't share an embedded database.
        let second = matches!(app.database(), Database::Postgres(_)).then(|| app.another_node());
        let nodes: [&App; 2] = [app.app(), second.as_ref().unwrap_or_else(|| app.app())];
        let bodies: Vec<Vec<String>> = thread::scope(|scope| {
            let repeat = |number: usize| {
                let node = nodes[number % 2];
                let one = move |key: usize| {
                    let name = format!("key-{key}");
                    loop {
                        let command = creating(claim(&name, &name), &name, 0);
                        match node.write_blocking(app.token(), command) {
                            Ok(outcome) => return body(&outcome),
                            Err(Error::Busy) => {}
                            Err(error) => panic!("{error:?}"),
                        }
                    }
                };
                scope.spawn(move || (0..KEYS).map(one).collect::<Vec<_>>())
            };
            let running: Vec<_> = (0..REPEATS).map(repeat).collect();
            running.into_iter().map(|repeat| repeat.join().unwrap()).collect()
        });
        assert_eq!(app.rows("account"), i64::try_from(KEYS).unwrap());
        assert!(bodies.windows(2).all(|pair| pair[0] == pair[1]), "all get the same responses");
    });
}

#[test]
fn a_refused_request_is_not_remembered() {
    TestApp::on_both(|app| {
        let taken = || {
            let body = json!({"name": "Nordlys", "imported_id": "crm-1"});
            let command = CreateAccount(Create::parse(body.as_object().unwrap()).unwrap());
            Repeatable { command, ..creating(claim("a", "Nordlys"), "Nordlys", 0) }
        };
        app.upsert(json!({"imported_id": "crm-1"}));
        assert_eq!(refusal(app.write(taken())), "conflict imported_id_taken");
        assert_eq!(app.rows("kept_response"), 0);
        let viewer = app.token_of(Role::Viewer);
        assert_eq!(refusal(app.write_as(&viewer, taken())), "forbidden role_required");
        raw::run(app.database(), "UPDATE account SET imported_id = NULL");
        assert!(
            matches!(app.write(taken()), Ok(Outcome::Done { .. })),
            "the same key works when it can be done"
        );
        assert_eq!(
            refusal(app.write_as(&viewer, taken())),
            "forbidden role_required",
            "a response is not for everyone"
        );
    });
}

#[test]
fn a_response_is_forgotten_after_24_hours() {
    TestApp::on_both(|app| {
        let first = create(app, "a", "Nordlys");
        create(app, "b", "Globus");
        app.clock().advance_seconds(24 * 3_600 - 1);
        prune(app);
        assert_eq!(body(&create(app, "a", "Nordlys")), body(&first));
        app.clock().advance_seconds(1);
        let second = create(app, "a", "Nordlys");
        assert_ne!(body(&second), body(&first), "even if it is still stored");
        assert_eq!((app.rows("account"), app.rows("kept_response")), (3, 2));
        prune(app);
        assert_eq!(app.rows("kept_response"), 1);
        assert_eq!(body(&create(app, "a", "Nordlys")), body(&second));
    });
}

#[test]
fn what_is_kept_is_bounded() {
    TestApp::on_both(|app| {
        let large = |bytes: usize| app.write(creating(claim(&bytes.to_string(), "x"), "x", bytes)).unwrap();
        for (bytes, is_kept) in [(MAX_KEPT_BYTES, true), (MAX_KEPT_BYTES + 1, false)] {
            assert_eq!(body(&large(bytes)).len(), bytes);
            let Outcome::Repeated { status: 201, body } = large(bytes) else { panic!("it was done before") };
            assert_eq!(body.map(|body| body.len()), is_kept.then_some(bytes));
        }
        // One more than fits, all in the share of the next key.
        let next = claim("next", "x");
        let (company, now) = (app.id().0, app.clock().now().as_micros());
        let byte = next.id.as_bytes()[0];
        let rows = (0..MAX_KEYS_OF_SHARE).map(|number| {
            let id = bytes_literal(app.database(), &format!("{byte:02x}{number:030x}"));
            format!("({company}, {id}, {id}, 201, {now})")
        });
        let rows = rows.collect::<Vec<_>>().join(", ");
        let insert = format!("INSERT INTO kept_response (company, id, request, status, at) VALUES {rows}");
        raw::run(app.database(), &insert);
        assert_eq!(refusal(app.write(creating(next, "x", 0))), "too many too_many_idempotency_keys");
        app.clock().advance_days(1);
        prune(app);
        assert!(matches!(app.write(creating(next, "x", 0)), Ok(Outcome::Done { .. })));
    });
}

/// Creates a token; the response is its text.
pub fn creating_token() -> Repeatable<CreateToken, ()> {
    let command = CreateToken(TokenRequest::of_company("CRM sync".to_owned(), Role::Member));
    let render = Arc::new(|_: &mut Snapshot, _: &Viewer, made: NewCredential| {
        Ok((Response { status: 201, body: made.text, is_secret: true }, ()))
    });
    Repeatable { claim: claim("token", "x"), command, render }
}

#[test]
fn a_response_with_a_secret_is_kept_encrypted() {
    TestApp::on_both(|app| {
        let creating = creating_token;
        let Ok(Outcome::Done { response, .. }) = app.write(creating()) else { panic!("it is new") };
        let kept = raw::ask(app.database(), "SELECT coalesce(body, '') FROM kept_response");
        assert_eq!(kept, "", "nothing in the clear");
        let sealed = "SELECT CASE WHEN length(secret) > 60 THEN 'sealed' ELSE 'empty' END FROM kept_response";
        assert_eq!(raw::ask(app.database(), sealed), "sealed");
        let again = app.write(creating()).unwrap();
        assert_eq!(again, Outcome::Repeated { status: 201, body: Some(response.body) });
    });
}

/// Every command keeps its own place in the queue and its own rights.
#[test]
fn a_request_with_a_key_is_otherwise_the_same_command() {
    assert_eq!(<Repeatable<CreateAccount, ()> as Command>::NEEDS, CreateAccount::NEEDS);
    assert_eq!(<Repeatable<CreateAccount, ()> as Command>::EXCLUSIVE, CreateAccount::EXCLUSIVE);
    assert_eq!(<Repeatable<CreateAccount, ()> as Command>::TOGETHER, 1);
}
