//! Work waiting for the engine's threads: bounded, in three lanes, never growing under load.

use std::any::{Any, TypeId};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rapport_domain::id::CompanyId;

use crate::costs::Costs;
use crate::error::Error;
use crate::tx::Tx;

const MAX_JOBS: usize = 1024;
const MAX_WEIGHT: usize = 32 * 1024;
/// How long jobs wait for others before they run as a small group beside another one.
const PATIENCE: Duration = Duration::from_millis(2);
/// How long a group of one family should take. Others wait for it, and what it causes comes all at once.
const LONGEST_GROUP: Duration = Duration::from_millis(300);

/// The priority of work, and whether it may be rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Results of work already done outside: never rejected.
    Outcome,
    /// Work that a person or a program is waiting for.
    Interactive,
    /// Small steps that can wait; at most one per group.
    Background,
}

/// How a job wants its part of the transaction to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Commit,
    Rollback,
}

/// A unit of work: one company, one savepoint. It holds its own reply until it is settled.
pub trait Job: Send {
    fn company(&self) -> CompanyId;

    /// Its name, which tests use to make it fail.
    fn name(&self) -> &'static str {
        "job"
    }

    /// Jobs of one family and company may run together, up to `most_together`.
    fn family(&self) -> Option<TypeId> {
        None
    }

    fn most_together(&self) -> usize {
        1
    }

    /// How many groups of its family may run at once for one company. If they would wait for the same rows,
    /// running more at once only occupies writers that others could use, and makes the groups smaller.
    fn at_once(&self) -> usize {
        usize::MAX
    }

    /// The weight from which a group is worth a transaction of its own while another of its family and company runs.
    /// With less, jobs wait for others, or until that group is finished, but only for a moment.
    fn worthwhile(&self) -> usize {
        0
    }

    /// Its cost against the queue's bound, in rows or kibibytes.
    fn weight(&self) -> usize {
        1
    }

    /// Whether nothing else of the company may run at the same time.
    fn exclusive(&self) -> bool {
        false
    }

    /// Runs it, with `rest` of the same family. It may be run again, so it must start from scratch.
    fn run(&mut self, rest: &mut [Box<dyn Job>], tx: &mut Tx) -> Result<Verdict, Error>;

    /// Delivers the result. `Ok` means that the outcome requested by the verdict is durable.
    fn settle(self: Box<Self>, outcome: Result<(), Error>);

    fn as_any(&mut self) -> &mut dyn Any;
}

pub fn weight_of(jobs: &[Box<dyn Job>]) -> usize {
    jobs.iter().map(|job| job.weight()).sum()
}

/// A job with its place in the queue.
pub struct Waiting {
    pub job: Box<dyn Job>,
    pub lane: Lane,
    since: Instant,
}

#[derive(Default)]
struct State {
    outcome: VecDeque<Waiting>,
    interactive: VecDeque<Waiting>,
    background: VecDeque<Waiting>,
    interactive_weight: usize,
    /// Groups that writers have taken but not finished yet.
    under_way: HashMap<(CompanyId, TypeId), usize>,
    costs: Costs,
    /// When the jobs that wait for others go without them.
    go_at: Option<Instant>,
    /// Whether a writer sleeps no longer than until then.
    watched: bool,
    closed: bool,
}

/// The writers' queue.
pub struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    /// Work that waits longer is settled as "busy": its caller has most likely given up.
    max_wait: Duration,
}

/// The limits of one `take`.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    pub max_jobs: usize,
    pub max_weight: usize,
    /// Only jobs that can run together with the first.
    pub one_family: bool,
}

impl Queue {
    pub fn new(max_wait: Duration) -> Self {
        Self { state: Mutex::default(), wake: Condvar::new(), max_wait }
    }

