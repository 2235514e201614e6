//! Storage errors, by what a caller can do about them.

/// Any of these ends the transaction on both engines.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The queue is full, or the work waited too long: nothing was stored; try again shortly.
    #[error("storage is busy")]
    Busy,
    /// The connection was lost while committing: it may or may not be stored.
    #[error("the outcome of the commit is unknown")]
    OutcomeUnknown,
    /// Another transaction was in the way: the engine runs the work again.
    #[error("the transaction must run again")]
    Again,
    /// The database can't be reached, or refuses work (a full disk).
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// The service is stopping.
    #[error("storage is closed")]
    Closed,
    /// Our fault: a bad statement, an unexpected value, a panic.
    #[error("storage fault: {0}")]
    Fault(String),
}

impl Error {
    /// Whether the database failed, rather than this piece of work.
    pub(crate) fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::OutcomeUnknown)
    }

    pub(crate) fn fault(message: impl Into<String>) -> Self {
        Self::Fault(message.into())
    }
}
