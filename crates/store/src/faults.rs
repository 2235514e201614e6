//! Faults on demand, for tests: any job can fail before its commit or lose the result of it.
//!
//! The handling of a lost result must be correct for every job, and no real database loses results on
//! request.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use rapport_domain::id::CompanyId;

use crate::error::Error;
use crate::queue::{Job, Verdict};
use crate::tx::Tx;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is stored, and the caller is told so.
    BeforeCommit,
    /// It is stored, but the caller is told that the outcome is unknown.
    AfterCommit,
}

/// Decides by its name how a job fails.
#[derive(Clone)]
pub struct Faults(Arc<Decide>);

type Decide = dyn Fn(&str) -> Option<Fault> + Send + Sync;

impl Faults {
    pub fn new(decide: impl Fn(&str) -> Option<Fault> + Send + Sync + 'static) -> Self {
        Self(Arc::new(decide))
    }

    pub(crate) fn wrap(&self, job: Box<dyn Job>) -> Box<dyn Job> {
        match (self.0)(job.name()) {
            Some(fault) => Box::new(Faulty { job, fault }),
            None => job,
        }
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faults")
    }
}

/// A job that fails. It runs alone, whatever its family.
struct Faulty {
    job: Box<dyn Job>,
    fault: Fault,
}

impl Job for Faulty {
    fn company(&self) -> CompanyId {
        self.job.company()
    }

    fn weight(&self) -> usize {
        self.job.weight()
    }

    fn exclusive(&self) -> bool {
        self.job.exclusive()
    }

    fn run(&mut self, _: &mut [Box<dyn Job>], tx: &mut Tx) -> Result<Verdict, Error> {
        let verdict = self.job.run(&mut [], tx)?;
        match self.fault {
            Fault::BeforeCommit => Err(Error::Unavailable("an injected fault".to_owned())),
            Fault::AfterCommit => {
                tx.forget_after_commit();
                Ok(verdict)
            }
        }
    }

    fn settle(self: Box<Self>, outcome: Result<(), Error>) {
        let lost = outcome.and(Err(Error::OutcomeUnknown));
        self.job.settle(lost);
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
