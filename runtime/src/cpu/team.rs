//! A persistent team of threads that run one closure together.
//!
//! The caller is worker 0. The others spin for a short while after a piece of work, since the next
//! one usually follows at once, and then park. Giving out work allocates nothing.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{JoinHandle, Thread};

/// Looks of a waiting thread before it offers its core to others, and how often it does so before it
/// parks: about a fifth of a millisecond in all, and little lost where workers share a core.
const SPINS: u32 = 128;
const ROUNDS: u32 = 64;

/// A worker's closure panicked. The message went to the panic hook.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkerPanicked;

impl std::fmt::Display for WorkerPanicked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a worker of the thread team panicked")
    }
}

impl std::error::Error for WorkerPanicked {}

/// A fixed number of threads, the creating one included.
#[derive(Debug)]
pub struct Team {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What a worker runs: its number, and how many there are.
type Work = dyn Fn(usize, usize) + Sync;

struct Shared {
    /// Counts pieces of work; the last one, to stop, has `stopping` set.
    generation: AtomicU64,
    stopping: AtomicBool,
    /// The work of this generation. Written by the owner while no worker runs, read by workers after
    /// they saw the generation.
    work: UnsafeCell<Option<*const Work>>,
    /// Workers that have not finished this generation.
    running: AtomicUsize,
    panicked: AtomicBool,
    /// For each worker beyond the caller, whether it is parked or about to be.
    parked: Vec<AtomicBool>,
    /// The caller, when it parks.
    caller: UnsafeCell<Option<Thread>>,
    caller_parked: AtomicBool,
}

// SAFETY: `work` and `caller` are written only by the owner of the `Team`, which holds `&mut Team`, and
// only while `running` is 0, so no worker reads them then; publication is by `generation` (release,
// acquire) and the end of reading by `running` (release, acquire).
unsafe impl Sync for Shared {}
// SAFETY: the pointer in `work` is to a `Sync` closure, used only while `run` keeps it alive.
unsafe impl Send for Shared {}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Team {
    /// A team of `threads` workers, at least one: the caller and `threads - 1` new threads.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn new(threads: usize) -> std::io::Result<Team> {
        let others = threads.max(1) - 1;
        let shared = Arc::new(Shared {
            generation: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            work: UnsafeCell::new(None),
            running: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            parked: (0..others).map(|_| AtomicBool::new(false)).collect(),
            caller: UnsafeCell::new(None),
            caller_parked: AtomicBool::new(false),
        });
        // Built first, so that an error stops the threads that did start.
        let mut team = Team { shared, threads: Vec::with_capacity(others) };
        for worker in 1..=others {
            let shared = Arc::clone(&team.shared);
            let thread = std::thread::Builder::new().name(format!("worker-{worker}"));
            let workers = others + 1;
            team.threads.push(thread.spawn(move || shared.serve(worker, workers))?);
        }
        Ok(team)
    }

    /// Workers, the caller included.
    pub fn workers(&self) -> usize {
        self.shared.parked.len() + 1
    }

    /// Runs `work(worker, workers)` on every worker at once and returns when all have finished.
    ///
    /// # Errors
    /// A worker panicked; the others have finished, and the team may be used again.
    pub fn run<F: Fn(usize, usize) + Sync>(&mut self, work: F) -> Result<(), WorkerPanicked> {
        let workers = self.workers();
        if workers > 1 {
            self.publish(&work);
        }
        let own = catch_unwind(AssertUnwindSafe(|| work(0, workers)));
        self.shared.wait_for_workers();
        let others = self.shared.panicked.swap(false, Ordering::Relaxed);
        match own.is_err() || others {
            true => Err(WorkerPanicked),
            false => Ok(()),
        }
    }

