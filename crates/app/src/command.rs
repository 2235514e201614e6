//! How a use case that writes runs: as a job of one company, alone or batched with others of its kind.

use std::any::{Any, TypeId};
use std::sync::Arc;
use std::time::Instant;

use rapport_domain::company::{Company, Settings};
use rapport_domain::history::Actor;
use rapport_domain::id::{CompanyId, RawId};
use rapport_domain::member::Role;
use rapport_domain::opt_in::OptIn;
use rapport_domain::second_factor::Step;
use rapport_domain::sender_check::Relay;
use rapport_domain::time::Time;
use rapport_store::{Job, Lane, Store, Tx, Verdict};
use tokio::sync::{Notify, oneshot};

use crate::access::{self, Access, Caller, Needs};
use crate::context::Services;
use crate::dispatch::Sender;
use crate::error::Error;
use crate::mail::Outside;
use crate::origin::Origin;
use crate::subscribers::Subscribers;
use crate::vault::Vault;

/// A use case that writes. `&self` makes running it again safe.
pub trait Command: Send + Sync + Sized + 'static {
    type Reply: Send + 'static;

    /// Who may run it.
    const NEEDS: Needs;
    const LANE: Lane = Lane::Interactive;
    /// Nothing else of the company runs at the same time.
    const EXCLUSIVE: bool = false;
    /// How many commands of one company may run in one batch, for hot commands that implement `run_many`. None of
    /// them needs a proof.
    const TOGETHER: usize = 1;
    /// How many such batches of one company may run at once.
    const AT_ONCE: usize = usize::MAX;
    /// From how much weight another batch begins while one runs: smaller ones wait a moment for more.
    const WORTHWHILE: usize = 0;

    /// Its cost against the queue's limit.
    fn weight(&self) -> usize {
        1
    }

    /// Whether a person must have proved recently who they are. Programs prove it with every request.
    fn needs_proof(&self, cx: &Context) -> bool {
        let _ = cx;
        false
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Self::Reply, Error>;

    /// Runs several commands in few statements. A refused one leaves nothing behind. An outer error undoes
    /// all of them, and each then runs alone.
    fn run_many(
        batch: &[(&Self, &Context)],
        tx: &mut Tx,
    ) -> Result<Vec<Result<Self::Reply, Error>>, rapport_store::Error> {
        let _ = tx;
        unreachable!("{} commands run one by one", batch.len())
    }
}

/// The context a command runs in: one moment, one caller.
pub struct Context<'a> {
    pub now: Time,
    pub caller: Caller,
    /// Where the command came from, for callers over the network.
    pub origin: Option<Origin>,
    services: &'a Services,
}

impl Context<'_> {
    pub fn id<T: From<RawId>>(&self) -> T {
        self.services.id(self.now)
    }

    pub fn random<const N: usize>(&self) -> [u8; N] {
        self.services.random()
    }

    pub fn sender(&self) -> Option<Arc<dyn Sender>> {
        self.services.sender()
    }

    /// Wakes the cadence sweep after the commit.
    pub fn wake_cadence(&self, tx: &mut Tx) {
        let changes = Arc::clone(self.services.cadence_changes());
        tx.after_commit(move || changes.notify_one());
    }

    pub fn fan_out_continues(&self) -> Arc<Notify> {
        Arc::clone(self.services.fan_out_continues())
    }

    pub fn subscribers(&self) -> &Arc<Subscribers> {
        self.services.subscribers()
    }

    pub fn vault(&self) -> &Vault {
        self.services.vault()
    }

    pub fn outside(&self) -> &Outside {
        self.services.outside()
    }

    pub fn trusted_relay(&self) -> Option<&Relay> {
        self.services.trusted_relay()
    }

    pub fn mail_written(&self) -> Arc<Notify> {
        Arc::clone(self.services.mail_written())
    }

    pub fn company(&self) -> &Company {
        &self.caller.company
    }

    pub fn settings(&self) -> &Settings {
        &self.caller.company.settings
    }

    pub fn actor(&self) -> &Actor {
        &self.caller.actor
    }

    /// The caller's address, an IPv4 one in its own form, for callers over the network.
    pub fn address_text(&self) -> Option<String> {
        self.origin.map(|origin| origin.address.to_canonical().to_string())
    }

    /// The same moment, in a company that was just created.
    pub fn within(&self, company: Company) -> Context<'_> {
        let caller = Caller { company, ..self.caller.clone() };
        Context { now: self.now, caller, origin: self.origin, services: self.services }
    }

    /// The same moment, on behalf of the actor who asked for the work earlier.
    pub fn acting_as(&self, actor: Actor) -> Context<'_> {
        let caller = Caller { actor, ..self.caller.clone() };
        Context { now: self.now, caller, origin: self.origin, services: self.services }
    }
}

pub(crate) fn submit<C: Command>(
    store: &Store,
    services: &Arc<Services>,
    access: Access,
    origin: Option<Origin>,
    command: C,
) -> oneshot::Receiver<Result<C::Reply, Error>> {
    let (reply, receiver) = oneshot::channel();
    let services = Arc::clone(services);
    let submitted = Some(Instant::now());
    store.submit(
        C::LANE,
        Box::new(CommandJob { command, access, origin, services, submitted, reply, kept: None }),
    );
    receiver
}

