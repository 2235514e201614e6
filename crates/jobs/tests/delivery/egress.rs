//! Requests through a proxy: which address it is asked for, and what an attempt says if it doesn't help.

use std::time::Duration;

use rapport_domain::id::DeliveryId;
use rapport_jobs::{EgressProxy, Limits};
use rapport_testkit::{Engine, ProxyAnswer, Receiver, TestEgressProxy};

use crate::harness::{Hook, Options, Sending, eventually, wait_for_requests};

/// A public address, which only the test's proxy leads to the receiver.
const PUBLIC: &str = "93.184.215.14";
const NAME: &str = "sqlite.receiver.test";

fn through(proxy: &TestEgressProxy, login: Option<(&str, &str)>) -> EgressProxy {
    EgressProxy {
        host: "127.0.0.1".to_owned(),
        port: proxy.address().port(),
        login: login.map(|(user, password)| (user.to_owned(), password.to_owned())),
    }
}

/// Runs a rule on both engines, each with a receiver and a proxy of its own. Only public networks are allowed.
fn on_both_through(
    login: Option<(&str, &str)>,
    options: &Options,
    rule: impl Fn(&mut Sending, &Receiver, &TestEgressProxy),
) {
    for engine in Engine::BOTH {
        eprintln!("on {engine}");
        let receiver = Receiver::start();
        let proxy = TestEgressProxy::to(receiver.address());
        let options = Options { allowed: &[], proxy: Some(through(&proxy, login)), ..options.clone() };
        options.names.set(NAME, &[PUBLIC]);
        rule(&mut Sending::with(engine, options), &receiver, &proxy);
    }
}

fn webhook(sending: &Sending, receiver: &Receiver) -> Hook {
    sending.webhook(&format!("https://{NAME}:{}/hook", receiver.address().port()))
}

#[test]
fn the_proxy_is_asked_for_the_checked_address_and_tls_verifies_the_name() {
    on_both_through(Some(("rapport", "p:w")), &Options::default(), |sending, receiver, proxy| {
        let hook = webhook(sending, receiver);
        let id = sending.send_event(&hook);
        sending.wait_for_success(id);
        let asked = proxy.asked();
        let target = format!("{PUBLIC}:{}", receiver.address().port());
        assert_eq!((asked.len(), asked[0].target.as_str()), (1, target.as_str()), "never the name");
        assert_eq!(asked[0].host.as_deref(), Some(target.as_str()));
        assert_eq!(asked[0].authorization.as_deref(), Some("Basic cmFwcG9ydDpwOnc="));
        let request = wait_for_requests(receiver, 1).remove(0);
        assert_eq!(request.header("Host"), format!("{NAME}:{}", receiver.address().port()));
        assert!(!request.headers.contains_key("proxy-authorization"), "the receiver never sees the login");
        let attempt = sending.only_attempt(id);
        assert_eq!(
            attempt.address.as_deref(),
            Some(target.as_str()),
            "the receiver's address, not the proxy's"
        );
        // A kept tunnel is used again.
        let again = sending.send_event(&hook);
        sending.wait_for_success(again);
        assert_eq!(proxy.asked().len(), 1);
    });
}

#[test]
fn a_private_address_is_refused_before_the_proxy_hears_of_it() {
    let options = Options::default();
    let names = options.names.clone();
    on_both_through(None, &options, |sending, receiver, proxy| {
        let hook = webhook(sending, receiver);
        names.set(NAME, &["10.0.0.1"]);
        let id = sending.send_event(&hook);
        let attempt = sending.only_attempt(id);
        assert_eq!(attempt.failure.as_deref(), Some("destination_refused"));
        assert!(attempt.error.as_deref().is_some_and(|error| error.contains("10.0.0.1 is not public")));
        assert_eq!((proxy.asked().len(), receiver.connections()), (0, 0));
    });
}

#[test]
fn what_the_proxy_says_about_the_receiver_is_in_the_attempt() {
    on_both_through(None, &Options::default(), |sending, receiver, proxy| {
        let hook = webhook(sending, receiver);
        let target = format!("{PUBLIC}:{}", receiver.address().port());
        let table = [
            (
                403,
                "destination_refused",
                format!("the egress proxy doesn't allow connections to {target} (403); ask its operator"),
            ),
            (
                502,
                "connect",
                format!(
                    "the egress proxy couldn't reach {target} (502); check that the receiver is up and listening"
                ),
            ),
        ];
        for ((code, failure, error), streak) in table.into_iter().zip(1..) {
            proxy.answer(ProxyAnswer::Status(code));
            let id = sending.send_test(&hook);
            let attempt = sending.only_attempt(id);
            assert_eq!((attempt.failure.as_deref(), attempt.error), (Some(failure), Some(error)), "{code}");
            assert_eq!(sending.streak(&hook), streak, "after {code}");
        }
        assert_eq!(receiver.connections(), 0);
    });
}

#[test]
fn what_is_wrong_with_the_proxy_itself_is_not_charged_to_the_receiver() {
    let faults =
        [ProxyAnswer::Status(407), ProxyAnswer::Status(500), ProxyAnswer::Nonsense, ProxyAnswer::Close];
    for fault in faults {
        on_both_through(None, &Options::default(), |sending, receiver, proxy| {
            proxy.answer(fault);
            let hook = webhook(sending, receiver);
            let id = sending.send_event(&hook);
            wait_until_postponed(sending, id);
            assert!(sending.attempts(id).is_empty(), "{fault:?} isn't an attempt");
            assert_eq!((sending.streak(&hook), receiver.connections()), (0, 0), "{fault:?}");
            // It is made again, and then it is the first one.
            proxy.answer(ProxyAnswer::Tunnel);
            sending.move_to_due(id);
            sending.wait_for_success(id);
            assert_eq!(sending.only_attempt(id).number, 1, "{fault:?}");
        });
    }
}

/// Waits until the delivery has been tried and put off, by a fault on our side.
#[track_caller]
fn wait_until_postponed(sending: &Sending, id: DeliveryId) {
    eventually("the delivery to be put off", || (sending.due_at(id) > sending.now()).then_some(()));
}

#[test]
fn a_proxy_that_never_answers_is_given_up() {
    let limits = Limits { connect: Duration::from_secs(1), total: Duration::from_mins(10) };
    on_both_through(None, &Options { limits, ..Options::default() }, |sending, receiver, proxy| {
        proxy.answer(ProxyAnswer::Silence);
        let hook = webhook(sending, receiver);
        let id = sending.send_event(&hook);
        let attempt = sending.only_attempt(id);
        let target = format!("{PUBLIC}:{}", receiver.address().port());
        let error =
            format!("the egress proxy didn't reach {target} within 1 s; check the receiver's firewall");
        assert_eq!((attempt.failure.as_deref(), attempt.error), (Some("timeout"), Some(error)));
    });
}

#[test]
fn a_proxy_that_is_down_is_not_the_receivers_fault() {
    for engine in Engine::BOTH {
        eprintln!("on {engine}");
        let receiver = Receiver::start();
        let gone = TestEgressProxy::to(receiver.address());
        let proxy = EgressProxy { port: closed_port(), ..through(&gone, None) };
        let options = Options { proxy: Some(proxy), ..Options::default() };
        let sending = Sending::with(engine, options);
        let hook = sending.webhook(&receiver.url("/hook"));
        let id = sending.send_event(&hook);
        wait_until_postponed(&sending, id);
        assert!(sending.attempts(id).is_empty());
        assert_eq!((sending.streak(&hook), receiver.connections()), (0, 0), "nothing goes around the proxy");
    }
}

/// A port on which nobody listens.
fn closed_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}
