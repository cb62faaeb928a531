//! The threads that share out a gather.

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::OnceLock;
use std::thread::available_parallelism;

/// Our own threads, one a core, started with the first gather that needs them. `None` where the
/// process may start no more threads at the moment: the caller then works alone.
pub fn pool() -> Option<&'static ThreadPool> {
    static POOL: OnceLock<ThreadPool> = OnceLock::new();
    if let Some(pool) = POOL.get() {
        return Some(pool);
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(available_parallelism().map_or(1, usize::from))
        .thread_name(|i| format!("cugather-cpu-{i}"))
        .build()
        .ok()?;
    // Two first calls may both have come this far; one pool is kept, the other's threads end.
    Some(POOL.get_or_init(|| pool))
}

/// What `work` gives for each of `0..count`, in their order, worked out by all threads. A single one
/// is not worth a thread.
pub fn map<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    // Asked for only where there is more than one, since it starts the threads.
    match (count > 1).then(pool).flatten() {
        Some(pool) => pool.install(|| (0..count).into_par_iter().map(work).collect()),
        None => (0..count).map(work).collect(),
    }
}
