//! Receivers that fail before any HTTP: no connection, no TLS, no trusted certificate.

use std::time::Duration;

use rapport_domain::delivery::Failure;
use rapport_testkit::{Identity, Step};

use super::table::{Record, Row};

const NOT_TLS: &str = "the receiver sent something other than TLS; check the URL's host and port";
const NO_HANDSHAKE: &str = "the TLS handshake didn't finish within 2 s";

pub fn rows() -> Vec<Row> {
    [connections(), handshakes(), certificates()].into_iter().flatten().collect()
}

fn connections() -> Vec<Row> {
    vec![
        Row::refusing(
            "nobody listens",
            Record::nothing(
                Failure::Connect,
                "ADDRESS refused the connection; check that the receiver is up and listening",
            ),
        ),
        Row::deaf(
            "never accepts a connection",
            Record::timeout("ADDRESS didn't accept a connection within 2 s; check its firewall"),
        ),
        Row::plain("accepts and says nothing", vec![Step::Hold], Record::timeout(NO_HANDSHAKE)),
        Row::plain("accepts and reads nothing", vec![Step::Ignore], Record::timeout(NO_HANDSHAKE)),
        Row::plain(
            "accepts and resets",
            vec![Step::Read(1), Step::Reset],
            Record::protocol("the receiver reset the connection during the TLS handshake"),
        ),
        Row::plain(
            "closes before TLS",
            Vec::new(),
            Record::protocol("the receiver closed the connection during the TLS handshake"),
        ),
    ]
}

fn handshakes() -> Vec<Row> {
    let after_hello = |bytes: &[u8]| vec![Step::Read(1), Step::Send(bytes.to_vec())];
    let alert = |number: u8| after_hello(&[21, 3, 3, 0, 2, 2, number]);
    let refused = |text: &str| Record::tls(&format!("the receiver refused the TLS connection with {text}"));
    vec![
        Row::plain(
            "sends garbage instead of TLS",
            after_hello(&[0xde, 0xad, 0xbe, 0xef, 0x99]),
            Record::tls(NOT_TLS),
        ),
        Row::plain(
            "speaks HTTP without TLS",
            after_hello(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"),
            Record::tls(NOT_TLS),
        ),
        Row::plain("is a mail server", after_hello(b"220 mail.example.org ESMTP\r\n"), Record::tls(NOT_TLS)),
        Row::plain(
            "knows no cipher of ours",
            alert(40),
            refused("alert 40 (handshake_failure); enable TLS 1.2 or 1.3 and a current cipher"),
        ),
        Row::plain(
            "refuses the version of TLS",
            alert(70),
            refused("alert 70 (protocol_version); enable TLS 1.2 or 1.3"),
        ),
        Row::plain(
            "does not know the name",
            alert(112),
            refused("alert 112 (unrecognized_name); check the URL's host name"),
        ),
        Row::plain("sends an alert of its own", alert(99), refused("alert 99; check its log")),
        Row::plain(
            "speaks TLS 1.1 only",
            after_hello(&server_hello([3, 2], [0xc0, 0x13])),
            Record::tls(
                "the receiver offers no TLS version or cipher that Rapport accepts; enable TLS 1.2 or 1.3",
            ),
        ),
        Row::plain(
            "chooses a cipher nobody offered",
            after_hello(&server_hello([3, 3], [0x00, 0x2f])),
            Record::tls("the receiver violated the TLS protocol; update its TLS software"),
        ),
        Row::plain(
            "announces a handshake without end",
            vec![Step::Read(1), Step::Send(vec![22, 3, 3, 0, 4, 2, 0xff, 0xff, 0xff]), Step::Hold],
            Record::tls("the TLS handshake is larger than 64 KiB; shorten the certificate chain"),
        ),
        Row::plain(
            "drips its handshake",
            vec![Step::Drip { bytes: server_hello([3, 3], [0xc0, 0x2f]), every: Duration::from_millis(100) }],
            Record::timeout(NO_HANDSHAKE),
        ),
    ]
}

/// A server's first message, as an old or odd server would send it.
fn server_hello(version: [u8; 2], cipher: [u8; 2]) -> Vec<u8> {
    let mut body = version.to_vec();
    body.extend([7; 32]);
    // No session, the cipher, no compression.
    body.extend([0, cipher[0], cipher[1], 0]);
    let length = u8::try_from(body.len()).expect("a short message");
    let mut record = vec![22, version[0], version[1], 0, length + 4, 2, 0, 0, length];
    record.extend(body);
    record
}

fn certificates() -> Vec<Row> {
    let self_signed = "the certificate is self-signed; use one issued by an authority (a private one can be \
                       added with --extra-ca)";
    let unknown = "the certificate was issued by an unknown authority; send the whole chain, or have the \
                   authority added with --extra-ca";
    let foreign_key = "a signature doesn't match the certificate; check that the certificate and its key \
                       belong together";
    let no_client_certificate = "the receiver refused the TLS connection with alert 116 \
                                 (certificate_required); it must not ask for a client certificate";
    let tls = |name, identity, error| Row::identity(name, identity, Record::tls(error));
    vec![
        tls("is self-signed", Identity::SelfSigned, self_signed),
        tls("is self-signed as an authority", Identity::SelfSignedAuthority, self_signed),
        tls(
            "uses an authority's certificate",
            Identity::AuthorityAsServer,
            "the certificate belongs to an authority, not to a server; use a server certificate",
        ),
        tls("is of an unknown authority", Identity::UnknownAuthority, unknown),
        tls("leaves out the intermediate certificate", Identity::MissingIntermediate, unknown),
        tls("has expired", Identity::Expired, "the certificate expired on 2020-01-01; renew it"),
        tls(
            "is not valid yet",
            Identity::NotYetValid,
            "the certificate isn't valid before 2100-01-01; check its dates",
        ),
        tls(
            "is another host",
            Identity::ForNames(&["example.org", "192.0.2.1"]),
            "the certificate is for example.org, 192.0.2.1, not for 127.0.0.1; use one that names this host",
        ),
        tls(
            "is hundreds of other hosts",
            Identity::ForManyNames(500),
            "the certificate is for 1.example.org, 2.example.org, 3.example.org and 497 more, not for \
             127.0.0.1; use one that names this host",
        ),
        tls(
            "is a name with a NUL in it",
            Identity::ForNulName,
            "the certificate doesn't name 127.0.0.1; use one that does",
        ),
        tls("is nobody", Identity::ForNobody, "the certificate doesn't name 127.0.0.1; use one that does"),
        tls(
            "has a client's certificate",
            Identity::ForClients,
            "the certificate isn't meant for servers; use one that allows server authentication",
        ),
        tls("has the key of another certificate", Identity::ForeignKey, foreign_key),
        tls(
            "presents something that is not a certificate",
            Identity::Malformed,
            "the certificate is malformed; replace it",
        ),
        tls(
            "sends hundreds of certificates",
            Identity::HugeChain,
            "the TLS handshake is larger than 64 KiB; shorten the certificate chain",
        ),
        tls("wants a certificate of ours", Identity::WantsClientCertificate, no_client_certificate),
        tls(
            "speaks HTTP/2 only",
            Identity::Http2Only,
            "the receiver refused the TLS connection with alert 120 (no_application_protocol); enable HTTP/1.1",
        ),
        Row::identity("speaks TLS 1.2 only", Identity::Tls12Only, Record::success(200)),
    ]
}
