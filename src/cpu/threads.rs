//! The threads that share out a gather.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::available_parallelism;

/// Our own threads, one for each core but that of the calling thread, which works too; started with
/// the first gather that needs them. `None` where there is one core, or where the process may start
/// no more threads at the moment: the caller then works alone.
fn pool() -> Option<&'static ThreadPool> {
    static POOL: OnceLock<ThreadPool> = OnceLock::new();
    if let Some(pool) = POOL.get() {
        return Some(pool);
    }
    let helpers = available_parallelism().map_or(1, usize::from) - 1;
    if helpers == 0 {
        return None;
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(helpers)
        .thread_name(|i| format!("cugather-cpu-{i}"))
        .build()
        .ok()?;
    // Two first calls may both have come this far; one pool is kept, the other's threads end.
    Some(POOL.get_or_init(|| pool))
}

/// What `work` gives for each of `0..count`, in their order, worked out by all threads. The calling
/// thread works too, so that nothing waits for another thread to wake up; a single one is not worth
/// a thread.
pub fn map<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    // Asked for only where there is more than one, since it starts the threads.
    map_on((count > 1).then(pool).flatten(), usize::MAX, count, work)
}

/// As [`map`], by one thread fewer than there are cores, and at least the calling one: for work that
/// the memory is the limit of and that stays in the kernel for milliseconds, clearing huge pages,
/// where the event loop would wait for a core. Measured on two cores while 512 MiB are copied: its
/// delay falls from 4 to 5 ms to 1 to 2, and 512 MiB take 170 ms rather than 100.
pub fn map_leaving_a_core<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let pool = (count > 1).then(pool).flatten();
    let most_helpers = pool.map_or(0, |pool| pool.current_num_threads() - 1);
    map_on(pool, most_helpers, count, work)
}

fn map_on<T: Send>(
    pool: Option<&ThreadPool>,
    most_helpers: usize,
    count: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let Some(pool) = pool else {
        return (0..count).map(work).collect();
    };
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(count));
    let help = || {
        while let Some(i) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&i| i < count) {
            let result = work(i);
            // Where there are fewer cores than threads, the event loop need not wait for the end of
            // this one's time slice: measured on two cores, its delay falls from 5 ms to 1.7.
            std::thread::yield_now();
            done.lock().unwrap_or_else(PoisonError::into_inner).push((i, result));
        }
    };
    pool.in_place_scope(|scope| {
        for _ in 0..pool.current_num_threads().min(count - 1).min(most_helpers) {
            scope.spawn(|_| help());
        }
        help();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|&(i, _)| i);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_in_order_and_whole() {
        for count in [0, 1, 2, 1000] {
            let expected: Vec<_> = (0..count).map(|i| i * 2).collect();
            assert_eq!(map(count, |i| i * 2), expected);
            assert_eq!(map_leaving_a_core(count, |i| i * 2), expected);
        }
    }

    #[test]
    fn a_process_that_may_start_no_thread_works_alone() {
        let caller = std::thread::current().id();
        // And so does one that is to leave all other cores.
        for (pool, most_helpers) in [(None, usize::MAX), (pool(), 0)] {
            let by = map_on(pool, most_helpers, 10, |_| std::thread::current().id());
            assert!(by.len() == 10 && by.iter().all(|&thread| thread == caller));
        }
    }

    #[test]
    fn a_panic_comes_out() {
        let outcome = std::panic::catch_unwind(|| map(100, |i| assert_ne!(i, 77)));
        assert!(outcome.is_err());
    }
}
