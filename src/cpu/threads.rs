//! The threads that share out a gather, and how many of them it may have.

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

/// Jobs that run or wait to.
static CLAIMS: AtomicUsize = AtomicUsize::new(0);

/// A job's claim on the cores, from when it is put in the queue until it has run.
pub struct Claim(());

impl Claim {
    pub fn new() -> Claim {
        CLAIMS.fetch_add(1, Ordering::Relaxed);
        Claim(())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        CLAIMS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many threads a job may use, the one that it runs on included.
///
/// Some cores stay free for the event loop and for V8, whose threads mark and sweep what results leave
/// behind. Where these find no core they take the event loop's from it, for the rest of a time slice.
/// Measured with 64 gathers of 1 Mi in flight, the 99th percentile of the loop's delay: 16 cores, the
/// CPU's gather, with 0, 3, 4 and 5 of them free 8, 5, 4 and 3 ms; 8 cores, CUDA's copies, with 1, 2, 3
/// and 4 free 7, 5, 4 and 3 ms; 4 cores, with 1 and 2 free 7 and 3 ms. A job alone leaves fewer free,
/// since fewer results come of it: 16 cores, Node 24, with 0 and 3 free 4 and 2 ms.
fn share(cores: usize, claims: usize) -> usize {
    /// The event loop's, and the four that Node gives V8.
    const THREADS_OF_NODE: usize = 5;
    /// Jobs that the queue lets run at once.
    const AT_ONCE: usize = 2;
    match claims {
        0 | 1 => cores - cores / 5,
        _ => ((cores / 2).max(cores.saturating_sub(THREADS_OF_NODE)) / AT_ONCE).max(1),
    }
}

/// What `work` gives for each of `0..count`, in their order, worked out by as many threads as the
/// calling one may have, so that nothing waits for another thread to wake up; a single one is not
/// worth a thread.
pub fn map<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    map_by(share, count, work)
}

/// As [`map`], by one thread fewer than there are cores, and at least the calling one: for work that
/// the memory is the limit of and that stays in the kernel for milliseconds, clearing huge pages,
/// where the event loop would wait for a core. Measured on two cores while 512 MiB are copied: its
/// delay falls from 4 to 5 ms to 1 to 2, and 512 MiB take 170 ms rather than 100.
pub fn map_leaving_a_core<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    map_by(|cores, claims| share(cores, claims).min(cores - 1), count, work)
}

/// `threads` says how many there may be, given the cores and the claims on them.
fn map_by<T: Send>(
    threads: fn(usize, usize) -> usize,
    count: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    if count <= 1 {
        return (0..count).map(work).collect();
    }
    let pool = pool();
    let cores = pool.map_or(1, |pool| pool.current_num_threads() + 1);
    map_on(pool, || threads(cores, CLAIMS.load(Ordering::Relaxed)), count, work)
}

/// `most_threads` is asked again before each piece: a job that comes meanwhile gets its share.
fn map_on<T: Send>(
    pool: Option<&ThreadPool>,
    most_threads: impl Fn() -> usize + Sync,
    count: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(count));
    // The calling thread is number 0, and always works.
    let help = |number: usize| {
        while number == 0 || number < most_threads() {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= count {
                break;
            }
            let result = work(i);
            // Where there are fewer cores than threads, the event loop need not wait for the end of
            // this one's time slice: measured on two cores, its delay falls from 5 ms to 1.7.
            std::thread::yield_now();
            done.lock().unwrap_or_else(PoisonError::into_inner).push((i, result));
        }
    };
    match pool {
        None => help(0),
        Some(pool) => pool.in_place_scope(|scope| {
            let threads = most_threads().min(count).min(pool.current_num_threads() + 1);
            for number in 1..threads {
                scope.spawn(move |_| help(number));
            }
            help(0);
        }),
    }
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|&(i, _)| i);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

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
        for (pool, most_threads) in [(None, usize::MAX), (pool(), 1), (pool(), 0)] {
            let by = map_on(pool, || most_threads, 10, |_| std::thread::current().id());
            assert!(by.len() == 10 && by.iter().all(|&thread| thread == caller));
        }
    }

    #[test]
    fn jobs_share_what_node_leaves_of_the_cores() {
        // Threads of a job alone, and of each of two where more are in flight.
        for (cores, alone, each) in [
            (1, 1, 1),
            (2, 2, 1),
            (4, 4, 1),
            (5, 4, 1),
            (8, 7, 2),
            (12, 10, 3),
            (16, 13, 5),
            (64, 52, 29),
        ] {
            assert_eq!([0, 1].map(|claims| share(cores, claims)), [alone; 2]);
            assert_eq!([2, 3, 64].map(|claims| share(cores, claims)), [each; 3]);
        }
    }

    #[test]
    fn a_claim_counts_while_it_is_held() {
        // Only this test makes any.
        let claims = || CLAIMS.load(Ordering::Relaxed);
        let two = (Claim::new(), Claim::new());
        assert_eq!(claims(), 2);
        drop(two.0);
        assert_eq!(claims(), 1);
        drop(two.1);
        assert_eq!(claims(), 0);
    }

    #[test]
    fn a_share_that_shrinks_is_given_up_at_once() {
        // Not the common pool: there is none on one core, and other tests use it.
        let pool = ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
        let caller = std::thread::current().id();
        let helper_has_begun = AtomicBool::new(false);
        let by_helper = map_on(
            Some(&pool),
            || if helper_has_begun.load(Ordering::SeqCst) { 1 } else { 2 },
            100,
            |_| {
                let is_helper = std::thread::current().id() != caller;
                if is_helper {
                    helper_has_begun.store(true, Ordering::SeqCst);
                }
                while !helper_has_begun.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                is_helper
            },
        );
        assert_eq!(by_helper.iter().filter(|&&by_helper| by_helper).count(), 1);
    }

    #[test]
    fn a_panic_comes_out() {
        let outcome = std::panic::catch_unwind(|| map(100, |i| assert_ne!(i, 77)));
        assert!(outcome.is_err());
    }
}
