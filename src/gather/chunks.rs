//! Long work on the host, in chunks with a checkpoint in between.

use super::error::Error;
use crate::checkpoint::Checkpoint;
use crate::cpu;
use std::ops::Range;

/// Bytes that are copied between two checkpoints: some ten milliseconds' work.
pub const CHUNK_BYTES: usize = 32 << 20;

/// Does `work` for one chunk of `0..length` after the other, each of `step` or fewer.
pub fn in_chunks(
    length: usize,
    step: usize,
    checkpoint: Checkpoint,
    work: impl Fn(Range<usize>) -> Result<(), Error>,
) -> Result<(), Error> {
    for start in (0..length).step_by(step) {
        if start > 0 && !checkpoint() {
            return Err(Error::Stopped);
        }
        work(start..length.min(start + step))?;
    }
    Ok(())
}

/// Copies by all threads.
///
/// # Safety
/// As for [`cpu::copy`].
pub unsafe fn copy(
    from: *const u8,
    to: *mut u8,
    bytes: usize,
    checkpoint: Checkpoint,
) -> Result<(), Error> {
    in_chunks(bytes, CHUNK_BYTES, checkpoint, |chunk| {
        // SAFETY: as the caller says.
        unsafe { cpu::copy(from.add(chunk.start), to.add(chunk.start), chunk.len()) };
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_checkpoint_stands_between_chunks_and_can_end_the_work() {
        let (asked, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = |stop_at: usize| {
            let checkpoint = || asked.fetch_add(1, Ordering::Relaxed) + 1 < stop_at;
            in_chunks(25, 10, &checkpoint, |chunk| {
                done.fetch_add(chunk.len(), Ordering::Relaxed);
                Ok(())
            })
        };
        assert!(work(9).is_ok());
        assert_eq!((asked.swap(0, Ordering::Relaxed), done.swap(0, Ordering::Relaxed)), (2, 25));
        assert!(matches!(work(2), Err(Error::Stopped)));
        assert_eq!(done.into_inner(), 20);
    }
}
