//! Where deliveries may go. `domain` has the table of addresses; these tests show that nothing is dialled
//! past it, on any path to an attempt.

use rapport_domain::destination::Refusal;
use rapport_store::delivery::KeptAttempt;
use rapport_testkit::{Behaviour, Receiver};

use crate::harness::{Options, Sending, eventually};

/// Allows only public networks.
fn strict() -> Options {
    Options { allowed: &[], ..Options::default() }
}

/// A separate name for each engine, because resolutions are cached for a moment; the receiver's certificate
/// covers it.
fn name_for(sending: &Sending) -> String {
    format!("{:?}.receiver.test", sending.test().engine()).to_lowercase()
}

#[track_caller]
fn assert_refused(attempt: &KeptAttempt) {
    assert_eq!((attempt.succeeded, attempt.failure.as_deref()), (false, Some("destination_refused")));
    assert_eq!((attempt.response_code, attempt.address.as_deref()), (None, None));
    assert_eq!((attempt.connect_us, attempt.tls_us, attempt.first_byte_us), (None, None, None));
    let error = attempt.error.as_deref().expect("an error");
    assert!(error.contains("is not public"), "{error}");
}

#[test]
fn a_name_that_turned_private_is_refused_at_every_attempt_and_nothing_is_dialled() {
    let options = strict();
    let names = options.names.clone();
    Sending::on_both_with(options, |sending| {
        let receiver = Receiver::start();
        let name = name_for(sending);
        let url = format!("https://{name}:{}/hook", receiver.address().port());
        names.set(&name, &["93.184.215.14"]);
        assert_eq!(sending.check_destination(&url), Ok(()), "a public address is accepted");
        let hook = sending.webhook(&url);
        names.set(&name, &["127.0.0.1"]);
        let id = sending.send_event(&hook);
        assert_refused(&sending.only_attempt(id));
        sending.move_to_due(id);
        assert_refused(&sending.wait_for_attempts(id, 2)[1]);
        sending.redeliver(id).expect("a redelivery");
        assert_refused(&sending.wait_for_attempts(id, 3)[2]);
        let test = sending.send_test(&hook);
        assert_refused(&sending.only_attempt(test));
        assert_eq!(sending.streak(&hook), 4, "a refused destination is a failure");
        assert_eq!(receiver.connections(), 0, "nothing is dialled");
        assert_eq!(
            code(sending.check_destination(&url)),
            "forbidden_address",
            "it can't be set again either"
        );
    });
}

#[test]
fn a_kept_connection_is_not_used_once_its_name_has_turned_private() {
    let options = Options::default();
    let names = options.names.clone();
    Sending::on_both_with(options, |sending| {
        let receiver = Receiver::start();
        let name = name_for(sending);
        names.set(&name, &["127.0.0.1"]);
        let hook = sending.webhook(&format!("https://{name}:{}/hook", receiver.address().port()));
        let id = sending.send_event(&hook);
        sending.wait_for_success(id);
        names.set(&name, &["10.0.0.1"]);
        // Resolutions are cached for a moment of real time.
        eventually("the name to be resolved anew", || {
            let done = sending.attempts(id).len();
            sending.redeliver(id).expect("a redelivery");
            let attempts = sending.wait_for_attempts(id, done + 1);
            (!attempts[done].succeeded).then(|| assert_refused(&attempts[done]))
        });
        assert_eq!(receiver.connections(), 1);
    });
}

#[test]
fn one_bad_address_among_several_refuses_all() {
    let options = Options::default();
    let names = options.names.clone();
    Sending::on_both_with(options, |sending| {
        let receiver = Receiver::start();
        let name = name_for(sending);
        names.set(&name, &["127.0.0.1"]);
        let url = format!("https://{name}:{}/hook", receiver.address().port());
        let hook = sending.webhook(&url);
        names.set(&name, &["127.0.0.1", "169.254.169.254"]);
        assert_eq!(code(sending.check_destination(&url)), "forbidden_address");
        let id = sending.send_event(&hook);
        assert_refused(&sending.only_attempt(id));
        assert_eq!(receiver.connections(), 0);
    });
}

#[test]
fn an_address_is_judged_at_the_attempt_whatever_was_judged_before() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        let hook = sending.webhook(&receiver.url("/hook"));
        sending.allow_nothing();
        sending.restart();
        let id = sending.send_event(&hook);
        assert_refused(&sending.only_attempt(id));
        assert_eq!(receiver.connections(), 0);
    });
}

#[test]
fn a_redirect_to_loopback_is_not_followed() {
    Sending::on_both(|sending| {
        let (receiver, inner) = (Receiver::start(), Receiver::start());
        let hook = sending.webhook(&receiver.url("/hook"));
        for code in [301, 302, 303, 307, 308] {
            let headers = vec![("location".to_owned(), inner.url("/admin"))];
            receiver.answer(Behaviour::StatusWith { code, headers, body: Vec::new() });
            let id = sending.send_event(&hook);
            let attempt = sending.only_attempt(id);
            assert_eq!((attempt.succeeded, attempt.response_code), (false, Some(i64::from(code))));
        }
        sending.quiet();
        assert_eq!(inner.connections(), 0);
    });
}

#[test]
fn an_allowed_network_is_dialled_and_the_judged_address_is_the_one() {
    let options = Options { allowed: &["127.0.0.1/32"], ..Options::default() };
    let names = options.names.clone();
    Sending::on_both_with(options, |sending| {
        let receiver = Receiver::start();
        let name = name_for(sending);
        names.set(&name, &["127.0.0.1"]);
        let port = receiver.address().port();
        let url = format!("https://{name}:{port}/hook");
        assert_eq!(sending.check_destination(&url), Ok(()));
        assert_eq!(sending.check_destination(&receiver.url("/hook")), Ok(()));
        assert_eq!(code(sending.check_destination("https://127.0.0.2/")), "forbidden_address");
        let hook = sending.webhook(&url);
        let id = sending.send_event(&hook);
        sending.wait_for_success(id);
        let attempt = sending.only_attempt(id);
        assert_eq!(attempt.address, Some(receiver.address().to_string()));
        assert!(attempt.dns_us.is_some(), "the record has the resolution time");
        assert_eq!(receiver.requests()[0].header("Host"), format!("{name}:{port}"));
    });
}

#[track_caller]
fn code(answer: Result<(), Refusal>) -> &'static str {
    answer.expect_err("this must be refused").code()
}

#[test]
fn forbidden_destinations_cannot_be_set() {
    let options = strict();
    options.names.set("inside.test", &["10.1.2.3"]);
    options.names.set("both.test", &["93.184.215.14", "::1"]);
    options.names.set("outside.test", &["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"]);
    Sending::on_both_with(options, |sending| {
        for url in [
            "https://127.0.0.1/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://localhost/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://10.0.0.1/",
            "https://172.16.0.1/",
            "https://192.168.1.1/",
            "https://169.254.169.254/latest/meta-data/",
            "https://100.64.0.1/",
            "https://224.0.0.1/",
            "https://192.0.2.1/",
            "https://[fd00::1]/",
            "https://[fe80::1]/",
            "https://inside.test/",
            "https://both.test/",
        ] {
            assert_eq!(code(sending.check_destination(url)), "forbidden_address", "{url}");
        }
        assert_eq!(code(sending.check_destination("http://outside.test/")), "not_https");
        assert_eq!(code(sending.check_destination("https://me:secret@outside.test/")), "userinfo");
        for url in ["https://outside.test/hook", "https://93.184.215.14/", "https://not-there-yet.test/"] {
            assert_eq!(sending.check_destination(url), Ok(()), "{url}");
        }
    });
}