struct CommandJob<C: Command> {
    command: C,
    access: Access,
    origin: Option<Origin>,
    services: Arc<Services>,
    /// When it entered the queue, until it first runs.
    submitted: Option<Instant>,
    reply: oneshot::Sender<Result<C::Reply, Error>>,
    kept: Option<Result<C::Reply, Error>>,
}

impl<C: Command> CommandJob<C> {
    fn note_wait(&mut self) {
        if let Some(submitted) = self.submitted.take() {
            self.services.figures().queue_wait.record(submitted.elapsed());
        }
    }

    fn run_alone(&mut self, tx: &mut Tx) -> Result<Verdict, rapport_store::Error> {
        self.note_wait();
        let services = Arc::clone(&self.services);
        let now = services.clock.now();
        let checked = if self.access == Access::NO_COMPANY {
            Ok(nobody(now))
        } else {
            access::check_one(tx, &services, &self.access, C::NEEDS, now)?
        };
        let answer = checked.and_then(|caller| {
            let cx = Context { now, caller, origin: self.origin, services: &services };
            if self.command.needs_proof(&cx) {
                cx.caller.prove(now)?;
            }
            self.command.run(tx, &cx)
        });
        match answer {
            Err(Error::Store(error)) => Err(error),
            answer => {
                let verdict = if answer.is_ok() { Verdict::Commit } else { Verdict::Rollback };
                self.kept = Some(answer);
                Ok(verdict)
            }
        }
    }

    fn run_together(
        &mut self,
        rest: &mut [Box<dyn Job>],
        tx: &mut Tx,
    ) -> Result<Verdict, rapport_store::Error> {
        let services = Arc::clone(&self.services);
        let now = services.clock.now();
        let mut jobs: Vec<&mut Self> = vec![self];
        jobs.extend(rest.iter_mut().filter_map(|job| job.as_any().downcast_mut::<Self>()));
        jobs.iter_mut().for_each(|job| job.note_wait());
        let accesses: Vec<&Access> = jobs.iter().map(|job| &job.access).collect();
        let checked = access::check(tx, &services, &accesses, C::NEEDS, now)?;
        let context = |(caller, job): (Result<Caller, Error>, &&mut Self)| {
            caller.map(|caller| Context { now, caller, origin: job.origin, services: &services })
        };
        let contexts: Vec<Result<Context, Error>> = checked.into_iter().zip(&jobs).map(context).collect();
        let batch: Vec<(&C, &Context)> = jobs
            .iter()
            .zip(&contexts)
            .filter_map(|(job, cx)| cx.as_ref().ok().map(|cx| (&job.command, cx)))
            .collect();
        let mut answers = if batch.is_empty() { Vec::new() } else { C::run_many(&batch, tx)? }.into_iter();
        for (job, cx) in jobs.into_iter().zip(contexts) {
            job.kept = match cx {
                Ok(_) => answers.next(),
                Err(refused) => Some(Err(refused)),
            };
        }
        Ok(Verdict::Commit)
    }
}

/// The caller that creates a company, before there is a company to belong to.
fn nobody(now: Time) -> Caller {
    let company = Company {
        id: CompanyId(0),
        slug: rapport_domain::company::Slug::from_stored(String::new()),
        name: String::new(),
        settings: Settings::default(),
        opt_in: OptIn::default(),
        sample_since: None,
        created_at: now,
    };
    let (actor, role, step) = (Actor::CommandLine, Role::Owner, Step::Nothing);
    Caller { company, actor, role, companies: 0, proved_at: None, step, by_sso: false }
}

impl<C: Command> Job for CommandJob<C> {
    fn company(&self) -> CompanyId {
        self.access.company()
    }

    fn name(&self) -> &'static str {
        std::any::type_name::<C>()
    }

    fn family(&self) -> Option<TypeId> {
        (C::TOGETHER > 1).then(TypeId::of::<C>)
    }

    fn most_together(&self) -> usize {
        C::TOGETHER
    }

    fn at_once(&self) -> usize {
        C::AT_ONCE
    }

    fn worthwhile(&self) -> usize {
        C::WORTHWHILE
    }

    fn weight(&self) -> usize {
        self.command.weight()
    }

    fn exclusive(&self) -> bool {
        C::EXCLUSIVE
    }

    fn run(&mut self, rest: &mut [Box<dyn Job>], tx: &mut Tx) -> Result<Verdict, rapport_store::Error> {
        if C::TOGETHER > 1 { self.run_together(rest, tx) } else { self.run_alone(tx) }
    }

    fn settle(self: Box<Self>, outcome: Result<(), rapport_store::Error>) {
        let answer = match outcome {
            Ok(()) => {
                self.services.commits().note(self.access.company());
                self.kept.unwrap_or_else(|| Err(Error::Internal("a job kept no reply".to_owned())))
            }
            Err(error) => {
                if matches!(error, rapport_store::Error::Busy) {
                    self.services.figures().rejected.increment(1);
                }
                Err(Error::Store(error))
            }
        };
        if let Err(Error::Store(rapport_store::Error::Fault(detail))) = &answer {
            tracing::error!(%detail, command = std::any::type_name::<C>(), "command failed");
        }
        let _ = self.reply.send(answer.map_err(Error::settled));
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
