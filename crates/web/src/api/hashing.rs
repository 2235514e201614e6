//! Password hashing and errors for the endpoints that need no credential.

use std::sync::Arc;

use rapport_app::{Error, Services};

use crate::api::Api;
use crate::edge::auth::Scheme;
use crate::edge::problem::Problem;

impl Api {
    /// Hashes or checks a password, waiting for its turn.
    pub(super) async fn slowly<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Services) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Problem> {
        let done = self.0.hashing.slowly(Arc::clone(self.app().services()), work);
        done.await.map_err(refused)
    }
}

/// The response to an error of a use case, for callers without a credential.
pub(super) fn refused(error: Error) -> Problem {
    Problem::of(error, Scheme::Token)
}