    pub fn push(&self, lane: Lane, job: Box<dyn Job>) -> Result<(), (Box<dyn Job>, Error)> {
        let mut state = self.state.lock();
        if state.closed {
            return Err((job, Error::Closed));
        }
        let waiting = Waiting { since: Instant::now(), lane, job };
        match lane {
            Lane::Outcome => state.outcome.push_back(waiting),
            Lane::Background => state.background.push_back(waiting),
            Lane::Interactive => {
                let weight = waiting.job.weight();
                let full = state.interactive.len() >= MAX_JOBS
                    || (state.interactive_weight + weight > MAX_WEIGHT && !state.interactive.is_empty());
                if full {
                    return Err((waiting.job, Error::Busy));
                }
                state.interactive_weight += weight;
                state.interactive.push_back(waiting);
            }
        }
        let wakes = !state.watched || state.next(state.lane(lane), Instant::now()).is_ok();
        drop(state);
        if wakes {
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Waits for work and takes a group of it; `None` once closed and empty. Call `finished` for a group
    /// before taking more.
    pub fn take(&self, limits: Group) -> Option<Vec<Box<dyn Job>>> {
        let group = self.take_waiting(limits)?;
        Some(group.into_iter().map(|waiting| waiting.job).collect())
    }

    /// Puts taken jobs back at the front of their lanes, in the order they were taken. They keep their
    /// arrival time, so nobody waits longer than the limit because of this.
    pub fn give_back(&self, jobs: impl DoubleEndedIterator<Item = Waiting>) {
        let mut state = self.state.lock();
        for waiting in jobs.rev() {
            match waiting.lane {
                Lane::Outcome => state.outcome.push_front(waiting),
                Lane::Background => state.background.push_front(waiting),
                Lane::Interactive => {
                    state.interactive_weight += waiting.job.weight();
                    state.interactive.push_front(waiting);
                }
            }
        }
    }

    /// Like `take`, for a writer that may give part of the group back.
    pub fn take_waiting(&self, limits: Group) -> Option<Vec<Waiting>> {
        let mut state = self.state.lock();
        loop {
            if state.closed && state.is_empty() {
                return None;
            }
            let expired = state.expire(self.max_wait);
            let group = state.take_group(limits);
            if expired.is_empty() && group.is_empty() {
                match state.go_at.take() {
                    Some(until) => {
                        state.watched = true;
                        self.wake.wait_until(&mut state, until);
                        state.watched = false;
                    }
                    None => self.wake.wait(&mut state),
                }
                continue;
            }
            let more = !state.is_empty();
            drop(state);
            if more {
                self.wake.notify_one();
            }
            for waiting in expired {
                waiting.job.settle(Err(Error::Busy));
            }
            if !group.is_empty() {
                return Some(group);
            }
            state = self.state.lock();
        }
    }

    /// Lets work continue that waited for a group of this family, and notes how long so much of it took.
    pub fn finished(&self, (company, family): (CompanyId, Option<TypeId>), weight: usize, took: Duration) {
        let Some(family) = family else { return };
        let mut state = self.state.lock();
        state.costs.note(family, weight, took);
        if let Entry::Occupied(mut place) = state.under_way.entry((company, family)) {
            *place.get_mut() -= 1;
            if *place.get() == 0 {
                place.remove();
            }
        }
        let more = !state.is_empty();
        drop(state);
        if more {
            self.wake.notify_one();
        }
    }

    /// Rejects work that waited too long; returns how much. Writers also do this themselves whenever they
    /// take work.
    pub fn expire(&self) -> usize {
        let expired = self.state.lock().expire(self.max_wait);
        let count = expired.len();
        expired.into_iter().for_each(|waiting| waiting.job.settle(Err(Error::Busy)));
        count
    }

    /// Accepts no more work; what is queued is still processed.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_all();
    }

    pub fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    pub fn depth(&self) -> usize {
        let state = self.state.lock();
        state.outcome.len() + state.interactive.len() + state.background.len()
    }
}

impl State {
    fn is_empty(&self) -> bool {
        self.outcome.is_empty() && self.interactive.is_empty() && self.background.is_empty()
    }

    fn expire(&mut self, max_wait: Duration) -> Vec<Waiting> {
        let mut expired = Vec::new();
        while let Some(first) = self.interactive.front() {
            if first.since.elapsed() < max_wait {
                break;
            }
            self.interactive_weight -= first.job.weight();
            expired.extend(self.interactive.pop_front());
        }
        expired
    }

    fn take_group(&mut self, limits: Group) -> Vec<Waiting> {
        if limits.one_family {
            return self.take_family(limits);
        }
        let mut group = Vec::new();
        let mut weight = 0;
        group.extend(self.outcome.drain(..));
        while let Some(first) = self.interactive.front() {
            let next = first.job.weight();
            if group.len() >= limits.max_jobs || (weight + next > limits.max_weight && !group.is_empty()) {
                break;
            }
            weight += next;
            self.interactive_weight -= next;
            group.extend(self.interactive.pop_front());
        }
        group.extend(self.background.pop_front());
        group
    }

    fn lane(&self, lane: Lane) -> &VecDeque<Waiting> {
        match lane {
            Lane::Outcome => &self.outcome,
            Lane::Interactive => &self.interactive,
            Lane::Background => &self.background,
        }
    }

    fn lane_mut(&mut self, lane: Lane) -> &mut VecDeque<Waiting> {
        match lane {
            Lane::Outcome => &mut self.outcome,
            Lane::Interactive => &mut self.interactive,
            Lane::Background => &mut self.background,
        }
    }

