//! A copy by all threads: one alone does not keep up with the memory, and the first touch of fresh
//! memory, which costs most, is shared out too.

use super::threads;
use rayon::prelude::*;

/// Bytes that one thread copies at a time; what is not more is copied by the calling thread.
const PIECE_BYTES: usize = 256 << 10;

/// # Safety
/// `from` is readable and `to` writable for `bytes` bytes, and they don't overlap. Others may write
/// to `from` meanwhile: what is copied is then old or new.
pub unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    /// Addresses that threads may share, each for its own piece.
    #[derive(Clone, Copy)]
    struct Addresses(*const u8, *mut u8);
    // SAFETY: the pieces don't overlap.
    unsafe impl Send for Addresses {}
    unsafe impl Sync for Addresses {}

    let addresses = Addresses(from, to);
    let piece = move |p: usize| {
        let Addresses(from, to) = { addresses };
        let at = p * PIECE_BYTES;
        // SAFETY: as the caller says.
        unsafe {
            let size = PIECE_BYTES.min(bytes - at);
            std::ptr::copy_nonoverlapping(from.add(at), to.add(at), size);
        }
    };
    let pieces = bytes.div_ceil(PIECE_BYTES);
    match threads::pool().filter(|_| pieces > 1) {
        Some(pool) => pool.install(|| (0..pieces).into_par_iter().for_each(piece)),
        None => (0..pieces).for_each(piece),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_copied_once() {
        for bytes in [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 5 * PIECE_BYTES - 3] {
            let from: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
            let mut to = vec![0; bytes + 1];
            // SAFETY: both are that long.
            unsafe { copy(from.as_ptr(), to.as_mut_ptr(), bytes) };
            assert_eq!(to[..bytes], from);
            assert_eq!(to[bytes], 0);
        }
    }
}
