//! Sends one mail over SMTP: encrypted unless the operator chose otherwise, with one deadline for everything.

use std::time::{Duration, SystemTime};

use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use rapport_domain::id::MailId;
use rapport_domain::mail::{Failure, is_permanent, one_line};
use rapport_domain::time::Time;
use rustls::pki_types::CertificateDer;

/// Shorter than the lease a node has on a mail.
const DEADLINE: Duration = Duration::from_mins(1);

/// How the connection to the mail server is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// TLS from the first byte.
    Tls,
    /// A plain greeting, then TLS or nothing.
    StartTls,
    /// No encryption.
    Plain,
}

/// The server that takes outgoing mail.
#[derive(Clone, PartialEq, Eq)]
pub struct MailServer {
    pub host: String,
    pub port: u16,
    pub security: Security,
    /// User and password.
    pub login: Option<(String, String)>,
}

/// The content and recipient of a mail.
#[derive(Debug, Clone, Copy)]
pub struct Letter<'a> {
    /// The same in every attempt, so that a mail that arrives twice can be recognized as one.
    pub id: &'a str,
    pub recipient: &'a str,
    pub subject: &'a str,
    pub plain: &'a str,
    pub html: &'a str,
    pub date: Time,
}

/// These settings can't make a mailer.
#[derive(Debug, thiserror::Error)]
pub enum BadMailer {
    #[error("the sender must be an address such as Rapport <rapport@acme.test>: {0}")]
    Sender(#[from] lettre::address::AddressError),
    #[error("failed to set up TLS: {0}")]
    Tls(#[from] lettre::transport::smtp::Error),
}

/// Hands mails to the configured server.
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl Mailer {
    /// `authorities` are trusted in addition to the system's.
    pub fn new(
        server: &MailServer,
        from: &str,
        authorities: &[CertificateDer<'_>],
    ) -> Result<Self, BadMailer> {
        let from: Mailbox = from.parse()?;
        let tls = match server.security {
            Security::Plain => Tls::None,
            Security::Tls => Tls::Wrapper(tls_parameters(&server.host, authorities)?),
            Security::StartTls => Tls::Required(tls_parameters(&server.host, authorities)?),
        };
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&server.host)
            .port(server.port)
            .tls(tls)
            .timeout(Some(DEADLINE))
            .hello_name(ClientId::Domain(from.email.domain().to_owned()));
        if let Some((user, password)) = &server.login {
            builder = builder.credentials(Credentials::new(user.clone(), password.clone()));
        }
        Ok(Self { transport: builder.build(), from })
    }

    /// Sends one mail; `Ok` means that the server accepted it.
    pub async fn send(&self, letter: Letter<'_>) -> Result<(), Failure> {
        let message = self.message(letter)?;
        match tokio::time::timeout(DEADLINE, self.transport.send(message)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => {
                let permanent = error.status().is_some_and(|code| is_permanent(u16::from(code)));
                Err(Failure { permanent, error: in_full(&error) })
            }
            Err(_) => {
                let error = format!("the mail server didn't finish within {} seconds", DEADLINE.as_secs());
                Err(Failure { permanent: false, error })
            }
        }
    }

    fn message(&self, letter: Letter) -> Result<Message, Failure> {
        let unusable = |error: String| Failure { permanent: true, error };
        let recipient: Address =
            letter.recipient.parse().map_err(|error| unusable(format!("invalid address: {error}")))?;
        let micros = u64::try_from(letter.date.as_micros()).unwrap_or(0);
        let message = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, recipient))
            .subject(one_line(letter.subject))
            .date(SystemTime::UNIX_EPOCH + Duration::from_micros(micros))
            .message_id(Some(format!("<{}@{}>", letter.id, self.from.email.domain())))
            // Keeps out-of-office programs from answering.
            .raw_header(plain_header("Auto-Submitted", "auto-generated"))
            .multipart(MultiPart::alternative_plain_html(letter.plain.to_owned(), letter.html.to_owned()));
        message.map_err(|error| unusable(error.to_string()))
    }

    /// Sends a mail that says that mail works.
    pub async fn send_test(&self, id: MailId, recipient: &str, now: Time) -> Result<(), Failure> {
        let text = "This is a test. Rapport can send mail.";
        let html = format!("<!DOCTYPE html><html lang=\"en\"><body><p>{text}</p></body></html>");
        let (id, plain) = (id.to_string(), format!("{text}\n"));
        let subject = "Test mail from Rapport";
        self.send(Letter { id: &id, recipient, subject, plain: &plain, html: &html, date: now }).await
    }
}

/// Checks whether this can be the sender of mails.
pub fn check_sender(from: &str) -> Result<(), BadMailer> {
    let mailbox: Mailbox = from.parse()?;
    let has_control = mailbox.name.is_some_and(|name| name.chars().any(char::is_control));
    if has_control { Err(lettre::address::AddressError::InvalidInput.into()) } else { Ok(()) }
}

fn plain_header(name: &'static str, value: &str) -> HeaderValue {
    HeaderValue::new(HeaderName::new_from_ascii_str(name), value.to_owned())
}

fn tls_parameters(
    host: &str,
    authorities: &[CertificateDer],
) -> Result<TlsParameters, lettre::transport::smtp::Error> {
    let mut builder = TlsParameters::builder(host.to_owned());
    for authority in authorities {
        builder = builder.add_root_certificate(Certificate::from_der(authority.to_vec())?);
    }
    builder.build()
}

/// An error with its causes, because a mail server's own words are in the cause.
fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(found) = cause {
        let words = found.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = found.source();
    }
    text
}
