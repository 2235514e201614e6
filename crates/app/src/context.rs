//! Time and chance, handed in by whoever starts the service; tests hand in their own.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rapport_domain::id::{CompanyId, CredentialId, IdSequence, RawId};
use rapport_domain::time::Time;

pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Time;
}

/// A source of secret randomness.
pub trait Random: Send + Sync + 'static {
    fn fill(&self, bytes: &mut [u8]);
}

/// What every command may ask for.
pub struct Services {
    pub(crate) clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    ids: Mutex<IdSequence>,
    used: Mutex<HashMap<CredentialId, (CompanyId, Time)>>,
}

impl Services {
    pub(crate) fn new(clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        Self { clock, random, ids: Mutex::default(), used: Mutex::default() }
    }

    pub fn now(&self) -> Time {
        self.clock.now()
    }

    pub fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.random.fill(&mut bytes);
        bytes
    }

    /// A fresh id that sorts after every earlier one of this process.
    pub fn id<T: From<RawId>>(&self, now: Time) -> T {
        let random = self.random();
        self.ids.lock().next(now, random)
    }

    /// Notes that a credential was used; written down now and then, not at every request.
    pub(crate) fn note_use(&self, company: CompanyId, credential: CredentialId, now: Time) {
        self.used.lock().insert(credential, (company, now));
    }

    /// What was used since the last call.
    pub fn drain_uses(&self) -> Vec<(CompanyId, CredentialId, Time)> {
        self.used.lock().drain().map(|(credential, (company, at))| (company, credential, at)).collect()
    }
}
