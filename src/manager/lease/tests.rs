//! Two electors on one lease in memory.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;

use super::*;
use crate::metrics::Freshness;

#[derive(Default)]
struct Shared {
    lease: Mutex<Option<LeaseRecord>>,
    writes: AtomicUsize,
}

/// How many lead, and for how long two did at one time.
#[derive(Default)]
struct Leaders {
    may_overlap: bool,
    now: AtomicUsize,
    since: Mutex<Option<Instant>>,
    longest: Mutex<Duration>,
}

impl Leaders {
    fn begin(&self) {
        if self.now.fetch_add(1, Ordering::SeqCst) > 0 {
            assert!(self.may_overlap, "two lead at once");
            *self.since.lock().unwrap() = Some(Instant::now());
        }
    }

    fn end(&self) {
        self.now.fetch_sub(1, Ordering::SeqCst);
        if let Some(since) = self.since.lock().unwrap().take() {
            let mut longest = self.longest.lock().unwrap();
            *longest = since.elapsed().max(*longest);
        }
    }
}

/// A store that can be cut off.
#[derive(Clone)]
struct Memory {
    shared: Arc<Shared>,
    cut: Arc<AtomicBool>,
    reads: Arc<AtomicUsize>,
}

impl Memory {
    fn of(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), cut: Arc::default(), reads: Arc::default() }
    }

    async fn reach(&self) {
        if self.cut.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    fn write(&self, mut record: LeaseRecord, expected: Option<&str>) -> Result<LeaseRecord, Error> {
        let mut lease = self.shared.lease.lock().unwrap();
        if lease.as_ref().and_then(|lease| lease.version.as_deref()) != expected {
            return Err(Error::Conflict);
        }
        record.version = Some(self.shared.writes.fetch_add(1, Ordering::SeqCst).to_string());
        *lease = Some(record.clone());
        Ok(record)
    }
}

impl LeaseStore for Memory {
    async fn get(&self) -> Result<Option<LeaseRecord>, Error> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.reach().await;
        Ok(self.shared.lease.lock().unwrap().clone())
    }

    async fn create(&self, record: LeaseRecord) -> Result<LeaseRecord, Error> {
        self.reach().await;
        self.write(record, None)
    }

    async fn replace(&self, record: LeaseRecord) -> Result<LeaseRecord, Error> {
        self.reach().await;
        let version = record.version.clone();
        self.write(record, version.as_deref())
    }
}

const TIMES: Times = Times {
    duration: Duration::from_secs(1),
    renew_deadline: Duration::from_millis(500),
    retry_period: Duration::from_millis(20),
};

const TIMEOUT: Duration = Duration::from_secs(60);

struct Candidate {
    store: Memory,
    leads: Arc<AtomicBool>,
    /// Reads of the lease until its work last ended.
    reads_at_end: Arc<AtomicUsize>,
    /// Holds up the end of the work, while it is taken.
    at_work: Arc<Semaphore>,
    cancel: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

fn candidate(shared: &Arc<Shared>, leading: &Arc<Leaders>, name: &str) -> Candidate {
    let store = Memory::of(shared);
    let (leads, leading) = (Arc::new(AtomicBool::new(false)), Arc::clone(leading));
    let cancel = CancellationToken::new();
    let elector = Elector::new(store.clone(), name.to_owned(), TIMES, TIMEOUT, Metrics::new(Freshness::default()));
    let (flag, token, at_work) = (Arc::clone(&leads), cancel.clone(), Arc::new(Semaphore::new(1)));
    let held = Arc::clone(&at_work);
    let (reads, reads_at_end) = (Arc::clone(&store.reads), Arc::<AtomicUsize>::default());
    let at_end = Arc::clone(&reads_at_end);
    let task = tokio::spawn(async move {
        let work = |term: LeaderTerm| {
            let (flag, leading, held) = (Arc::clone(&flag), Arc::clone(&leading), Arc::clone(&held));
            let (reads, at_end) = (Arc::clone(&reads), Arc::clone(&at_end));
            async move {
                leading.begin();
                flag.store(true, Ordering::SeqCst);
                term.ending().await;
                tokio::select! {
                    () = term.over() => {}
                    _ = held.acquire() => {}
                }
                at_end.store(reads.load(Ordering::SeqCst), Ordering::SeqCst);
                flag.store(false, Ordering::SeqCst);
                leading.end();
            }
        };
        elector.run(work, token).await;
    });
    Candidate { store, leads, reads_at_end, at_work, cancel, task }
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} did not happen");
}

