//! A persistent team of threads that do the tasks of a piece of work together.
//!
//! The caller is worker 0. The others spin for a short while after a piece of work, since the next one usually follows at
//! once, and then park. Every worker takes some tasks at a time until none are left, and the caller waits only for those who
//! have come: a worker whose core does something else holds nobody up. Giving out work allocates nothing.

use std::cell::UnsafeCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{JoinHandle, Thread};

/// Looks of a waiting thread before it offers its core to others, and how often it does so before it parks: about a fifth of
/// a millisecond in all, and little lost where workers share a core.
const SPINS: u32 = 128;
const ROUNDS: u32 = 64;

/// How often each worker comes back for tasks, if all are equally fast.
const SHARES: usize = 3;

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

/// What a worker runs: its number, and tasks.
type Work = dyn Fn(usize, Range<usize>) + Sync;

/// A piece of work, as the owner gives it out.
#[derive(Clone, Copy)]
struct Piece {
    work: *const Work,
    tasks: usize,
    /// Tasks that a worker takes at a time.
    grain: usize,
}

/// All that goes back and forth, in one line of the cache.
#[repr(align(64))]
struct Desk {
    /// The number of the piece of work in the high half, then [`OPEN`], and how many workers are at it. A worker that has
    /// come in while the desk was open is counted until it leaves.
    state: AtomicU64,
    /// Tasks that have been taken.
    taken: AtomicUsize,
    /// Written by the owner while nobody is counted and the desk is closed; read by workers that are counted.
    piece: UnsafeCell<Option<Piece>>,
}

/// Workers may come in.
const OPEN: u64 = 1 << 31;

fn number(state: u64) -> u32 {
    (state >> 32) as u32
}

fn workers_in(state: u64) -> u64 {
    state & (OPEN - 1)
}

struct Shared {
    desk: Desk,
    stopping: AtomicBool,
    panicked: AtomicBool,
    /// For each worker beyond the caller, whether it is parked or about to be.
    parked: Vec<AtomicBool>,
    /// The caller, for when it parks. Written as the desk's piece is.
    caller: UnsafeCell<Option<Thread>>,
    caller_parked: AtomicBool,
}

// SAFETY: `piece` and `caller` are written only by the owner of the `Team`, which holds `&mut Team`, and only while no
// worker is counted and none can come in; publication is by `state` (release, acquire), and so is the end of reading.
unsafe impl Sync for Shared {}
// SAFETY: the pointer in `piece` is to a `Sync` closure, used only while `run` keeps it alive.
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
        let desk = Desk { state: AtomicU64::new(0), taken: AtomicUsize::new(0), piece: UnsafeCell::new(None) };
        let shared = Arc::new(Shared {
            desk,
            stopping: AtomicBool::new(false),
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
            team.threads.push(thread.spawn(move || shared.serve(worker))?);
        }
        Ok(team)
    }

    /// Workers, the caller included.
    pub fn workers(&self) -> usize {
        self.shared.parked.len() + 1
    }

    /// Runs `work(worker, tasks)` until each of `tasks` tasks has been done by some worker.
    ///
    /// # Errors
    /// A worker panicked; what it had just taken is not done, all else is, and the team may be used again.
    pub fn run<F: Fn(usize, Range<usize>) + Sync>(&mut self, tasks: usize, work: F) -> Result<(), WorkerPanicked> {
        let workers = self.workers();
        let grain = tasks.div_ceil(workers * SHARES).max(1);
        let share = workers > 1 && tasks > grain;
        if !share {
            return catch_unwind(AssertUnwindSafe(|| work(0, 0..tasks))).map_err(|_| WorkerPanicked);
        }
        self.publish(tasks, grain, &work);
        let shared = &*self.shared;
        let piece = Piece { work: erased(&work), tasks, grain };
        let own = shared.desk.work(0, piece);
        shared.close();
        match shared.panicked.swap(false, Ordering::Relaxed) {
            true => Err(WorkerPanicked),
            false => own,
        }
    }

    /// Gives `work` to the other workers. The caller must close the desk before `work` ends.
    fn publish<'a>(&mut self, tasks: usize, grain: usize, work: &'a (dyn Fn(usize, Range<usize>) + Sync + 'a)) {
        let shared = &*self.shared;
        // SAFETY: the desk is closed and nobody is at it, so nobody reads these (see `Sync` above).
        unsafe {
            *shared.desk.piece.get() = Some(Piece { work: erased(work), tasks, grain });
            *shared.caller.get() = Some(std::thread::current());
        }
        shared.desk.taken.store(0, Ordering::Relaxed);
        self.next(OPEN);
    }

    /// Begins the next piece, with the desk open or not, and wakes all who are parked. A worker that parks later sees the
    /// new number first.
    fn next(&self, open: u64) {
        let state = &self.shared.desk.state;
        let number = number(state.load(Ordering::Relaxed)).wrapping_add(1);
        state.store(u64::from(number) << 32 | open, Ordering::SeqCst);
        for (parked, thread) in self.shared.parked.iter().zip(&self.threads) {
            if parked.load(Ordering::SeqCst) {
                thread.thread().unpark();
            }
        }
    }
}

