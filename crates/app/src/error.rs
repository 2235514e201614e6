//! The errors of use cases. The API maps them to HTTP in one place.

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
    /// Too much of it in a short time: wait for so many seconds.
    #[error("{detail}")]
    TooMany { code: &'static str, detail: String, seconds: u64 },
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// Nothing was stored; try again soon.
    #[error("the service is busy")]
    Busy,
    /// The change may or may not be stored: the connection was lost during the commit.
    #[error("the outcome is unknown")]
    OutcomeUnknown,
    #[error("the database is not available")]
    Unavailable(String),
    #[error("the service is stopping")]
    Closed,
    #[error("internal error")]
    Internal(String),
    /// Storage has to see this error, because it may run the work again.
    #[error(transparent)]
    Store(rapport_store::Error),
}

/// Logs the failure of work that will be retried: as a warning, unless the database is unavailable or busy.
/// An outage has its own log line, and otherwise every background job would add one every few seconds.
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
    /// The database is unavailable or busy, or the service is stopping: the work itself is fine.
    pub fn is_outage(&self) -> bool {
        use rapport_store::Error as Stored;
        match self {
            Self::Busy | Self::OutcomeUnknown | Self::Unavailable(_) | Self::Closed => true,
            Self::Store(error) => !matches!(error, Stored::Fault(_)),
            _ => false,
        }
    }

    /// Whether a password was checked and is not the right one.
    pub fn is_wrong_password(&self) -> bool {
        matches!(self, Self::Invalid(invalid) if invalid.0.iter().any(|fault| fault.code == "wrong_password"))
    }

    /// For the service itself: the company is gone, so there is nothing left to do.
    pub fn is_deleted_company(&self) -> bool {
        matches!(self, Self::Unauthenticated)
    }

    /// Whether the person has to show or set up a second factor first.
    pub fn is_lack_of_factor(&self) -> bool {
        matches!(self, Self::Forbidden { code: "second_factor_required", .. })
    }

    pub fn lacks_factor() -> Self {
        Self::forbidden("second_factor_required", "this requires a second factor")
    }

    /// The caller's role isn't enough.
    pub fn is_lack_of_role(&self) -> bool {
        matches!(self, Self::Forbidden { code: "role_required", .. })
    }

    /// A person has to prove again who they are.
    pub fn is_lack_of_proof(&self) -> bool {
        matches!(self, Self::Forbidden { code: "proof_required", .. })
    }

    /// Every code of a conflict, of something that is not allowed, or of too much of it.
    pub const CODES: [&str; 49] = [
        "address_taken",
        "already_a_member",
        "already_invited",
        "already_sent",
        "already_undone",
        "break_glass_owner",
        "changed_since",
        "channel_in_use",
        "code_taken",
        "deletion_begun",
        "deletion_requested",
        "domain_claimed",
        "domain_not_confirmed",
        "domain_taken",
        "foreign_project",
        "imported_id_taken",
        "last_owner",
        "login_not_confined",
        "mail_not_configured",
        "member_inactive",
        "name_taken",
        "no_second_factor",
        "not_ended",
        "not_running",
        "not_uploaded",
        "own_second_factor",
        "passkey_known",
        "payload_erased",
        "person_known",
        "project_taken",
        "proof_required",
        "rate_taken",
        "role_required",
        "second_factor_required",
        "sso_required",
        "sso_session",
        "test_required",
        "too_many_addresses",
        "too_many_idempotency_keys",
        "too_many_imports",
        "too_many_mails",
        "too_many_passkeys",
        "too_many_views",
        "too_many_waiting",
        "totp_known",
        "undo_expired",
        "undoing",
        "uploaded",
        "webhook_deleted",
    ];

    pub fn conflict(code: &'static str, detail: impl Into<String>) -> Self {
        debug_assert!(Self::CODES.contains(&code), "the list of codes lacks {code}");
        Self::Conflict { code, detail: detail.into() }
    }

    pub fn too_many(code: &'static str, detail: impl Into<String>, seconds: u64) -> Self {
        debug_assert!(Self::CODES.contains(&code), "the list of codes lacks {code}");
        Self::TooMany { code, detail: detail.into(), seconds }
    }

    pub fn forbidden(code: &'static str, detail: impl Into<String>) -> Self {
        debug_assert!(Self::CODES.contains(&code), "the list of codes lacks {code}");
        Self::Forbidden { code, detail: detail.into() }
    }

    /// The error as the caller of the use case sees it.
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
