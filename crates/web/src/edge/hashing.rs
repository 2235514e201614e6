//! Password hashing. It is slow on purpose, so it runs on blocking threads, with few hashes at a time.

use std::sync::Arc;

use rapport_app::{Error, Services};
use tokio::sync::Semaphore;

/// How many passwords may be hashed at once. Each hash occupies a core and some memory for a while.
const AT_ONCE: usize = 2;

pub struct Hashing(Semaphore);

impl Default for Hashing {
    fn default() -> Self {
        Self(Semaphore::new(AT_ONCE))
    }
}

impl Hashing {
    /// Hashes or checks a password, waiting for its turn.
    pub async fn slowly<T: Send + 'static>(
        &self,
        services: Arc<Services>,
        work: impl FnOnce(&Services) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let _turn = self.0.acquire().await;
        let done = tokio::task::spawn_blocking(move || work(&services)).await;
        done.map_err(|error| Error::Internal(error.to_string()))?
    }
}