fn leads(candidate: &Candidate) -> bool {
    candidate.leads.load(Ordering::SeqCst)
}

#[tokio::test]
async fn a_lease_given_back_is_taken_by_the_next() {
    let (shared, leading) = (Arc::default(), Arc::default());
    let first = candidate(&shared, &leading, "first");
    until("leading", || leads(&first)).await;
    let second = candidate(&shared, &leading, "second");
    first.cancel.cancel();
    first.task.await.unwrap();
    until("taking over", || leads(&second)).await;
    assert_eq!(shared.lease.lock().unwrap().as_ref().unwrap().transitions, 1);
    second.cancel.cancel();
    second.task.await.unwrap();
    assert_eq!(shared.lease.lock().unwrap().as_ref().unwrap().holder, "");
}

/// The order of stopping: what runs is finished, and only then may another begin.
#[tokio::test]
async fn the_lease_is_held_until_what_runs_has_finished() {
    let (shared, leading) = (Arc::default(), Arc::default());
    let first = candidate(&shared, &leading, "first");
    until("leading", || leads(&first)).await;
    let held = first.at_work.acquire().await.unwrap();
    let second = candidate(&shared, &leading, "second");
    first.cancel.cancel();
    // Longer than the lease lasts, so that it must be renewed meanwhile.
    sleep(TIMES.duration * 2).await;
    assert!(leads(&first) && !leads(&second));
    drop(held);
    first.task.await.unwrap();
    until("taking over", || leads(&second)).await;
    second.cancel.cancel();
    second.task.await.unwrap();
}

#[tokio::test]
async fn a_leader_that_loses_the_lease_while_it_ends_stops_at_once() {
    let (shared, leading) = (Arc::default(), Arc::default());
    let first = candidate(&shared, &leading, "first");
    until("leading", || leads(&first)).await;
    let _held = first.at_work.acquire().await.unwrap();
    first.cancel.cancel();
    first.store.cut.store(true, Ordering::SeqCst);
    until("stopping", || !leads(&first)).await;
    first.task.await.unwrap();
}

#[tokio::test]
async fn a_leader_that_is_cut_off_stops_before_another_begins_and_campaigns_again() {
    let (shared, leading) = (Arc::default(), Arc::default());
    let first = candidate(&shared, &leading, "first");
    until("leading", || leads(&first)).await;
    let second = candidate(&shared, &leading, "second");
    first.store.cut.store(true, Ordering::SeqCst);
    // That two never lead at once is asserted by their work.
    until("taking over", || leads(&second)).await;
    assert!(!leads(&first));
    first.store.cut.store(false, Ordering::SeqCst);
    second.cancel.cancel();
    second.task.await.unwrap();
    until("leading again", || leads(&first)).await;
    first.cancel.cancel();
    first.task.await.unwrap();
}

/// That two never lead at once is asserted by their work.
#[tokio::test]
async fn a_lease_that_is_deleted_or_emptied_makes_no_second_leader() {
    let (shared, leading): (Arc<Shared>, _) = (Arc::default(), Arc::default());
    let first = candidate(&shared, &leading, "first");
    until("leading", || leads(&first)).await;
    let second = candidate(&shared, &leading, "second");
    sleep(TIMES.retry_period * 5).await;
    for round in 0..20 {
        let emptied = |record: LeaseRecord| LeaseRecord {
            holder: String::new(),
            // That of one which was given back is a second.
            duration: TIMES.duration * 2,
            version: Some(format!("emptied {round}")),
            ..record
        };
        let change = |lease: &mut Option<LeaseRecord>| *lease = lease.take().filter(|_| round % 2 == 0).map(emptied);
        change(&mut shared.lease.lock().unwrap());
        let holder = || shared.lease.lock().unwrap().as_ref().map(|record| record.holder.clone());
        until("having it again", || holder().as_deref() == Some("first")).await;
        assert!(leads(&first) && !leads(&second));
    }
    for candidate in [first, second] {
        candidate.cancel.cancel();
        candidate.task.await.unwrap();
    }
}

