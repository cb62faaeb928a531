//! Device memory: blocks that are kept and used again, and the copies to and from them.

use super::device::Device;
use super::error::{During, Error};
use cudarc::driver::{result, sys};
use std::sync::{Arc, Mutex, MutexGuard};

/// A block of device memory. Dropping it calls no driver, so that any thread may: the block goes
/// back to its device's pool. Whoever drops it has waited for the work that uses it.
pub struct Memory {
    device: Arc<Device>,
    block: Block,
}

#[derive(Clone, Copy)]
struct Block {
    address: sys::CUdeviceptr,
    bytes: usize,
}

impl Memory {
    /// A block of at least `bytes` bytes, holding whatever it held. The device's context is
    /// current.
    pub(super) fn new(device: &Arc<Device>, bytes: usize) -> Result<Memory, Error> {
        let block = device.pool.take(bytes)?;
        Ok(Memory { device: Arc::clone(device), block })
    }

    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    pub(super) fn address(&self) -> sys::CUdeviceptr {
        self.block.address
    }

    /// The address of `bytes` bytes from `offset` on.
    pub(super) fn place(&self, offset: usize, bytes: usize) -> sys::CUdeviceptr {
        debug_assert!(offset + bytes <= self.block.bytes);
        self.block.address + offset as u64
    }

    /// Begins a copy of `bytes` bytes from the host to `offset` in the block.
    ///
    /// # Safety
    /// `from` is readable for `bytes` bytes until the stream has been waited for.
    pub(super) unsafe fn write(
        &self,
        offset: usize,
        from: *const u8,
        bytes: usize,
        stream: sys::CUstream,
    ) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        let to = self.place(offset, bytes);
        // SAFETY: the block has room for `bytes`, and the caller vouches for `from`. The raw call,
        // since a Rust slice may not stand for memory that JavaScript can write to meanwhile.
        unsafe { sys::cuMemcpyHtoDAsync_v2(to, from.cast(), bytes, stream) }
            .result()
            .during("cuMemcpyHtoDAsync")
    }

    /// Begins a copy of `bytes` bytes from `offset` in the block to the host.
    ///
    /// # Safety
    /// `to` is writable for `bytes` bytes until the stream has been waited for.
    pub(super) unsafe fn read(
        &self,
        offset: usize,
        to: *mut u8,
        bytes: usize,
        stream: sys::CUstream,
    ) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        let from = self.place(offset, bytes);
        // SAFETY: the block holds these bytes, and the caller vouches for `to`.
        unsafe { sys::cuMemcpyDtoHAsync_v2(to.cast(), from, bytes, stream) }
            .result()
            .during("cuMemcpyDtoHAsync")
    }

    /// Begins a copy of the first `bytes` bytes of another block.
    pub(super) fn copy_from(
        &self,
        other: &Memory,
        bytes: usize,
        stream: sys::CUstream,
    ) -> Result<(), Error> {
        // SAFETY: both blocks are that long.
        unsafe {
            result::memcpy_dtod_async(self.place(0, bytes), other.place(0, bytes), bytes, stream)
        }
        .during("cuMemcpyDtoDAsync")
    }

    /// Begins setting the first `bytes` bytes to `value`.
    pub(super) fn set(&self, value: u8, bytes: usize, stream: sys::CUstream) -> Result<(), Error> {
        debug_assert!(bytes <= self.block.bytes);
        // SAFETY: the block has room for `bytes`.
        unsafe { result::memset_d8_async(self.block.address, value, bytes, stream) }
            .during("cuMemsetD8Async")
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.device.pool.give(self.block);
    }
}

/// Bytes of idle blocks that a device keeps, unless more is asked for: an eighth of its memory.
const KEPT_SHARE: usize = 8;

/// The blocks of one device that nobody is using.
pub struct Pool {
    idle: Mutex<Vec<Block>>,
    limit: usize,
}

impl Pool {
    /// For a device with so many bytes of memory.
    pub fn new(total_memory: usize) -> Pool {
        Pool { idle: Mutex::new(Vec::new()), limit: total_memory / KEPT_SHARE }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Block>> {
        self.idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The smallest idle block that fits without wasting more than it holds; a new one where there
    /// is none.
    fn take(&self, bytes: usize) -> Result<Block, Error> {
        let rounded = rounded(bytes);
        let mut idle = self.idle();
        let fitting = (idle.iter().enumerate())
            .filter(|(_, block)| (rounded..=rounded.saturating_mul(2)).contains(&block.bytes))
            .min_by_key(|(_, block)| block.bytes);
        if let Some((at, _)) = fitting {
            return Ok(idle.swap_remove(at));
        }
        drop(idle);
        // SAFETY: the size is not 0.
        let allocated = unsafe { result::malloc_sync(rounded) }.during("cuMemAlloc");
        let address = allocated.map_err(|error| match error.is_out_of_memory() {
            true => {
                Error::OutOfMemory { requested: rounded, available: result::mem_get_info().ok() }
            }
            false => error,
        })?;
        Ok(Block { address, bytes: rounded })
    }

    fn give(&self, block: Block) {
        self.idle().push(block);
    }

    /// Frees idle blocks, the longest idle first, until no more are kept than the limit says. The
    /// device's context is current.
    pub fn trim(&self) {
        self.shrink_to(self.limit);
    }

    /// Frees every idle block. The device's context is current.
    pub fn release(&self) {
        self.shrink_to(0);
    }

    /// A block that can't be freed stays idle: whoever needs the memory is told by the allocation
    /// that then fails.
    fn shrink_to(&self, limit: usize) {
        loop {
            let mut idle = self.idle();
            if idle.iter().map(|block| block.bytes).sum::<usize>() <= limit {
                return;
            }
            let block = idle.remove(0);
            // Freeing waits for the device, and nobody should wait for the lock.
            drop(idle);
            // SAFETY: the address came from `malloc_sync` and is in no other hands.
            if unsafe { result::free_sync(block.address) }.is_err() {
                return self.give(block);
            }
        }
    }
}

/// A little room to grow, so that calls of about one size share a block: up to a power of two
/// while blocks are small, by pages of 2 MiB once they are not.
fn rounded(bytes: usize) -> usize {
    const PAGE: usize = 2 << 20;
    match bytes {
        0..PAGE => bytes.next_power_of_two().max(256),
        _ => bytes.div_ceil(PAGE).saturating_mul(PAGE),
    }
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn sizes_round_up() {
        assert_eq!(rounded(0), 256);
        assert_eq!(rounded(300), 512);
        assert_eq!(rounded(2 << 20), 2 << 20);
        assert_eq!(rounded((2 << 20) + 1), 4 << 20);
    }
}
