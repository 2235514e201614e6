use super::*;
use axum::http::HeaderValue;

const PROXY: &str = "10.0.0.1";

fn trusted() -> TrustedProxies {
    let networks = ["10.0.0.0/8", "fd00::/8"].map(|network| network.parse().unwrap());
    TrustedProxies::new(networks.to_vec())
}

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&'static str, &str)| {
        (HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap())
    };
    lines.iter().map(pair).collect()
}

fn seen(peer: &str, lines: &[(&'static str, &str)]) -> (String, Option<&'static str>) {
    let client = trusted().client(peer.parse().unwrap(), &headers(lines));
    (client.address.to_string(), client.scheme.map(Scheme::as_str))
}

#[test]
fn only_a_trusted_proxy_is_believed() {
    let lines = [("x-forwarded-for", "192.0.2.7"), ("x-forwarded-proto", "https")];
    assert_eq!(seen(PROXY, &lines), ("192.0.2.7".to_owned(), Some("https")));
    assert_eq!(
        seen("::ffff:10.0.0.1", &lines).0,
        "192.0.2.7",
        "an IPv4 address in IPv6 form is the same proxy"
    );
    assert_eq!(seen("fd00::1", &lines).0, "192.0.2.7");
    assert_eq!(seen("192.0.2.99", &lines), ("192.0.2.99".to_owned(), None));
    assert_eq!(seen("192.0.2.99", &[("forwarded", "for=192.0.2.7")]).0, "192.0.2.99");
    let nobody = TrustedProxies::default();
    let client = nobody.client(PROXY.parse().unwrap(), &headers(&lines));
    assert_eq!(client, Client { address: PROXY.parse().unwrap(), scheme: None });
}

#[test]
fn the_last_address_that_is_not_trusted_is_the_client() {
    let table: [(&[&str], &str); 17] = [
        (&[], PROXY),
        (&["192.0.2.7"], "192.0.2.7"),
        (&["9.9.9.9, 192.0.2.7"], "192.0.2.7"),
        (&["9.9.9.9", "192.0.2.7"], "192.0.2.7"),
        (&["192.0.2.7, 10.0.0.2"], "192.0.2.7"),
        (&["192.0.2.7", "10.0.0.2,10.0.0.3"], "192.0.2.7"),
        (&["10.0.0.3 , 10.0.0.2"], "10.0.0.3"),
        (&["192.0.2.7:4711"], "192.0.2.7"),
        (&["2001:db8::7"], "2001:db8::7"),
        (&["[2001:db8::7]"], "2001:db8::7"),
        (&["[2001:db8::7]:4711"], "2001:db8::7"),
        (&["::ffff:192.0.2.7"], "192.0.2.7"),
        (&["192.0.2.7, fd00::2"], "192.0.2.7"),
        // What cannot be read ends the walk: the last trusted proxy is all that is known.
        (&["192.0.2.7, unknown, 10.0.0.2"], "10.0.0.2"),
        (&["192.0.2.7, "], PROXY),
        (&["localhost"], PROXY),
        (&["192.0.2.7\u{e9}"], PROXY),
    ];
    for (lines, expected) in table {
        let lines: Vec<_> = lines.iter().map(|line| ("x-forwarded-for", *line)).collect();
        assert_eq!(seen(PROXY, &lines).0, expected, "{lines:?}");
    }
}

#[test]
fn forwarded_is_read_the_same_way() {
    let table: [(&[&str], &str, Option<&str>); 11] = [
        (&["for=192.0.2.7;proto=https"], "192.0.2.7", Some("https")),
        (&[r#"for="[2001:db8::7]:4711";proto=HTTP"#], "2001:db8::7", Some("http")),
        (&[r#"for="192.0.2.7:4711""#], "192.0.2.7", None),
        (&["for=9.9.9.9;proto=https, for=192.0.2.7;proto=http"], "192.0.2.7", Some("http")),
        (&["for=192.0.2.7;proto=https, for=10.0.0.2;proto=http"], "192.0.2.7", Some("https")),
        (&["for=9.9.9.9", "for=192.0.2.7, for=10.0.0.2"], "192.0.2.7", None),
        (&["for=192.0.2.7, for=_hidden, for=10.0.0.2"], "10.0.0.2", None),
        (&["for=unknown;proto=https"], PROXY, None),
        (&["proto=https"], PROXY, None),
        (&[r#"for="9.9.9.9, for=192.0.2.7"#], PROXY, None),
        (&["for=192.0.2.7;proto=gopher"], "192.0.2.7", None),
    ];
    for (lines, address, scheme) in table {
        let lines: Vec<_> = lines.iter().map(|line| ("forwarded", *line)).collect();
        assert_eq!(seen(PROXY, &lines), (address.to_owned(), scheme), "{lines:?}");
    }
}

#[test]
fn two_headers_that_disagree_are_both_ignored() {
    let agree =
        [("forwarded", "for=192.0.2.7"), ("x-forwarded-for", "192.0.2.7"), ("x-forwarded-proto", "https")];
    assert_eq!(seen(PROXY, &agree), ("192.0.2.7".to_owned(), Some("https")));
    let differ =
        [("forwarded", "for=9.9.9.9"), ("x-forwarded-for", "192.0.2.7"), ("x-forwarded-proto", "https")];
    assert_eq!(seen(PROXY, &differ), (PROXY.to_owned(), None));
}
