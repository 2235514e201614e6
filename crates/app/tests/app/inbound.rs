//! Inbound mail: which account and conversation it is logged on, that it is logged once, and its effects.

use rapport_app::account::DeleteAccount;
use rapport_app::account_address::AddAddress;
use rapport_app::credential::{Key, RotateKey};
use rapport_app::inbound::{Entry, ReceiveMail, Received};
use rapport_app::reading::mail::read;
use rapport_app::{Access, Error};
use rapport_domain::account::Account;
use rapport_domain::conversation::{Conversation, Direction, Message};
use rapport_domain::credential::{self, Kind as CredentialKind};
use rapport_domain::event::Kind;
use rapport_domain::history::Actor;
use rapport_domain::id::{AccountId, ConversationId};
use rapport_domain::inbound::Ignored;
use rapport_domain::member::Email;
use rapport_domain::pipeline::{Source, Status};
use rapport_domain::sender_check::{Method, SenderCheck};
use rapport_testkit::{Engine, TestApp, TestCompany};
use serde_json::json;

use crate::{kinds, moves, payloads};

/// A mail under construction: headers and a body.
struct Post {
    headers: Vec<String>,
    body: String,
}

fn from(sender: &str, subject: &str, id: &str) -> Post {
    let headers =
        vec![format!("From: {sender}"), format!("Subject: {subject}"), format!("Message-ID: <{id}>")];
    Post { headers, body: "Hello.".to_owned() }
}

impl Post {
    fn header(mut self, line: &str) -> Self {
        self.headers.push(line.to_owned());
        self
    }

    fn to(self, recipients: &str) -> Self {
        self.header(&format!("To: {recipients}"))
    }

    fn answering(self, id: &str) -> Self {
        self.header(&format!("In-Reply-To: <{id}>"))
    }

    fn send(&self, company: &TestCompany) -> Received {
        let raw = format!("{}\r\n\r\n{}", self.headers.join("\r\n"), self.body);
        let mail = || ReceiveMail::new(read(raw.as_bytes()).expect("a mail"));
        // A loaded machine may refuse a request without storing anything; a provider tries again.
        let tries = (0..20).map(|_| company.write_as(&Access::System(company.id()), mail()));
        let mut settled = tries.filter(|outcome| !matches!(outcome, Err(Error::Busy)));
        settled.next().expect("not busy forever").expect("received")
    }

    fn log(&self, company: &TestCompany) -> Entry {
        match self.send(company) {
            Received::Logged(entry) => entry,
            other => panic!("not logged: {other:?}"),
        }
    }

    fn ignored(&self, company: &TestCompany) -> Ignored {
        match self.send(company) {
            Received::Ignored(ignored) => ignored,
            other => panic!("not ignored: {other:?}"),
        }
    }
}

fn account(company: &TestCompany, id: AccountId) -> Account {
    company.read(move |snapshot| rapport_store::account::get(snapshot, id)).expect("the account")
}

fn conversation(company: &TestCompany, id: ConversationId) -> Conversation {
    company.read(move |snapshot| rapport_store::conversation::get(snapshot, id)).expect("the conversation")
}

fn messages(company: &TestCompany, id: ConversationId) -> Vec<Message> {
    company.read(move |snapshot| rapport_store::message::of_conversation(snapshot, id, None, 200)).items
}

/// The email address of the member that every test company has.
fn member(company: &TestCompany) -> String {
    let members = company.read(rapport_store::member::list);
    members.first().expect("an owner").email.as_str().to_owned()
}

