//! What the API does with passwords, and with people who present no credential.

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
        let done = self.0.hashing.slowly(Arc::clone(self.app().services()), work);
        done.await.map_err(refused)
    }
}

/// What a use case refused to somebody who presents no credential.
pub(super) fn refused(error: Error) -> Problem {
    Problem::of(error, Scheme::Token)
}