/// How one who writes to the lease by hand makes a second leader of a replica. Returns that replica.
type Attack = fn(&Arc<Shared>, &Arc<Leaders>) -> Candidate;

fn names_a_candidate(shared: &Arc<Shared>, leading: &Arc<Leaders>) -> Candidate {
    let mut lease = shared.lease.lock().unwrap();
    if let Some(record) = lease.as_mut() {
        (record.holder, record.version) = ("second".to_owned(), Some("by hand".to_owned()));
    }
    candidate(shared, leading, "second")
}

fn deletes_while_a_replica_starts(shared: &Arc<Shared>, leading: &Arc<Leaders>) -> Candidate {
    *shared.lease.lock().unwrap() = None;
    candidate(shared, leading, "second")
}

/// How often the first tries to read the lease after the attack and before it stops, at many moments between two renewals.
async fn reads_until_one_leads(attack: Attack, is_cut_off: bool, leading: &Arc<Leaders>) -> Vec<usize> {
    let mut reads = Vec::new();
    for moment in 0..10 {
        let shared: Arc<Shared> = Arc::default();
        let first = candidate(&shared, leading, "first");
        until("leading", || leads(&first)).await;
        sleep(TIMES.retry_period * 3 + TIMES.retry_period * moment / 10).await;
        let before = first.store.reads.load(Ordering::SeqCst);
        first.store.cut.store(is_cut_off, Ordering::SeqCst);
        let second = attack(&shared, leading);
        let is_kept = || shared.lease.lock().unwrap().as_ref().is_some_and(|record| record.holder == "first");
        until("taking it", || leads(&second) || is_kept()).await;
        // A lease that was deleted is the first's again where the second was slower.
        if !is_kept() {
            until("stopping", || !leads(&first)).await;
            reads.push(first.reads_at_end.load(Ordering::SeqCst) - before);
        }
        for candidate in [first, second] {
            candidate.store.cut.store(false, Ordering::SeqCst);
            candidate.cancel.cancel();
            candidate.task.await.unwrap();
        }
    }
    reads
}

/// What `docs/availability.md` states: a leader reads once in a retry period, and stops with the first read that shows another holder; or
/// at its renew deadline, if that read has no answer.
#[tokio::test]
async fn two_lead_until_the_first_of_them_reads_the_lease_once() {
    for attack in [names_a_candidate as Attack, deletes_while_a_replica_starts] {
        for is_cut_off in [false, true] {
            let leading = Arc::new(Leaders { may_overlap: true, ..Leaders::default() });
            let reads = reads_until_one_leads(attack, is_cut_off, &leading).await;
            println!(
                "two lead for {:?} at most, of a retry period of {:?} and a renew deadline of {:?}; the first is cut off: {is_cut_off}",
                leading.longest.lock().unwrap(),
                TIMES.retry_period,
                TIMES.renew_deadline
            );
            // Two did lead: if the lease was never taken, the test would show nothing.
            assert!(!leading.longest.lock().unwrap().is_zero());
            assert!(reads.iter().all(|reads| *reads <= 1), "{reads:?}");
        }
    }
}

#[test]
fn times_that_cannot_work_are_refused() {
    let seconds = Duration::from_secs;
    let times = |duration, renew_deadline, retry_period| Times { duration, renew_deadline, retry_period };
    assert!(Times::default().check().is_ok());
    assert!(matches!(times(seconds(10), seconds(10), seconds(2)).check(), Err(TimesError::Duration { .. })));
    assert!(matches!(times(seconds(15), seconds(2), seconds(2)).check(), Err(TimesError::RenewDeadline { .. })));
    assert_eq!(times(seconds(601), seconds(10), seconds(2)).check(), Err(TimesError::TooLong(seconds(601))));
    assert!(times(seconds(10), seconds(9), Duration::MAX).check().is_err());
    assert_eq!(times(Duration::from_millis(900), seconds(0), seconds(0)).check(), Err(TimesError::TooShort));
}
