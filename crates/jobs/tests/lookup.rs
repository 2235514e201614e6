//! Fetches home pages over real TLS: what is read, which redirects are followed, and which are refused.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rapport_app::lookup::{FetchError, Fetched, HomePages};
use rapport_domain::destination::{AddressPolicy, Destination};
use rapport_domain::lookup::MAX_PAGE_BYTES;
use rapport_jobs::client::tls_config;
use rapport_jobs::guard::{BoxFuture, ResolveError, Resolver};
use rapport_jobs::{Guard, Lookup};
use rapport_testkit::{Behaviour, Receiver};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio_util::task::TaskTracker;

const PATIENCE: Duration = Duration::from_mins(1);

/// Resolves every name to loopback, with the exceptions below.
struct Names;

impl Resolver for Names {
    fn resolve(&self, host: String) -> BoxFuture<'static, Result<Vec<IpAddr>, ResolveError>> {
        Box::pin(async move {
            let addresses: &[&str] = match host.split('.').next().unwrap_or_default() {
                "private" => &["10.0.0.1"],
                "mixed" => &["127.0.0.1", "169.254.169.254"],
                "nowhere" => return Err(ResolveError::NotFound("no such name".to_owned())),
                "ours" => return Err(ResolveError::Own("no resolver".to_owned())),
                _ => &["127.0.0.1"],
            };
            Ok(addresses.iter().map(|address| address.parse().expect("an address")).collect())
        })
    }
}

/// A fetcher that trusts the receiver and may dial these networks.
fn lookup(receiver: &Receiver, allowed: &[&str]) -> Lookup {
    let authority = CertificateDer::from_pem_slice(receiver.ca_pem().as_bytes()).expect("a certificate");
    let allowed = allowed.iter().map(|network| network.parse().expect("a network")).collect();
    let guard = Guard::new(AddressPolicy { allowed }, Arc::new(Names));
    Lookup::new(Arc::new(guard), tls_config(&[authority]), TaskTracker::new())
}

async fn fetch(receiver: &Receiver, path: &str) -> Result<Fetched, FetchError> {
    let page = Destination::parse(&receiver.url(path)).expect("a page");
    lookup(receiver, &["127.0.0.0/8"]).within(PATIENCE).fetch(&page).await
}

fn html(body: &[u8]) -> Behaviour {
    let headers = vec![("content-type".to_owned(), "text/html; charset=utf-8".to_owned())];
    Behaviour::StatusWith { code: 200, headers, body: body.to_vec() }
}

