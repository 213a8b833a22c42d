//! Independent work on several threads, with results that do not depend on them.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads that this machine runs at once.
pub fn available() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// What `work` gives for each item, in the order of the items. Up to `threads` threads take the next item when they are done
/// with one.
pub fn each<T: Sync, R: Send>(items: &[T], threads: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if threads.min(items.len()) <= 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let taken = || -> Vec<(usize, R)> {
        let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&at| at < items.len());
        std::iter::from_fn(take).map(|at| (at, work(&items[at]))).collect()
    };
    let mut all: Vec<(usize, R)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(items.len())).map(|_| scope.spawn(taken)).collect();
        let mut all = taken();
        for thread in others {
            all.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        all
    });
    all.sort_by_key(|&(at, _)| at);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::each;

    /// The first items take longest, so that they end last.
    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..40).collect();
        let slow = |&i: &u64| {
            std::thread::sleep(Duration::from_micros(40 - i));
            i * i
        };
        let wanted: Vec<u64> = items.iter().map(|i| i * i).collect();
        for threads in [0, 1, 2, 7, 100] {
            assert_eq!(each(&items, threads, slow), wanted);
        }
        assert!(each(&[], 3, slow).is_empty());
    }

    /// Of two errors the first in the order of the items is seen, though the other one is there long before.
    #[test]
    fn the_first_error_is_the_first_items() {
        let work = |&i: &u64| {
            std::thread::sleep(Duration::from_millis(if i == 0 { 30 } else { 0 }));
            if i % 2 == 0 { Err(i) } else { Ok(i) }
        };
        let results = each(&[0, 1, 2, 3], 2, work);
        assert_eq!(results.into_iter().collect::<Result<Vec<u64>, u64>>(), Err(0));
    }

    #[test]
    #[should_panic(expected = "item 3")]
    fn a_panic_is_passed_on() {
        each(&[1, 2, 3], 2, |&i| assert_ne!(i, 3, "item 3"));
    }
}
