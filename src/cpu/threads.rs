//! The threads that share out a gather.

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