    /// Gives `work` to the other workers. The caller must wait for them before `work` ends.
    fn publish<'a>(&mut self, work: &'a (dyn Fn(usize, usize) + Sync + 'a)) {
        let shared = &*self.shared;
        // SAFETY: only the lifetime changes. `run` returns, or unwinds, only after `wait_for_workers`:
        // between the two calls it runs nothing but a caught closure.
        let work = unsafe { std::mem::transmute::<*const (dyn Fn(usize, usize) + Sync + 'a), *const Work>(work) };
        // SAFETY: no worker runs, so none reads these (see `Sync` above).
        unsafe {
            *shared.work.get() = Some(work);
            *shared.caller.get() = Some(std::thread::current());
        }
        shared.running.store(self.threads.len(), Ordering::Relaxed);
        shared.generation.fetch_add(1, Ordering::SeqCst);
        self.wake();
    }

    /// Unparks the workers that are parked. A worker that parks later sees the new generation first.
    fn wake(&self) {
        for (parked, thread) in self.shared.parked.iter().zip(&self.threads) {
            if parked.load(Ordering::SeqCst) {
                thread.thread().unpark();
            }
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        self.shared.generation.fetch_add(1, Ordering::SeqCst);
        self.wake();
        for thread in self.threads.drain(..) {
            // A worker catches panics of its work, so it ends in order.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// The life of a worker.
    fn serve(&self, worker: usize, workers: usize) {
        let mut seen = 0;
        loop {
            let parked = &self.parked[worker - 1];
            wait(parked, || self.generation.load(Ordering::SeqCst) != seen);
            // The owner waits for every worker, so generations are seen one by one.
            seen += 1;
            if self.stopping.load(Ordering::Relaxed) {
                return;
            }
            self.work(worker, workers);
        }
    }

    fn work(&self, worker: usize, workers: usize) {
        // SAFETY: published before the generation that this worker saw; the closure lives until
        // `running` is 0, and this worker has not yet counted itself out.
        let work = unsafe { (*self.work.get()).map(|work| &*work) };
        // SAFETY: as above; the clone outlives the count.
        let caller = unsafe { (*self.caller.get()).clone() };
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            if let Some(work) = work {
                work(worker, workers);
            }
        }));
        if outcome.is_err() {
            self.panicked.store(true, Ordering::Relaxed);
        }
        let last = self.running.fetch_sub(1, Ordering::SeqCst) == 1;
        if last
            && self.caller_parked.load(Ordering::SeqCst)
            && let Some(caller) = caller
        {
            caller.unpark();
        }
    }

    fn wait_for_workers(&self) {
        wait(&self.caller_parked, || self.running.load(Ordering::SeqCst) == 0);
    }
}

/// Waits until `done`: spinning and yielding, then parked with `parked` set. Whoever makes `done`
/// true then reads `parked`; all of it is sequentially consistent, so one of the two sees the other.
fn wait(parked: &AtomicBool, done: impl Fn() -> bool) {
    for _ in 0..ROUNDS {
        for _ in 0..SPINS {
            if done() {
                return;
            }
            std::hint::spin_loop();
        }
        std::thread::yield_now();
    }
    parked.store(true, Ordering::SeqCst);
    while !done() {
        std::thread::park();
    }
    parked.store(false, Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_worker_runs_each_piece_once() {
        for threads in [0, 1, 2, 5] {
            let mut team = Team::new(threads).unwrap();
            let workers = team.workers();
            assert_eq!(workers, threads.max(1));
            let counts: Vec<AtomicUsize> = (0..workers).map(|_| AtomicUsize::new(0)).collect();
            for piece in 0..2000 {
                team.run(|worker, all| {
                    assert_eq!(all, workers);
                    counts[worker].fetch_add(1, Ordering::Relaxed);
                })
                .unwrap();
                if piece % 500 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(3));
                }
            }
            assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 2000));
        }
    }

    #[test]
    fn a_panic_of_any_worker_is_an_error_and_the_team_lives_on() {
        let mut team = Team::new(3).unwrap();
        for victim in 0..3 {
            let done = AtomicUsize::new(0);
            let result = team.run(|worker, _| {
                assert!(worker != victim, "planned");
                done.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(result, Err(WorkerPanicked));
            assert_eq!(done.load(Ordering::Relaxed), 2);
            assert_eq!(team.run(|_, _| {}), Ok(()));
        }
    }

    #[test]
    fn a_team_that_never_worked_ends() {
        drop(Team::new(4).unwrap());
    }
}