fn redirect(code: u16, to: &str) -> Behaviour {
    let headers = vec![("location".to_owned(), to.to_owned())];
    Behaviour::StatusWith { code, headers, body: Vec::new() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_asked_for_plainly_and_read() {
    let receiver = Receiver::start();
    receiver.answer(html(b"<title>Hello</title>"));
    let fetched = fetch(&receiver, "/").await.expect("a page");
    assert_eq!(fetched.at.as_str(), receiver.url("/"));
    assert_eq!(fetched.content_type.as_deref(), Some("text/html; charset=utf-8"));
    assert_eq!(fetched.body, b"<title>Hello</title>");
    let request = &receiver.requests()[0];
    assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/"));
    assert_eq!(request.header("host"), receiver.address().to_string());
    assert_eq!(request.header("accept-encoding"), "identity");
    assert!(request.header("user-agent").starts_with("Rapport/"));
}

#[tokio::test(flavor = "multi_thread")]
async fn up_to_three_redirects_are_followed() {
    let receiver = Receiver::start();
    let port = receiver.address().port();
    receiver.answer_path("/", redirect(301, "/two"));
    receiver.answer_path("/two", redirect(302, &format!("https://www.receiver.test:{port}/three#top")));
    receiver.answer_path("/three", redirect(308, "four?x=1"));
    receiver.answer_path("/four", html(b"there"));
    let fetched = fetch(&receiver, "/").await.expect("a page");
    assert_eq!(fetched.at.as_str(), format!("https://www.receiver.test:{port}/four?x=1"));
    receiver.answer_path("/four", redirect(307, "/"));
    assert_eq!(fetch(&receiver, "/").await, Err(FetchError::TooManyRedirects));
    assert_eq!(receiver.requests().len(), 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_judged_like_the_first_address() {
    let (receiver, inner) = (Receiver::start(), Receiver::start());
    let inner_port = inner.address().port();
    for (location, code) in [
        (format!("https://private.receiver.test:{inner_port}/"), "unreachable"),
        (format!("https://mixed.receiver.test:{inner_port}/"), "unreachable"),
        ("https://10.0.0.1/admin".to_owned(), "unreachable"),
        ("https://169.254.169.254/latest/meta-data/".to_owned(), "unreachable"),
        (format!("https://[::1]:{inner_port}/"), "unreachable"),
        (format!("http://127.0.0.1:{inner_port}/"), "bad_redirect"),
        ("https://user:secret@receiver.test/".to_owned(), "bad_redirect"),
        ("file:///etc/passwd".to_owned(), "bad_redirect"),
    ] {
        receiver.answer(redirect(302, &location));
        let error = fetch(&receiver, "/").await.expect_err("refused");
        assert_eq!(error.fault().expect("a fault").code, code, "{location}");
    }
    assert_eq!(inner.connections(), 0, "nothing is dialled");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_is_not_public_is_dialled() {
    let receiver = Receiver::start();
    let strict = lookup(&receiver, &[]);
    for url in [receiver.url("/"), format!("https://www.receiver.test:{}/", receiver.address().port())] {
        let error = strict.fetch(&Destination::parse(&url).unwrap()).await.expect_err("refused");
        assert_eq!(error.fault().expect("a fault").code, "unreachable", "{url}");
        let FetchError::Unreachable(reason) = error else { panic!("{error:?}") };
        assert!(reason.ends_with("--allow-lookup 127.0.0.1 allows it"), "the log names the option: {reason}");
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_without_an_end_is_read_as_far_as_it_matters() {
    let receiver = Receiver::start();
    let start = [b"<title>Long</title>".as_slice(), &vec![b' '; MAX_PAGE_BYTES]].concat();
    receiver.answer(html(&start));
    let fetched = fetch(&receiver, "/").await.expect("a page");
    assert_eq!(fetched.body, start[..MAX_PAGE_BYTES]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_html_is_not_read() {
    let receiver = Receiver::start();
    receiver.answer(Behaviour::EndlessBody);
    assert_eq!(fetch(&receiver, "/").await, Err(FetchError::NotHtml), "no content type");
    receiver.answer(Behaviour::GzipBomb);
    assert_eq!(fetch(&receiver, "/").await, Err(FetchError::NotHtml), "compressed");
    for content_type in ["application/pdf", "image/svg+xml", "text/plain", "text/htmlx", ""] {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        receiver.answer(Behaviour::StatusWith { code: 200, headers, body: b"x".to_vec() });
        assert_eq!(fetch(&receiver, "/").await, Err(FetchError::NotHtml), "{content_type}");
    }
    for code in [400, 403, 404, 410, 429, 500, 503] {
        receiver.answer(Behaviour::Status(code));
        assert_eq!(fetch(&receiver, "/").await, Err(FetchError::Answered(code)));
    }
    receiver.answer(Behaviour::Status(302));
    assert_eq!(fetch(&receiver, "/").await, Err(FetchError::Answered(302)), "a redirect to nowhere");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_deadline_is_over_everything() {
    let receiver = Receiver::start();
    let hasty = lookup(&receiver, &["127.0.0.0/8"]).within(Duration::from_millis(300));
    let page = Destination::parse(&receiver.url("/")).unwrap();
    let slow = [Behaviour::Stall, Behaviour::Delay(Duration::from_mins(1), Box::new(html(b"late")))];
    for behaviour in slow {
        receiver.answer(behaviour.clone());
        let reason = "no page within 0.3 s".to_owned();
        assert_eq!(hasty.fetch(&page).await, Err(FetchError::Unreachable(reason)), "{behaviour:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_site_that_cannot_be_reached_gets_the_same_answer() {
    let (receiver, untrusted) = (Receiver::start(), Receiver::start_untrusted());
    receiver.answer(Behaviour::Stall);
    let closed = Receiver::start();
    let closed_url = closed.url("/");
    drop(closed);
    let lookup = lookup(&receiver, &["127.0.0.0/8"]).within(Duration::from_secs(1));
    let fault = async |url: &str| {
        let error = lookup.fetch(&Destination::parse(url).unwrap()).await.expect_err("no page");
        error.fault()
    };
    assert_eq!(fault("https://ours.test/").await, None, "a fault on our side isn't the domain's");
    let answer = fault("https://nowhere.test/").await.expect("a fault");
    assert_eq!(answer.code, "unreachable");
    let port = receiver.address().port();
    for (url, why) in [
        (untrusted.url("/"), "its certificate isn't trusted"),
        (closed_url, "the port is closed"),
        (receiver.url("/"), "it never answers"),
        (format!("https://private.test:{port}/"), "the name has a private address"),
        ("https://10.0.0.1/".to_owned(), "a private address"),
        ("https://localhost/".to_owned(), "a name of this machine"),
    ] {
        assert_eq!(fault(&url).await.as_ref(), Some(&answer), "{why}");
    }
}
