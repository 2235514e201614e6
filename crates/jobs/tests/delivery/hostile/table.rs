//! The parts of a row in the table.

use rapport_domain::delivery::Failure;
use rapport_store::delivery::KeptAttempt;
use rapport_testkit::{Hostile, Identity, Opening, Step};

/// One kind of hostile receiver.
pub struct Row {
    pub name: &'static str,
    kind: Kind,
    pub record: Record,
    /// An alternative record, if the result depends on how much was read.
    instead: Option<Record>,
}

enum Kind {
    /// Nobody listens.
    Refusing,
    /// Connections are never accepted.
    Deaf,
    Steps(Opening, Vec<Step>),
}

/// The result of an attempt: its record, and what happens to the delivery.
#[derive(Debug, PartialEq, Eq)]
pub struct Record {
    pub code: Option<i64>,
    pub failure: Option<String>,
    /// `ADDRESS` stands for the receiver's address.
    pub error: Option<String>,
    pub then: Then,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    Succeeded,
    /// Failed for good.
    Failed,
    /// Retried on schedule: after 5 s.
    Retried,
    /// Retried later, as the receiver asked: after this many seconds.
    RetriedAfter(i64),
}

impl Record {
    pub fn success(code: i64) -> Self {
        Self { code: Some(code), failure: None, error: None, then: Then::Succeeded }
    }

    /// No status came.
    pub fn nothing(failure: Failure, error: &str) -> Self {
        let (failure, error) = (Some(failure.as_str().to_owned()), Some(error.to_owned()));
        Self { code: None, failure, error, then: Then::Retried }
    }

    pub fn tls(error: &str) -> Self {
        Self::nothing(Failure::Tls, error)
    }

    pub fn protocol(error: &str) -> Self {
        Self::nothing(Failure::Protocol, error)
    }

    pub fn timeout(error: &str) -> Self {
        Self::nothing(Failure::Timeout, error)
    }

    /// A status came, and then the response ended early.
    pub fn broken_off(code: i64, cause: &str) -> Self {
        let error = format!("the response ended early: {cause}");
        Self { code: Some(code), ..Self::protocol(&error) }
    }

    /// A status came, and the rest took too long.
    pub fn unfinished(code: i64) -> Self {
        Self { code: Some(code), ..Self::timeout("the response didn't end within 3 s") }
    }

    /// A complete response that isn't 2xx.
    pub fn answered(code: i64, words: &str, then: Then) -> Self {
        Self { code: Some(code), failure: None, error: Some(format!("{code} {words}")), then }
    }

    pub fn of(attempt: &KeptAttempt, then: Then, receiver: &Hostile) -> Self {
        let address = receiver.address().to_string();
        let error = attempt.error.as_ref().map(|error| error.replace(&address, "ADDRESS"));
        Self { code: attempt.response_code, failure: attempt.failure.clone(), error, then }
    }

    pub fn is_timeout(&self) -> bool {
        self.failure.as_deref() == Some(Failure::Timeout.as_str())
    }
}

impl Row {
    pub fn refusing(name: &'static str, record: Record) -> Self {
        Self { name, kind: Kind::Refusing, record, instead: None }
    }

    pub fn deaf(name: &'static str, record: Record) -> Self {
        Self { name, kind: Kind::Deaf, record, instead: None }
    }

    /// Without TLS.
    pub fn plain(name: &'static str, steps: Vec<Step>, record: Record) -> Self {
        Self { name, kind: Kind::Steps(Opening::Plain, steps), record, instead: None }
    }

    /// A proper response behind a possibly bad certificate.
    pub fn identity(name: &'static str, identity: Identity, record: Record) -> Self {
        let steps = vec![Step::ReadRequest, Step::send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")];
        Self { name, kind: Kind::Steps(Opening::Tls(identity), steps), record, instead: None }
    }

    /// Trusted; it misbehaves in HTTP.
    pub fn trusted(name: &'static str, steps: Vec<Step>, record: Record) -> Self {
        Self { name, kind: Kind::Steps(Opening::Tls(Identity::Trusted), steps), record, instead: None }
    }

    /// Reads the request, sends this, and closes the connection properly.
    pub fn says(name: &'static str, response: &str, record: Record) -> Self {
        Self::trusted(name, vec![Step::ReadRequest, Step::send(response)], record)
    }

    #[must_use]
    pub fn or(self, instead: Record) -> Self {
        Self { instead: Some(instead), ..self }
    }

    pub fn allows(&self, seen: &Record) -> bool {
        *seen == self.record || self.instead.as_ref() == Some(seen)
    }

    pub fn start(&self) -> Hostile {
        match &self.kind {
            Kind::Refusing => Hostile::refusing(),
            Kind::Deaf => Hostile::deaf(),
            Kind::Steps(opening, steps) => Hostile::start(*opening, steps.clone()),
        }
    }

    /// Whether it sends until the client gives up.
    pub fn is_flood(&self) -> bool {
        self.has(|step| matches!(step, Step::Flood(_)))
    }

    /// Whether the client must close the connection instead of keeping it. A receiver that doesn't read can't
    /// see that.
    pub fn must_be_left(&self) -> bool {
        let is_blind = self.has(|step| matches!(step, Step::Ignore));
        !is_blind && (self.record.failure.is_some() || self.is_flood())
    }

    fn has(&self, wanted: impl Fn(&Step) -> bool) -> bool {
        match &self.kind {
            Kind::Steps(_, steps) => steps.iter().any(wanted),
            Kind::Refusing | Kind::Deaf => false,
        }
    }
}