    /// Where the first job is that may go now, or else when the first of those goes that wait for others.
    fn next(&self, lane: &VecDeque<Waiting>, now: Instant) -> Result<usize, Option<Instant>> {
        let mut go_at: Option<Instant> = None;
        // The first job of a family decides for all of it.
        let mut held: Vec<(CompanyId, TypeId)> = Vec::new();
        for (at, Waiting { job, since, .. }) in lane.iter().enumerate() {
            let Some(family) = job.family() else { return Ok(at) };
            let key = (job.company(), family);
            if held.contains(&key) {
                continue;
            }
            let Some(taken) = self.under_way.get(&key) else { return Ok(at) };
            if *taken < job.at_once() {
                let ready = *since + PATIENCE;
                if weighs(lane, at, key, job.worthwhile()) || ready <= now {
                    return Ok(at);
                }
                go_at = Some(go_at.map_or(ready, |earliest| earliest.min(ready)));
            }
            held.push(key);
        }
        Err(go_at)
    }

    /// The first job that doesn't have to wait, and those that may run together with it.
    fn take_family(&mut self, limits: Group) -> Vec<Waiting> {
        let mut found = None;
        let now = Instant::now();
        self.go_at = None;
        for kind in [Lane::Outcome, Lane::Interactive, Lane::Background] {
            match self.next(self.lane(kind), now) {
                Ok(at) => {
                    found = Some((kind, at));
                    break;
                }
                Err(go_at) => self.go_at = [self.go_at, go_at].into_iter().flatten().min(),
            }
        }
        let Some((kind, mut at)) = found else { return Vec::new() };
        let interactive = kind == Lane::Interactive;
        let Some(first) = self.lane_mut(kind).remove(at) else { return Vec::new() };
        let mut weight = first.job.weight();
        let (company, family) = (first.job.company(), first.job.family());
        let most = first.job.most_together().min(limits.max_jobs);
        let mut group = vec![first];
        if let Some(family) = family {
            let most_weight = self.costs.most_weight(family, LONGEST_GROUP).min(limits.max_weight);
            let lane = self.lane_mut(kind);
            while at < lane.len() && group.len() < most {
                let job = &lane[at].job;
                let fits = weight + job.weight() <= most_weight;
                if fits && job.family() == Some(family) && job.company() == company {
                    weight += job.weight();
                    group.extend(lane.remove(at));
                } else {
                    at += 1;
                }
            }
            *self.under_way.entry((company, family)).or_default() += 1;
        }
        if interactive {
            self.interactive_weight -= weight;
        }
        group
    }
}

/// Whether the jobs of a family, the first of which is at this place, weigh so much together.
fn weighs(lane: &VecDeque<Waiting>, at: usize, key: (CompanyId, TypeId), enough: usize) -> bool {
    let mut weight = 0;
    let jobs = lane.iter().skip(at).map(|waiting| &waiting.job);
    enough == 0
        || jobs.filter(|job| job.family() == Some(key.1) && job.company() == key.0).any(|job| {
            weight += job.weight();
            weight >= enough
        })
}

/// A read for a reader thread.
pub type Read = Box<dyn FnOnce(Result<&mut dyn crate::tx::Connection, Error>) + Send>;

/// The readers' queue: bounded, first come, first served.
pub struct ReadQueue {
    state: Mutex<(VecDeque<(Read, Instant)>, bool)>,
    wake: Condvar,
    max_wait: Duration,
}

impl ReadQueue {
    pub fn new(max_wait: Duration) -> Self {
        Self { state: Mutex::default(), wake: Condvar::new(), max_wait }
    }

