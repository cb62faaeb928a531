//! The threads that share out a gather.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::OnceLock;

/// Runs `work` where rayon's iterators use our own threads, one a core; they start with the first
/// gather that needs them. A process that may start no more threads works on the calling one.
pub fn install<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let pool = POOL.get_or_init(|| {
        ThreadPoolBuilder::new().thread_name(|i| format!("cugather-cpu-{i}")).build().ok()
    });
    match pool {
        Some(pool) => pool.install(work),
        None => work(),
    }
}
