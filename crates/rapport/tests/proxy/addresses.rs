//! The addresses of clients behind each proxy, in the audit log and in the limits.

use std::net::Ipv4Addr;

use rapport_testkit::raw;
use serde_json::json;

use crate::caller::Caller;
use crate::program::Place;
use crate::proxies::Kind;

const TRUSTED: [&str; 2] = ["--trusted-proxy", "127.0.0.1"];
/// More than a stranger may send at once, however slowly they are sent.
const MANY: usize = 200;

fn client(last: u8, to: &str) -> Caller {
    Caller::new(Ipv4Addr::new(127, 0, 0, last), to)
}

/// Creates a token, and returns the address that the audit log has for it.
pub fn audited(place: &Place, caller: &mut Caller, bearer: &str, headers: &[(&str, &str)]) -> String {
    let headers = [&[("Authorization", bearer)][..], headers].concat();
    let made = caller.post("/api/tokens/", &headers, &json!({"name": "x", "role": "member"})).unwrap();
    assert_eq!(made.status, 201, "{made:?}");
    raw::ask(&place.database(), "SELECT address FROM audit ORDER BY at DESC, id DESC LIMIT 1")
}

/// Sends requests that anyone may send until they are too many.
pub fn is_limited(caller: &mut Caller, requests: usize) -> bool {
    (0..requests).any(|_| {
        let answer = caller.post("/api/invitations/accept/", &[], &json!({})).unwrap();
        answer.status == 429
    })
}

pub fn bearer_of_new_company(place: &Place) -> String {
    let company =
        place.json(&["company", "create", "acme", "--name", "Acme", "--owner", "a@acme.test", "--json"]);
    format!("Bearer {}", company["api_token"].as_str().unwrap())
}

#[test]
fn each_client_of_a_proxy_has_its_own_address() {
    for kind in Kind::BOTH {
        let place = Place::sqlite();
        let bearer = bearer_of_new_company(&place);
        let service = place.serve_with(&TRUSTED);
        let proxy = kind.start(&[&service.address]);
        for last in [2, 3] {
            let mut caller = client(last, &proxy.address);
            assert_eq!(audited(&place, &mut caller, &bearer, &[]), caller.from(), "{kind:?}");
        }
        let lies = [("X-Forwarded-For", "9.9.9.9"), ("Forwarded", "for=9.9.9.9")];
        let seen = audited(&place, &mut client(4, &proxy.address), &bearer, &lies);
        assert_eq!(seen, "127.0.0.4", "{kind:?}: a client cannot choose its address");
        let seen = audited(&place, &mut client(5, &service.address), &bearer, &lies);
        assert_eq!(seen, "127.0.0.5", "{kind:?}: nobody but the proxy is believed");

        assert!(is_limited(&mut client(6, &proxy.address), MANY), "{kind:?}");
        assert!(!is_limited(&mut client(7, &proxy.address), 1), "{kind:?}: another client is not affected");
    }
}

#[test]
fn without_the_option_the_headers_are_ignored() {
    let place = Place::sqlite();
    let bearer = bearer_of_new_company(&place);
    let service = place.serve();
    let headers = [("X-Forwarded-For", "192.0.2.7"), ("Forwarded", "for=192.0.2.7")];
    let seen = audited(&place, &mut client(1, &service.address), &bearer, &headers);
    assert_eq!(seen, "127.0.0.1");
}
