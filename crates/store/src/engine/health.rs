//! Whether storage can take changes, as far as it knows without trying.

use parking_lot::Mutex;

use crate::error::Error;

/// Set by the engine's threads, asked by whoever must know before sending work.
#[derive(Default)]
pub struct Health {
    fault: Mutex<Option<String>>,
}

impl Health {
    /// Notes what is wrong now, or that nothing is. Logs only when that changes.
    pub fn set(&self, fault: Option<String>) {
        let mut known = self.fault.lock();
        match (&*known, &fault) {
            (None, None) => return,
            (Some(before), Some(now)) if before == now => return,
            (_, Some(now)) => tracing::error!(fault = %now, "storage refuses changes"),
            (Some(_), None) => tracing::info!("storage takes changes again"),
        }
        *known = fault;
    }

    /// The fault, if there is one.
    pub fn check(&self) -> Result<(), Error> {
        match &*self.fault.lock() {
            Some(fault) => Err(Error::Unavailable(fault.clone())),
            None => Ok(()),
        }
    }
}