#[test]
fn an_unknown_sender_becomes_a_prospect_with_source_inbound() {
    TestApp::on_both(|app| {
        let entry = from("Ana Keller <Ana@Nordlys.test>", "Offer", "1@nordlys.test").log(app);
        assert!(entry.created_account && !entry.automatic && entry.direction == Direction::Inbound);
        let made = account(app, entry.logged.account);
        assert_eq!((made.name.as_str(), made.status), ("Ana Keller", Status::Prospect));
        assert_eq!(made.custom_fields.as_json(), r#"{"email":"ana@nordlys.test"}"#);
        assert_eq!(made.last_contact_at, None, "an inbound mail isn't contact");
        assert_eq!(moves(app, made.id), [(None, Status::Prospect, Source::Inbound)]);
        assert_eq!(kinds(app, made.id), [Kind::AccountCreated, Kind::MessageInbound]);
        let data = payloads(app, made.id);
        assert_eq!(data[0]["source"], "inbound");
        assert_eq!(data[1]["message"]["sender"]["address"], "ana@nordlys.test");
        assert_eq!(data[1]["message"]["body"], "Hello.");
        assert_eq!(data[1]["conversation"]["subject"], "Offer");
        let again = from("ana@nordlys.test", "Another matter", "2@nordlys.test").log(app);
        assert_eq!((again.logged.account, again.created_account), (made.id, false));
        assert_ne!(again.logged.conversation, entry.logged.conversation);
    });
}

#[test]
fn an_answer_finds_its_conversation_by_any_of_its_references() {
    TestApp::on_both(|app| {
        let first = from("ana@nordlys.test", "Offer", "1@nordlys.test").log(app).logged;
        let second =
            from("ana@nordlys.test", "Quite different", "2@nordlys.test").answering("1@nordlys.test");
        assert_eq!(second.log(app).logged.conversation, first.conversation);
        // Neither a known sender nor the nearest reference: an older reference still leads there.
        let third = from("colleague@nordlys.test", "Re: x", "3@nordlys.test")
            .answering("lost@nordlys.test")
            .header("References: <1@nordlys.test> <lost@nordlys.test>");
        let entry = third.log(app);
        assert_eq!((entry.logged.conversation, entry.created_account), (first.conversation, false));
        // Anyone who answered is known from now on.
        let fourth = from("colleague@nordlys.test", "New matter", "4@nordlys.test").log(app);
        assert_eq!((fourth.logged.account, fourth.created_account), (first.account, false));
        assert_eq!(conversation(app, first.conversation).message_count, 3);
    });
}

#[test]
fn a_mail_without_references_joins_the_conversation_about_its_subject() {
    TestApp::on_both(|app| {
        let first = from("ana@nordlys.test", "Offer", "1@nordlys.test").log(app).logged;
        let other = from("ana@nordlys.test", "Invoice", "2@nordlys.test").log(app).logged;
        assert_ne!(first.conversation, other.conversation);
        let reply = from("ana@nordlys.test", "AW: Re: offer", "3@nordlys.test").log(app).logged;
        assert_eq!(reply.conversation, first.conversation);
        let stranger = from("eva@elsewhere.test", "Re: Offer", "4@elsewhere.test").log(app).logged;
        assert_ne!(stranger.account, first.account, "a subject alone says nothing about the sender");
    });
}

#[test]
fn the_same_message_is_never_logged_twice() {
    TestApp::on_both(|app| {
        let mail = from("ana@nordlys.test", "Offer", "1@nordlys.test");
        let first = mail.log(app).logged;
        assert_eq!(mail.send(app), Received::Duplicate(first));
        let changed = from("other@elsewhere.test", "Forged", "1@nordlys.test");
        assert_eq!(changed.send(app), Received::Duplicate(first), "the Message-ID decides");
        let without_id = || Post { headers: vec!["From: ana@nordlys.test".into()], body: "Twice".into() };
        let logged = without_id().log(app).logged;
        assert_eq!(without_id().send(app), Received::Duplicate(logged), "the content decides");
        assert_eq!((app.rows("message"), app.rows("account")), (2, 1));
        let globex = app.company("globex");
        assert!(mail.log(&globex).created_account, "each company has its own");
    });
}

#[test]
fn a_mail_from_a_member_is_contact_with_its_recipient() {
    TestApp::on_both(|app| {
        let member = member(app);
        let received = from("Ana <ana@nordlys.test>", "Offer", "1@nordlys.test").log(app).logged;
        app.clock().advance_days(1);
        let sent = from(&format!("Owner <{}>", member.to_uppercase()), "Re: Offer", "2@acme.test")
            .to("Ana <ANA@nordlys.test>")
            .answering("1@nordlys.test")
            .header("Date: Mon, 5 Jan 2026 12:00:00 +0000")
            .log(app);
        assert_eq!((sent.direction, sent.logged.conversation), (Direction::Outbound, received.conversation));
        let told = account(app, received.account);
        assert_eq!(told.last_contact_at.unwrap().to_string(), "2026-01-05T12:00:00Z");
        assert_eq!(kinds(app, told.id), [Kind::AccountCreated, Kind::MessageInbound]);
        let newest = &messages(app, received.conversation)[0];
        assert!(matches!(&newest.author, Actor::Person { .. }), "{:?}", newest.author);
    });
}

#[test]
fn a_members_mail_to_somebody_unknown_makes_a_prospect_of_the_first() {
    TestApp::on_both(|app| {
        let sent = from(&member(app), "Hello", "1@acme.test")
            .to("Eva <eva@nordlys.test>, lawyer@elsewhere.test")
            .header("Delivered-To: log@in.acme.test")
            .header("Cc: log@in.acme.test");
        let entry = sent.log(app);
        assert!(entry.created_account && entry.copies.is_empty());
        let made = account(app, entry.logged.account);
        assert_eq!((made.name.as_str(), made.last_contact_at), ("Eva", Some(app.clock().now())));
        assert_eq!(kinds(app, made.id), [Kind::AccountCreated]);
        assert_eq!(app.rows("account"), 1);
        let reply = from("eva@nordlys.test", "Something else", "2@nordlys.test").log(app);
        assert_eq!(reply.logged.account, made.id);
    });
}

#[test]
fn a_members_mail_to_several_accounts_is_contact_with_each() {
    TestApp::on_both(|app| {
        let one = from("ana@nordlys.test", "A", "1@nordlys.test").log(app).logged;
        let two = from("eva@elsewhere.test", "B", "2@elsewhere.test").log(app).logged;
        let sent = from(&member(app), "News for both", "3@acme.test")
            .to("ana@nordlys.test, eva@elsewhere.test, new@third.test");
        let entry = sent.log(app);
        assert_eq!(entry.logged.account, one.account);
        assert_eq!(entry.copies.iter().map(|copy| copy.account).collect::<Vec<_>>(), [two.account]);
        for id in [one.account, two.account] {
            assert_eq!(account(app, id).last_contact_at, Some(app.clock().now()));
        }
        assert_eq!(app.rows("account"), 2, "a stranger among the recipients doesn't become an account");
        // An answer goes to the copy on the answering account, whatever its subject.
        let reply = from("eva@elsewhere.test", "Thanks", "4@elsewhere.test").answering("3@acme.test");
        assert_eq!(reply.log(app).logged.conversation, entry.copies[0].conversation);
        let reply = from("ana@nordlys.test", "Thanks", "5@nordlys.test").answering("3@acme.test");
        assert_eq!(reply.log(app).logged.conversation, entry.logged.conversation);
    });
}

#[test]
fn what_is_among_ourselves_is_ignored() {
    TestApp::on_both(|app| {
        let member = member(app);
        let inward = from(&member, "Lunch?", "1@acme.test").to(&member);
        assert_eq!(inward.ignored(app), Ignored::MembersOnly);
        assert_eq!(from(&member, "Draft", "2@acme.test").ignored(app), Ignored::MembersOnly);
        let nobody = Post { headers: vec!["Subject: x".into()], body: "y".into() };
        assert_eq!(nobody.ignored(app), Ignored::NoSender);
        assert_eq!((app.rows("account"), app.rows("message"), app.rows("mail_reference")), (0, 0, 0));
        // An ignored mail may still be logged once it concerns someone.
        let later = from(&member, "Lunch?", "1@acme.test").to("ana@nordlys.test");
        assert!(later.log(app).created_account);
    });
}

#[test]
fn what_machines_write_is_neither_contact_nor_reply_nor_account() {
    TestApp::on_both(|app| {
        let away = || {
            from("ana@nordlys.test", "Automatic reply: Offer", "away@nordlys.test")
                .header("Auto-Submitted: auto-replied")
        };
        assert_eq!(away().ignored(app), Ignored::Automatic);
        assert_eq!(app.rows("account"), 0);
        let known = from("ana@nordlys.test", "Offer", "1@nordlys.test").log(app).logged;
        let entry = away().log(app);
        assert!(entry.automatic && entry.logged.account == known.account);
        let events = [Kind::AccountCreated, Kind::MessageInbound];
        assert_eq!(kinds(app, known.account), events, "an out-of-office mail isn't a reply");
        let sent = from(&member(app), "Monthly letter", "2@acme.test")
            .to("ana@nordlys.test")
            .header("List-Unsubscribe: <https://acme.test/leave>");
        assert!(sent.log(app).automatic);
        assert_eq!(account(app, known.account).last_contact_at, None, "a mass mailing isn't contact");
        let to_new = from(&member(app), "Monthly letter", "3@acme.test")
            .to("new@third.test")
            .header("Precedence: bulk");
        assert_eq!(to_new.ignored(app), Ignored::Automatic);
        // A bounce finds the mail that came back, and its sender isn't remembered.
        let bounce = from("MAILER-DAEMON@mx.test", "Undelivered", "b@mx.test").answering("2@acme.test");
        assert_eq!(bounce.log(app).logged.account, known.account);
        assert_eq!(app.rows("account_address"), 1);
    });
}

#[test]
fn a_date_that_cannot_be_true_gives_way_to_the_arrival() {
    TestApp::on_both(|app| {
        let now = app.clock().now();
        for (number, date, at) in [
            (1, "Mon, 5 Jan 2026 08:00:00 +0000", "2026-01-05T08:00:00Z"),
            (2, "Tue, 5 Jan 2027 08:00:00 +0000", &now.to_string()),
            (3, "nonsense", &now.to_string()),
        ] {
            let mail = from("ana@nordlys.test", "Offer", &format!("{number}@nordlys.test"));
            let entry = mail.header(&format!("Date: {date}")).log(app).logged;
            let logged = messages(app, entry.conversation);
            let found = logged.iter().find(|message| message.id == entry.message).unwrap();
            assert_eq!(found.occurred_at.to_string(), at, "{date}");
        }
    });
}

#[test]
fn an_address_attached_by_hand_leads_to_its_account() {
    TestApp::on_both(|app| {
        let known = app.upsert(json!({"imported_id": "crm-1", "name": "Nordlys"})).account;
        let address = Email::parse("office@nordlys.test").unwrap();
        app.write(AddAddress { account: known.id, address: address.clone() }).unwrap();
        let entry = from("Office <OFFICE@nordlys.test>", "Hi", "1@nordlys.test").log(app);
        assert_eq!((entry.logged.account, entry.created_account), (known.id, false));
        let other = app.upsert(json!({"imported_id": "crm-2"})).account;
        let taken = app.write(AddAddress { account: other.id, address });
        assert!(matches!(taken, Err(Error::Conflict { code: "address_taken", .. })));
    });
}

#[test]
fn a_deleted_account_leaves_no_trace_of_its_mails() {
    TestApp::on_both(|app| {
        let mail = from("ana@nordlys.test", "Offer", "1@nordlys.test");
        let first = mail.log(app).logged;
        app.write(DeleteAccount(first.account)).unwrap();
        for table in ["conversation", "message", "mail_reference", "account_address"] {
            assert_eq!(app.rows(table), 0, "{table}");
        }
        let again = mail.log(app);
        assert!(again.created_account && again.logged.account != first.account);
    });
}

#[test]
fn only_the_live_inbound_key_may_send() {
    TestApp::on_both(|app| {
        let first = app.write(RotateKey(Key::Inbound)).unwrap().text;
        let second = app.write(RotateKey(Key::Inbound)).unwrap().text;
        let send = |text: &str, number: u8| {
            let presented = credential::read(CredentialKind::InboundKey, text).unwrap();
            let raw = format!("From: ana@nordlys.test\r\nMessage-ID: <{number}@x>\r\n\r\nHi");
            let mail = ReceiveMail::new(read(raw.as_bytes()).unwrap());
            app.write_as(&Access::Credential(presented), mail)
        };
        assert!(matches!(send(&first, 1), Err(Error::Unauthenticated)));
        let Ok(Received::Logged(entry)) = send(&second, 2) else { panic!("not logged") };
        let logged = messages(app, entry.logged.conversation);
        assert!(matches!(logged[0].author, Actor::InboundKey { .. }));
        let token = credential::read(CredentialKind::ApiToken, app.token_text()).unwrap();
        let raw = b"From: ana@nordlys.test\r\n\r\nHi";
        let mail = ReceiveMail::new(read(raw).unwrap());
        let refused = app.write_as(&Access::Credential(token), mail);
        assert!(matches!(refused, Err(Error::Unauthenticated)));
    });
}

#[test]
fn mails_that_arrive_at_once_make_one_account_and_one_message_each() {
    TestApp::on_both(|app| {
        let outcomes: Vec<Received> = std::thread::scope(|scope| {
            let sending: Vec<_> = (0..12)
                .map(|number| {
                    // Each mail arrives three times.
                    let mail = from("ana@nordlys.test", "Offer", &format!("{}@nordlys.test", number % 4));
                    scope.spawn(move || mail.send(app))
                })
                .collect();
            sending.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let logged = outcomes.iter().filter(|outcome| matches!(outcome, Received::Logged(_))).count();
        assert_eq!(logged, 4);
        assert_eq!((app.rows("account"), app.rows("message"), app.rows("account_address")), (1, 4, 1));
    });
}

/// A company whose operator trusts a relay, on both engines.
fn on_both_behind_a_relay(rule: impl Fn(&TestApp)) {
    for engine in Engine::BOTH {
        eprintln!("on {engine}");
        let relay = "mx.acme.test".parse().ok();
        rule(&TestApp::with(engine, move |parts| parts.trusted_relay.clone_from(&relay)));
    }
}

fn check_of(app: &TestApp, entry: &Entry) -> Option<SenderCheck> {
    let messages = messages(app, entry.logged.conversation);
    let found = messages.into_iter().find(|message| message.id == entry.logged.message);
    found.expect("the message").sender_check
}

const SIGNED: &str = "Authentication-Results: mx.acme.test; dkim=pass header.d=nordlys.test";
const FORGED: &str = "Authentication-Results: mx.acme.test; dkim=fail header.d=nordlys.test";

#[test]
fn without_a_trusted_relay_every_sender_is_believed_and_none_is_checked() {
    TestApp::on_both(|app| {
        let entry = from("ana@nordlys.test", "Offer", "1@nordlys.test").header(FORGED).log(app);
        assert_eq!(check_of(app, &entry), None);
        let again = from("ana@nordlys.test", "Other", "2@nordlys.test").log(app);
        assert_eq!(again.logged.account, entry.logged.account);
    });
}

#[test]
fn a_sender_that_the_relay_verified_is_believed() {
    on_both_behind_a_relay(|app| {
        let first = from("ana@nordlys.test", "Offer", "1@nordlys.test").header(SIGNED).log(app);
        let check = SenderCheck { relay: "mx.acme.test".to_owned(), method: Some(Method::Dkim) };
        assert_eq!(check_of(app, &first), Some(check));
        let second = from("ana@nordlys.test", "Other", "2@nordlys.test").header(SIGNED).log(app);
        assert_eq!((second.logged.account, second.created_account), (first.logged.account, false));
        assert_eq!(payloads(app, first.logged.account)[1]["message"]["sender_check"]["method"], "dkim");
    });
}

#[test]
fn a_sender_that_is_not_verified_reaches_no_account_by_their_name() {
    on_both_behind_a_relay(|app| {
        let real = from("ana@nordlys.test", "Offer", "1@nordlys.test").header(SIGNED).log(app).logged;
        let forged = from("ana@nordlys.test", "Offer", "9@evil.test").header(FORGED).header(SIGNED).log(app);
        assert!(forged.created_account && forged.direction == Direction::Inbound);
        assert_ne!(forged.logged.account, real.account);
        let check = SenderCheck { relay: "mx.acme.test".to_owned(), method: None };
        assert_eq!(check_of(app, &forged), Some(check));
        let made = account(app, forged.logged.account);
        assert_eq!(made.custom_fields.as_json(), "{}", "the address isn't kept as theirs");
        // The next one joins it, and the real sender still finds their own account.
        let next = from("ana@nordlys.test", "Invoice", "10@evil.test").log(app);
        assert_eq!((next.logged.account, next.created_account), (forged.logged.account, false));
        let true_one = from("ana@nordlys.test", "Invoice", "2@nordlys.test").header(SIGNED).log(app);
        assert_eq!(true_one.logged.account, real.account);
    });
}

#[test]
fn an_unverified_mail_takes_no_message_id_and_adds_no_address() {
    on_both_behind_a_relay(|app| {
        let real = from("ana@nordlys.test", "Offer", "1@nordlys.test").header(SIGNED).log(app).logged;
        let squat = from("ana@nordlys.test", "Offer", "2@nordlys.test").log(app);
        assert!(matches!(
            from("ana@nordlys.test", "Offer", "2@nordlys.test").send(app),
            Received::Duplicate(logged) if logged == squat.logged
        ));
        let later = from("ana@nordlys.test", "Offer", "2@nordlys.test").header(SIGNED).log(app);
        assert_eq!(later.logged.account, real.account, "the real mail with this Message-ID is logged");
        // A reference still leads to the conversation, but the sender doesn't become known there.
        let reply = from("eve@nordlys.test", "Re: Offer", "3@evil.test").answering("1@nordlys.test").log(app);
        assert_eq!(reply.logged.conversation, real.conversation);
        let signed = from("eve@nordlys.test", "New", "4@nordlys.test").header(SIGNED).log(app);
        assert!(signed.created_account);
    });
}

#[test]
fn an_unverified_mail_is_not_from_a_member_and_no_contact() {
    on_both_behind_a_relay(|app| {
        let real = from("ana@nordlys.test", "Offer", "1@nordlys.test").header(SIGNED).log(app).logged;
        let member = member(app);
        let domain = member.rsplit('@').next().unwrap().to_owned();
        let forged = from(&member, "Offer", "1@evil.test").to("ana@nordlys.test").log(app);
        assert_eq!(forged.direction, Direction::Inbound);
        assert_ne!(forged.logged.account, real.account);
        assert_eq!(account(app, real.account).last_contact_at, None);
        let passed = format!("Authentication-Results: mx.acme.test; spf=pass smtp.mailfrom={domain}");
        let sent = from(&member, "Offer", "2@acme.test").to("ana@nordlys.test").header(&passed).log(app);
        assert_eq!((sent.direction, sent.logged.account), (Direction::Outbound, real.account));
        assert!(account(app, real.account).last_contact_at.is_some());
    });
}
