//! TLS of the service's own: who it serves, which files it refuses, and what happens when they change.

use std::fs;
use std::io::{BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::caller::{self, Answer};
use crate::program::{Place, Service, run, wait_until};

/// Writes a new certificate for 127.0.0.1 and its key, and returns it.
fn issue(place: &Place) -> CertificateDer<'static> {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
    replace(&place.path().join("cert.pem"), &certificate.pem());
    replace(&place.path().join("key.pem"), &key.serialize_pem());
    certificate.der().clone()
}

/// As tools that renew certificates do it.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

fn serve(place: &Place) -> Service {
    let path = |name: &str| place.path().join(name).display().to_string();
    place.serve_with(&["--tls-cert", &path("cert.pem"), "--tls-key", &path("key.pem")])
}

/// A request by a client that trusts only this certificate.
fn get(service: &Service, trusted: &CertificateDer<'static>, path: &str) -> std::io::Result<Answer> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = caller::connect(Ipv4Addr::LOCALHOST, service.address.parse().unwrap())?;
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    caller::write(stream.get_mut(), "GET", path, &[], "")?;
    caller::read(&mut stream)
}

#[test]
fn it_serves_https_and_uses_a_new_certificate_when_the_files_change() {
    let place = Place::sqlite();
    let old = issue(&place);
    let mut service = serve(&place);
    let answer = get(&service, &old, "/health/ready").unwrap();
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("strict-transport-security: max-age=31536000"), "{}", answer.head);
    assert_eq!(get(&service, &old, "/api/docs/").unwrap().status, 200);

    // A broken pair changes nothing, and is logged.
    fs::write(place.path().join("key.pem"), "no key").unwrap();
    let log = || fs::read_to_string(place.path().join("service.log")).unwrap();
    wait_until("the broken key to be noticed", || log().contains("the old one stays in use"));
    assert_eq!(get(&service, &old, "/health/live").unwrap().status, 200);

    let new = issue(&place);
    wait_until("the new certificate", || get(&service, &new, "/health/live").is_ok());
    assert!(get(&service, &old, "/health/live").is_err(), "the old certificate is gone");
    service.signal("TERM");
    assert_eq!(service.wait().code(), Some(0));
}

#[test]
fn rapport_health_trusts_only_the_services_own_certificate() {
    let place = Place::sqlite();
    issue(&place);
    let service = serve(&place);
    let other = Place::sqlite();
    issue(&other);
    for (files, code, said) in [(&place, 0, ""), (&other, 1, "another certificate than --tls-cert")] {
        let path = |name: &str| files.path().join(name).display().to_string();
        let (cert, key) = (path("cert.pem"), path("key.pem"));
        let options = ["health", "--listen", &service.address, "--tls-cert", &cert, "--tls-key", &key];
        let asked = run(&mut place.command(&options));
        assert_eq!(asked.code, Some(code), "{}", asked.stderr);
        assert!(asked.stderr.contains(said), "{}", asked.stderr);
    }
    let plain = run(&mut place.command(&["health", "--listen", &service.address]));
    assert_eq!(plain.code, Some(1), "{}", plain.stdout);
}

#[test]
fn plain_http_is_told_to_use_https() {
    let place = Place::sqlite();
    issue(&place);
    let service = serve(&place);
    let mut stream = TcpStream::connect(&service.address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("https_required"), "{answer}");
}

#[test]
fn files_that_cannot_be_used_are_refused() {
    let place = Place::sqlite();
    issue(&place);
    let other = Place::sqlite();
    issue(&other);
    let path = |place: &Place, name: &str| place.path().join(name).display().to_string();
    let (cert, key) = (path(&place, "cert.pem"), path(&place, "key.pem"));
    let text = path(&place, "text");
    fs::write(&text, "no PEM").unwrap();
    let other_key = path(&other, "key.pem");
    let table: [(&str, &str, &str); 6] = [
        ("/no/such/file", &key, "/no/such/file does not exist (--tls-cert)"),
        (&cert, "/no/such/file", "/no/such/file does not exist (--tls-key)"),
        (&text, &key, "contains no certificate in PEM format (--tls-cert)"),
        (&key, &key, "contains no certificate in PEM format (--tls-cert)"),
        (&cert, &text, "contains no unencrypted private key in PEM format (--tls-key)"),
        (&cert, &other_key, "is not the key of the certificate in"),
    ];
    for (cert, key, said) in table {
        let options = ["serve", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key];
        let ended = run(&mut place.command(&options));
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        let ended = run(&mut place.command(&["doctor", "--tls-cert", cert, "--tls-key", key]));
        assert_eq!(ended.code, Some(1), "{}", ended.stdout);
        assert!(ended.stdout.contains(said), "{said}: {}", ended.stdout);
    }
}
