//! What long work asks between its chunks.

/// Called between the chunks of long work, on the thread that does it. It may do other work
/// meanwhile, and says whether to go on: `false` ends the work with an error that says so.
pub type Checkpoint<'a> = &'a (dyn Fn() -> bool + Sync);
