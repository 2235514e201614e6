//! Trying again while the database is busy, where nobody waits for an answer within a second: commands, and a
//! service that starts.

use std::time::{Duration, Instant};

use crate::Error;

/// Other services under load leave few gaps, but they do leave some.
const PATIENCE: Duration = Duration::from_mins(1);

/// What was turned away as busy was not begun, so it can be repeated.
pub async fn patiently<T, F>(attempt: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let since = Instant::now();
    loop {
        match attempt().await {
            Err(Error::Busy) if since.elapsed() < PATIENCE => {}
            result => return result,
        }
    }
}

/// Like [`patiently`], for threads that may block.
pub fn patiently_blocking<T>(attempt: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    let since = Instant::now();
    loop {
        match attempt() {
            Err(Error::Busy) if since.elapsed() < PATIENCE => {}
            result => return result,
        }
    }
}
