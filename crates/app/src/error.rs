//! What a use case can answer instead of its reply. HTTP is said elsewhere, in one file.

use rapport_domain::invalid::Invalid;

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// No live credential of the right kind was presented.
    #[error("not authenticated")]
    Unauthenticated,
    #[error("{detail}")]
    Forbidden { code: &'static str, detail: String },
    #[error("no such {0}")]
    NotFound(&'static str),
    #[error("{detail}")]
    Conflict { code: &'static str, detail: String },
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// Nothing was stored; try again shortly.
    #[error("the service is busy")]
    Busy,
    /// It may or may not be stored: the connection was lost at the commit.
    #[error("the outcome is unknown")]
    OutcomeUnknown,
    #[error("the database is not available")]
    Unavailable(String),
    #[error("the service is stopping")]
    Closed,
    #[error("internal error")]
    Internal(String),
    /// Storage must see it: it may run the work again.
    #[error(transparent)]
    Store(rapport_store::Error),
}

/// Logs that work failed which runs again: a warning, unless the database is away or busy. That has a line in
/// the log of its own, and everything that runs by itself would add one every few seconds.
#[macro_export]
macro_rules! log_failure {
    ($error:expr, $($rest:tt)+) => {
        if $error.is_outage() {
            ::tracing::debug!(error = %$error, $($rest)+);
        } else {
            ::tracing::warn!(error = %$error, $($rest)+);
        }
    };
}

impl Error {
    /// The database is away or busy, or the service is stopping: nothing is wrong with the work itself.
    pub fn is_outage(&self) -> bool {
        use rapport_store::Error as Stored;
        match self {
            Self::Busy | Self::OutcomeUnknown | Self::Unavailable(_) | Self::Closed => true,
            Self::Store(error) => !matches!(error, Stored::Fault(_)),
            _ => false,
        }
    }

    pub fn conflict(code: &'static str, detail: impl Into<String>) -> Self {
        Self::Conflict { code, detail: detail.into() }
    }

    pub fn forbidden(code: &'static str, detail: impl Into<String>) -> Self {
        Self::Forbidden { code, detail: detail.into() }
    }

    /// As the caller of the use case sees it.
    pub(crate) fn settled(self) -> Self {
        let Self::Store(error) = self else { return self };
        match error {
            rapport_store::Error::Busy | rapport_store::Error::Again => Self::Busy,
            rapport_store::Error::OutcomeUnknown => Self::OutcomeUnknown,
            rapport_store::Error::Unavailable(detail) => Self::Unavailable(detail),
            rapport_store::Error::Closed => Self::Closed,
            rapport_store::Error::Fault(detail) => Self::Internal(detail),
        }
    }
}

impl From<rapport_store::Error> for Error {
    fn from(error: rapport_store::Error) -> Self {
        Self::Store(error)
    }
}