/// The closure without its lifetime: whoever has it is counted, and `run` returns, or unwinds, only after the desk is closed
/// and nobody is counted.
fn erased<'a>(work: &'a (dyn Fn(usize, Range<usize>) + Sync + 'a)) -> *const Work {
    // SAFETY: only the lifetime changes.
    unsafe { std::mem::transmute::<*const (dyn Fn(usize, Range<usize>) + Sync + 'a), *const Work>(work) }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        self.next(0);
        for thread in self.threads.drain(..) {
            // A worker catches panics of its work, so it ends in order.
            let _ = thread.join();
        }
    }
}

impl Desk {
    /// Takes tasks until none are left.
    fn work(&self, worker: usize, piece: Piece) -> Result<(), WorkerPanicked> {
        // SAFETY: the caller is the owner, or counted: the closure lives until both have left.
        let work = unsafe { &*piece.work };
        let mut outcome = Ok(());
        loop {
            let first = self.taken.fetch_add(piece.grain, Ordering::Relaxed);
            if first >= piece.tasks {
                return outcome;
            }
            let tasks = first..piece.tasks.min(first + piece.grain);
            if catch_unwind(AssertUnwindSafe(|| work(worker, tasks))).is_err() {
                outcome = Err(WorkerPanicked);
            }
        }
    }

    /// Comes in for piece `seen`: false if the desk is closed, or it is another piece by now.
    fn enter(&self, seen: u32) -> bool {
        let may = |state: u64| (number(state) == seen && state & OPEN != 0).then_some(state + 1);
        self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, may).is_ok()
    }
}

impl Shared {
    /// The life of a worker.
    fn serve(&self, worker: usize) {
        let mut seen = 0;
        loop {
            let state = &self.desk.state;
            wait(&self.parked[worker - 1], || number(state.load(Ordering::SeqCst)) != seen);
            seen = number(state.load(Ordering::SeqCst));
            if self.stopping.load(Ordering::Relaxed) {
                return;
            }
            if self.desk.enter(seen) {
                self.work(worker);
            }
        }
    }

    /// The part of a worker who is counted.
    fn work(&self, worker: usize) {
        // SAFETY: published before the state that let this worker in; the owner writes again only when it has left.
        let (piece, caller) = unsafe { (*self.desk.piece.get(), (*self.caller.get()).clone()) };
        if piece.is_some_and(|piece| self.desk.work(worker, piece).is_err()) {
            self.panicked.store(true, Ordering::Relaxed);
        }
        let left = self.desk.state.fetch_sub(1, Ordering::SeqCst) - 1;
        if workers_in(left) == 0
            && self.caller_parked.load(Ordering::SeqCst)
            && let Some(caller) = caller
        {
            caller.unpark();
        }
    }

    /// Lets nobody in any more and waits until all have left.
    fn close(&self) {
        self.desk.state.fetch_and(!OPEN, Ordering::SeqCst);
        wait(&self.caller_parked, || workers_in(self.desk.state.load(Ordering::SeqCst)) == 0);
    }
}

/// Waits until `done`: spinning and yielding, then parked with `parked` set. Whoever makes `done` true then reads `parked`;
/// all of it is sequentially consistent, so one of the two sees the other.
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
    use std::time::Duration;

    #[test]
    fn each_task_is_done_once() {
        for threads in [0, 1, 2, 5] {
            let mut team = Team::new(threads).unwrap();
            assert_eq!(team.workers(), threads.max(1));
            let counts: Vec<AtomicUsize> = (0..100).map(|_| AtomicUsize::new(0)).collect();
            for piece in 0..2000 {
                let tasks = piece % 101;
                team.run(tasks, |worker, range| {
                    assert!(worker < threads.max(1));
                    range.for_each(|task| _ = counts[task].fetch_add(1, Ordering::Relaxed));
                })
                .unwrap();
                if piece % 500 == 0 {
                    std::thread::sleep(Duration::from_millis(3));
                }
            }
            let wanted = |task: usize| (0..2000).filter(|piece| piece % 101 > task).count();
            let done = |task: usize| counts[task].load(Ordering::Relaxed);
            assert!((0..100).all(|task| done(task) == wanted(task)), "{threads} threads");
        }
    }

    /// All workers come if pieces take long enough; on a busy machine it may take some.
    #[test]
    fn workers_share_a_piece() {
        let mut team = Team::new(3).unwrap();
        let came: Vec<AtomicBool> = (0..3).map(|_| AtomicBool::new(false)).collect();
        let all = || came.iter().all(|came| came.load(Ordering::Relaxed));
        for _ in 0..100 {
            if all() {
                break;
            }
            team.run(100, |worker, _| {
                came[worker].store(true, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(20));
            })
            .unwrap();
        }
        assert!(all());
    }

    #[test]
    fn a_panic_of_any_worker_is_an_error_and_the_team_lives_on() {
        let mut team = Team::new(3).unwrap();
        for victim in 0..3 {
            let done = AtomicUsize::new(0);
            let result = team.run(3, |_, tasks| {
                assert!(tasks.start != victim, "planned");
                done.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(result, Err(WorkerPanicked));
            assert_eq!(done.load(Ordering::Relaxed), 2);
            assert_eq!(team.run(3, |_, _| {}), Ok(()));
        }
    }

    #[test]
    fn a_team_that_never_worked_ends() {
        drop(Team::new(4).unwrap());
    }
}
