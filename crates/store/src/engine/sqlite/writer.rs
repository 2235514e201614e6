//! The writer: runs groups of jobs in one transaction each.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::agenda::{Agenda, Batch};
use super::connection::Conn;
use super::files::Files;
use crate::costs::Costs;
use crate::engine::{act, run_batch};
use crate::error::Error;
use crate::health::{Health, Side};
use crate::queue::{Job, Lane, Verdict, Waiting, weight_of};
use crate::tx::AfterCommit;

pub struct Writer {
    connection: Conn,
    files: Files,
    health: Arc<Health>,
    costs: Costs,
}

/// Batches whose transaction was lost: none of them has been settled.
struct Lost {
    jobs: Batch,
    error: Error,
}

impl Writer {
    pub fn new(connection: Conn, files: Files, health: Arc<Health>) -> Self {
        Self { connection, files, health, costs: Costs::default() }
    }

    /// Runs what there is time for, less where it is to be short, and hands back the rest.
    pub fn run_group(&mut self, group: Vec<Waiting>, is_short: bool) -> VecDeque<Waiting> {
        let begun = self.files.check().and_then(|()| self.connection.begin_changes());
        if let Err(error) = begun {
            return self.turn_away(group, &error);
        }
        let mut agenda = Agenda::new(group, is_short);
        match self.finish(|costs| agenda.next(costs)) {
            Ok(()) => {}
            Err(Lost { jobs, error }) if jobs.len() > 1 => {
                if error.is_outage() {
                    tracing::debug!(%error, jobs = jobs.len(), "group rolled back; running its jobs one by one");
                } else {
                    tracing::warn!(%error, jobs = jobs.len(), "group rolled back; running its jobs one by one");
                }
                jobs.into_iter().for_each(|job| self.run_alone(job));
            }
            Err(Lost { jobs, error }) => self.refuse(jobs, &error),
        }
        agenda.left()
    }

    fn run_alone(&mut self, job: Box<dyn Job>) {
        if let Err(error) = self.connection.begin_changes() {
            return self.refuse(vec![job], &error);
        }
        let mut batch = Some(vec![job]);
        if let Err(Lost { jobs, error }) = self.finish(|_| batch.take()) {
            self.refuse(jobs, &error);
        }
    }

    /// Runs batches in the open transaction, commits it and settles them.
    fn finish(&mut self, mut next: impl FnMut(&Costs) -> Option<Batch>) -> Result<(), Lost> {
        let changes = self.connection.sqlite.total_changes();
        let mut batches = Vec::new();
        let mut results = Vec::new();
        while let Some(mut batch) = next(&self.costs) {
            let begun = Instant::now();
            let result = self.run_part(&mut batch);
            if let Some(family) = batch[0].family() {
                self.costs.note(family, weight_of(&batch), begun.elapsed());
            }
            batches.push(batch);
            match result {
                Ok(result) => results.push(result),
                Err(error) => {
                    if !self.connection.sqlite.is_autocommit() {
                        let _ = self.connection.control("ROLLBACK");
                    }
                    return Err(Lost { jobs: batches.into_iter().flatten().collect(), error });
                }
            }
        }
        if let Err(error) = self.connection.control("COMMIT") {
            let _ = self.connection.control("ROLLBACK");
            return Err(Lost { jobs: batches.into_iter().flatten().collect(), error });
        }
        if self.connection.sqlite.total_changes() != changes {
            // A commit that wrote nothing proves nothing about the disk.
            self.health.succeeded(Side::Write);
        }
        let kept = self.files.check();
        for (batch, result) in batches.into_iter().zip(results) {
            match result.and_then(|actions| kept.clone().map(|()| actions)) {
                Ok(actions) => {
                    act(actions);
                    batch.into_iter().for_each(|job| job.settle(Ok(())));
                }
                Err(error) => self.refuse(batch, &error),
            }
        }
        Ok(())
    }

    /// Runs one batch of a group. The outer error means that the whole transaction must be rolled back:
    /// SQLite did so itself (a full disk, an I/O error), or a batch without a savepoint failed.
    fn run_part(&mut self, batch: &mut [Box<dyn Job>]) -> Result<Result<Vec<AfterCommit>, Error>, Error> {
        // Hot families never fail halfway, so they do without a savepoint: under an open savepoint every
        // statement pays for all pages changed since, and a batch of thousands becomes quadratic.
        if batch[0].family().is_some() {
            return match run_batch(&mut self.connection, batch)? {
                (Verdict::Commit, actions) => Ok(Ok(actions)),
                (Verdict::Rollback, _) => Err(Error::fault("a batch that can't be rolled back asked for it")),
            };
        }
        let result = self.run_in_savepoint(batch);
        if self.connection.sqlite.is_autocommit() {
            return Err(result.err().unwrap_or_else(|| Error::fault("the transaction ended early")));
        }
        Ok(result)
    }

    fn run_in_savepoint(&mut self, batch: &mut [Box<dyn Job>]) -> Result<Vec<AfterCommit>, Error> {
        self.connection.control("SAVEPOINT job")?;
        match run_batch(&mut self.connection, batch) {
            Ok((Verdict::Commit, actions)) => {
                self.connection.control("RELEASE job")?;
                Ok(actions)
            }
            Ok((Verdict::Rollback, _)) => self.undo().map(|()| Vec::new()),
            Err(error) => {
                if !self.connection.sqlite.is_autocommit() {
                    self.undo()?;
                }
                Err(error)
            }
        }
    }

    fn undo(&self) -> Result<(), Error> {
        self.connection.control("ROLLBACK TO job")?;
        self.connection.control("RELEASE job")
    }

    /// Settles a group that couldn't begin. While another process holds the write lock, only jobs with a
    /// waiting caller are rejected; the rest keep their place.
    fn turn_away(&self, group: Vec<Waiting>, error: &Error) -> VecDeque<Waiting> {
        let keeps_place =
            |waiting: &Waiting| matches!(error, Error::Busy) && waiting.lane != Lane::Interactive;
        let (kept, refused): (VecDeque<_>, VecDeque<_>) = group.into_iter().partition(keeps_place);
        self.refuse(refused.into_iter().map(|waiting| waiting.job).collect(), error);
        kept
    }

    fn refuse(&self, jobs: Batch, error: &Error) {
        self.health.failed(Side::Write, error, jobs.len());
        for job in jobs {
            job.settle(Err(error.clone()));
        }
    }
}
