//! Host memory for copies, kept and used again: the first touch of fresh memory costs eight times
//! what a copy into warm memory does.

use std::sync::Mutex;

/// At most this many idle blocks are kept, and none larger than [`KEPT_BYTES`].
const KEPT_BLOCKS: usize = 32;
const KEPT_BYTES: usize = 4 << 20;

static IDLE: Mutex<Vec<Vec<u128>>> = Mutex::new(Vec::new());

/// Some bytes, aligned for any element. Their memory goes back to be used again.
pub struct Scratch {
    words: Vec<u128>,
    address: *mut u8,
}

// SAFETY: the bytes are the owner's own; whoever shares them sees to who writes when.
unsafe impl Send for Scratch {}
unsafe impl Sync for Scratch {}

impl Scratch {
    /// Room for `bytes` bytes, holding whatever was there; `None` where there is no memory.
    pub fn with_room(bytes: usize) -> Option<Scratch> {
        let mut words = take(bytes.div_ceil(size_of::<u128>()))?;
        let address = words.as_mut_ptr().cast();
        Some(Scratch { words, address })
    }

    /// Copies `bytes` bytes that begin at `from`; `None` where there is no memory for them.
    ///
    /// # Safety
    /// `from` is readable for `bytes` bytes. Another thread may write to it meanwhile: the copy
    /// then holds old and new bytes mixed, and nothing here depends on which.
    pub unsafe fn copy_of(from: *const u8, bytes: usize) -> Option<Scratch> {
        let scratch = Scratch::with_room(bytes)?;
        // SAFETY: there is room for `bytes`, and the caller vouches for `from`.
        unsafe { std::ptr::copy_nonoverlapping(from, scratch.address, bytes) };
        Some(scratch)
    }

    pub fn address(&self) -> *mut u8 {
        self.address
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let words = std::mem::take(&mut self.words);
        if words.capacity() * size_of::<u128>() <= KEPT_BYTES
            && let Ok(mut idle) = IDLE.lock()
            && idle.len() < KEPT_BLOCKS
        {
            idle.push(words);
        }
    }
}

/// A block with room for `words`: the smallest idle one that fits without holding more than twice as
/// much, else a new one. Its length stays 0: the bytes are reached through its pointer alone.
fn take(words: usize) -> Option<Vec<u128>> {
    let fitting = IDLE.lock().ok().and_then(|mut idle| {
        let (at, _) = idle
            .iter()
            .enumerate()
            .filter(|(_, block)| (words..=words.saturating_mul(2)).contains(&block.capacity()))
            .min_by_key(|(_, block)| block.capacity())?;
        Some(idle.swap_remove(at))
    });
    fitting.or_else(|| {
        // A power of two where the block will be kept, so that calls of about one size share it.
        let kept = words * size_of::<u128>() <= KEPT_BYTES;
        let mut block = Vec::new();
        block.try_reserve_exact(if kept { words.next_power_of_two() } else { words }).ok()?;
        Some(block)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_there_is_gives_none() {
        assert!(take(isize::MAX as usize / 16).is_none());
    }

    #[test]
    fn a_copy_holds_the_bytes() {
        let bytes: Vec<u8> = (0..100).collect();
        // SAFETY: `bytes` is that long.
        let copy = unsafe { Scratch::copy_of(bytes.as_ptr(), bytes.len()) }.unwrap();
        // SAFETY: the copy holds as many bytes, which were just written.
        let held = unsafe { std::slice::from_raw_parts(copy.address(), bytes.len()) };
        assert_eq!(held, bytes);
    }
}