    pub fn push(&self, read: Read) -> Result<(), (Read, Error)> {
        let mut state = self.state.lock();
        if state.1 {
            return Err((read, Error::Closed));
        }
        if state.0.len() >= MAX_JOBS {
            return Err((read, Error::Busy));
        }
        state.0.push_back((read, Instant::now()));
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    pub fn take(&self) -> Option<Read> {
        loop {
            let mut state = self.state.lock();
            while state.0.is_empty() {
                if state.1 {
                    return None;
                }
                self.wake.wait(&mut state);
            }
            let (read, since) = state.0.pop_front()?;
            drop(state);
            if since.elapsed() < self.max_wait {
                return Some(read);
            }
            read(Err(Error::Busy));
        }
    }

    /// Rejects work that waited too long; returns how much.
    pub fn expire(&self) -> usize {
        let mut expired = Vec::new();
        let mut state = self.state.lock();
        while state.0.front().is_some_and(|(_, since)| since.elapsed() >= self.max_wait) {
            expired.extend(state.0.pop_front());
        }
        drop(state);
        let count = expired.len();
        expired.into_iter().for_each(|(read, _)| read(Err(Error::Busy)));
        count
    }

    pub fn close(&self) {
        self.state.lock().1 = true;
        self.wake.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Group = Group { max_jobs: 2, max_weight: 100, one_family: true };

    /// Of this company and family. So many may run at once, and so many are worthwhile beside another one.
    struct Step(i64, TypeId, usize, usize);

    impl Job for Step {
        fn company(&self) -> CompanyId {
            CompanyId(self.0)
        }

        fn family(&self) -> Option<TypeId> {
            Some(self.1)
        }

        fn most_together(&self) -> usize {
            2
        }

        fn at_once(&self) -> usize {
            self.2
        }

        fn worthwhile(&self) -> usize {
            self.3
        }

        fn run(&mut self, _: &mut [Box<dyn Job>], _: &mut Tx) -> Result<Verdict, Error> {
            Ok(Verdict::Commit)
        }

        fn settle(self: Box<Self>, _: Result<(), Error>) {}

        fn as_any(&mut self) -> &mut dyn Any {
            self
        }
    }

    /// Of one family, any number of which may run together.
    struct Many(TypeId);

    impl Job for Many {
        fn company(&self) -> CompanyId {
            CompanyId(1)
        }

        fn family(&self) -> Option<TypeId> {
            Some(self.0)
        }

        fn most_together(&self) -> usize {
            usize::MAX
        }

        fn run(&mut self, _: &mut [Box<dyn Job>], _: &mut Tx) -> Result<Verdict, Error> {
            Ok(Verdict::Commit)
        }

        fn settle(self: Box<Self>, _: Result<(), Error>) {}

        fn as_any(&mut self) -> &mut dyn Any {
            self
        }
    }

    #[test]
    fn a_family_waits_for_its_group_under_way_and_others_go_first() {
        let queue = Queue::new(Duration::from_secs(1));
        let (one, other) = (TypeId::of::<u8>(), TypeId::of::<u16>());
        for (lane, company, family) in [
            (Lane::Outcome, 1, one),
            (Lane::Outcome, 1, one),
            (Lane::Outcome, 1, one),
            (Lane::Outcome, 2, one),
            (Lane::Interactive, 1, other),
        ] {
            assert!(queue.push(lane, Box::new(Step(company, family, 1, 0))).is_ok());
        }
        let take = || {
            let group = queue.take(LIMITS).unwrap();
            (group[0].company().0, group[0].family(), group.len())
        };
        assert_eq!(take(), (1, Some(one), 2));
        assert_eq!(take(), (2, Some(one), 1), "another company's job does not have to wait");
        assert_eq!(take(), (1, Some(other), 1), "nor does another family's");
        queue.finished((CompanyId(1), Some(one)), 1, Duration::ZERO);
        assert_eq!(take(), (1, Some(one), 1));
    }

    #[test]
    fn a_small_group_waits_for_more_while_another_of_its_family_runs() {
        let queue = Queue::new(Duration::from_secs(1));
        let family = TypeId::of::<u8>();
        let push = |company| {
            assert!(queue.push(Lane::Interactive, Box::new(Step(company, family, 2, 2))).is_ok());
        };
        let take = || queue.take(LIMITS).unwrap().len();
        let next = |waited: Duration| {
            let state = queue.state.lock();
            let since = state.interactive[0].since;
            state.next(&state.interactive, since + waited).map_err(|go_at| go_at.map(|at| at - since))
        };
        push(1);
        assert_eq!(take(), 1, "nothing else runs");
        push(1);
        assert_eq!(next(Duration::ZERO), Err(Some(PATIENCE)), "too little");
        assert_eq!(next(PATIENCE), Ok(0), "for long enough");
        assert_eq!(take(), 1, "when it has waited");
        push(1);
        assert_eq!(next(PATIENCE), Err(None), "no more may run at once");
        queue.finished((CompanyId(1), Some(family)), 1, Duration::ZERO);
        push(2);
        assert_eq!(next(Duration::ZERO), Ok(1), "another company's does not wait");
        push(1);
        assert_eq!(next(Duration::ZERO), Ok(0), "they are enough together");
        assert_eq!(take(), 2);
    }

    #[test]
    fn a_group_gets_as_much_of_a_family_as_its_time_allows() {
        let queue = Queue::new(Duration::from_secs(1));
        let family = TypeId::of::<u8>();
        let wide = Group { max_jobs: 1_000, max_weight: 1_000, one_family: true };
        // The last of some groups, when so much time passes for each job.
        let take = |unit: Duration| {
            (0..20).fold(0, |_, _| {
                for _ in 0..500 {
                    assert!(queue.push(Lane::Outcome, Box::new(Many(family))).is_ok());
                }
                let taken = queue.take(wide).unwrap().len();
                let took = unit * u32::try_from(taken).unwrap();
                queue.finished((CompanyId(1), Some(family)), taken, took);
                queue.state.lock().outcome.clear();
                taken
            })
        };
        assert_eq!(take(Duration::from_secs(1)), 64, "a family begins with little, and never gets less");
        let known = take(Duration::from_millis(3));
        assert!((90..=100).contains(&known), "as much as takes 300 ms: {known}");
        assert_eq!(take(Duration::from_secs(1)), 64, "it got slower");
    }
}
