//! Work on passwords: slow on purpose, so it runs beside the async threads, and little of it at once.

use std::sync::Arc;

use rapport_app::{Error, Services};

use crate::api::Api;
use crate::auth::Scheme;
use crate::problem::Problem;

impl Api {
    /// Hashes or checks a password when its turn has come.
    pub(super) async fn slowly<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Services) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Problem> {
        let _turn = self.0.hashing.acquire().await;
        let services = Arc::clone(self.app().services());
        let done = tokio::task::spawn_blocking(move || work(&services)).await;
        done.map_err(|error| Problem::internal(error.to_string()))?.map_err(refused)
    }
}

/// What a use case refused to somebody who presents no credential.
pub(super) fn refused(error: Error) -> Problem {
    Problem::of(error, Scheme::Token)
}
