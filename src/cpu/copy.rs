//! A copy by all threads but one: one alone does not keep up with the memory, and the first touch of
//! fresh memory, which costs most, is shared out too.

use super::threads;

/// Bytes that one thread copies at a time; what is not more is copied by the calling thread.
const PIECE_BYTES: usize = 256 << 10;

/// # Safety
/// `from` is readable and `to` writable for `bytes` bytes, and they don't overlap. Others may write
/// to `from` meanwhile: what is copied is then old or new.
pub unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    let addresses = Addresses(from, to);
    in_pieces(bytes, move |at, size| {
        let Addresses(from, to) = { addresses };
        // SAFETY: as the caller says.
        unsafe { std::ptr::copy_nonoverlapping(from.add(at), to.add(at), size) };
    });
}

/// Sets `bytes` bytes to 0.
///
/// # Safety
/// `to` is writable for `bytes` bytes, which nothing else touches.
pub unsafe fn zero(to: *mut u8, bytes: usize) {
    let addresses = Addresses(to, to);
    in_pieces(bytes, move |at, size| {
        let Addresses(_, to) = { addresses };
        // SAFETY: as the caller says.
        unsafe { to.add(at).write_bytes(0, size) };
    });
}

/// Addresses that threads may share, each for its own piece.
#[derive(Clone, Copy)]
struct Addresses(*const u8, *mut u8);

// SAFETY: the pieces don't overlap.
unsafe impl Send for Addresses {}
unsafe impl Sync for Addresses {}

/// Does `work` for every piece of `bytes` bytes, given where it begins and its size.
fn in_pieces(bytes: usize, work: impl Fn(usize, usize) + Sync) {
    threads::map_leaving_a_core(bytes.div_ceil(PIECE_BYTES), |piece| {
        let at = piece * PIECE_BYTES;
        work(at, PIECE_BYTES.min(bytes - at));
    });
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
