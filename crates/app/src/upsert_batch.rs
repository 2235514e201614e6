//! A batch of upserts in one transaction: each account as if it had been sent alone, in order.

use rapport_domain::account;
use rapport_domain::right::Right;
use rapport_store::Tx;

use crate::access::Needs;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::upsert::{Upserted, foreign_project, upsert_all};

pub struct UpsertBatch {
    pub project: String,
    pub accounts: Vec<account::Upsert>,
    /// The size of the request, for its weight in the queue.
    pub bytes: usize,
}

impl UpsertBatch {
    fn is_for(&self, cx: &Context) -> bool {
        self.project == cx.company().slug.as_str()
    }
}

impl Command for UpsertBatch {
    /// One answer per account. A refused account doesn't affect the others.
    type Reply = Vec<Result<Upserted, Error>>;
    const NEEDS: Needs = Needs::Right(Right::Work);
    /// Two requests are as much as one transaction should hold.
    const TOGETHER: usize = 2;
    const AT_ONCE: usize = 2;

    fn weight(&self) -> usize {
        self.accounts.len() + self.bytes / 1024
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Self::Reply, Error> {
        let mut answers = Self::run_many(&[(self, cx)], tx)?;
        answers.pop().unwrap_or(Err(Error::Internal("no answer".to_owned())))
    }

    fn run_many(
        batch: &[(&Self, &Context)],
        tx: &mut Tx,
    ) -> Result<Vec<Result<Self::Reply, Error>>, rapport_store::Error> {
        let own = batch.iter().filter(|(command, cx)| command.is_for(cx));
        let requests =
            own.flat_map(|(command, cx)| command.accounts.iter().map(move |account| (account, *cx)));
        let mut answers = upsert_all(requests, tx)?.into_iter();
        let reply = |(command, cx): &(&Self, &Context)| {
            if command.is_for(cx) {
                Ok(answers.by_ref().take(command.accounts.len()).collect())
            } else {
                Err(foreign_project())
            }
        };
        Ok(batch.iter().map(reply).collect())
    }
}
