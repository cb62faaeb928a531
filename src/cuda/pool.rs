//! Blocks of memory that are kept and used again: to make one costs up to a thousand times what a
//! small gather does.

use super::error::{During, Error};
use cudarc::driver::{result, sys};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// What a pool's blocks are made of.
#[derive(Clone, Copy)]
pub enum Kind {
    /// Memory of one device.
    Device,
    /// Host memory at one address for the host and for every device: the bus reaches it at full
    /// speed, and so do kernels, without a copy.
    PageLocked,
}

#[derive(Clone, Copy)]
pub struct Block {
    pub address: u64,
    pub bytes: usize,
}

/// Bytes in a pool's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// The most that is kept idle.
    pub limit: usize,
    /// In idle blocks.
    pub kept: usize,
    /// In blocks that somebody uses.
    pub used: usize,
}

pub struct Pool {
    kind: Kind,
    /// Blocks that nobody is using, the longest idle first.
    idle: Mutex<VecDeque<Block>>,
    used: AtomicUsize,
    limit: AtomicUsize,
}

impl Pool {
    pub const fn new(kind: Kind, limit: usize) -> Pool {
        Pool {
            kind,
            idle: Mutex::new(VecDeque::new()),
            used: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
        }
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<Block>> {
        self.idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The smallest idle block that fits without wasting more than it holds; a new one where there
    /// is none. A context is current, for a device's pool that device's.
    pub fn take(&self, bytes: usize) -> Result<Block, Error> {
        let rounded = self.kind.rounded(bytes);
        let mut idle = self.idle();
        let fitting = (idle.iter().enumerate())
            .filter(|(_, block)| (rounded..=rounded.saturating_mul(2)).contains(&block.bytes))
            .min_by_key(|(_, block)| block.bytes)
            .map(|(at, _)| at);
        let found = fitting.and_then(|at| idle.remove(at));
        drop(idle);
        let block = match found {
            Some(block) => block,
            None => Block { address: self.kind.allocate(rounded)?, bytes: rounded },
        };
        self.used.fetch_add(block.bytes, Ordering::Relaxed);
        Ok(block)
    }

    /// Takes a block back. Calls no driver, so that any thread may.
    pub fn give(&self, block: Block) {
        self.used.fetch_sub(block.bytes, Ordering::Relaxed);
        self.idle().push_back(block);
    }

    pub fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    pub fn usage(&self) -> Usage {
        Usage {
            limit: self.limit.load(Ordering::Relaxed),
            kept: self.idle().iter().map(|block| block.bytes).sum(),
            used: self.used.load(Ordering::Relaxed),
        }
    }

    /// Frees idle blocks, the longest idle first, until no more are kept than the limit says. A
    /// context is current, as for `take`.
    pub fn trim(&self) {
        self.shrink_to(self.limit.load(Ordering::Relaxed));
    }

    /// Frees every idle block. A context is current, as for `take`.
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
            let Some(block) = idle.pop_front() else { return };
            // Freeing waits for the device, and nobody should wait for the lock.
            drop(idle);
            if self.kind.free(block.address).is_err() {
                return self.idle().push_back(block);
            }
        }
    }
}

impl Kind {
    fn allocate(self, bytes: usize) -> Result<u64, Error> {
        let allocated = match self {
            // SAFETY: the size is not 0.
            Kind::Device => unsafe { result::malloc_sync(bytes) }.during("cuMemAlloc"),
            Kind::PageLocked => {
                // Cached, since the CPU reads it too.
                let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
                // SAFETY: the size is not 0.
                let allocated = unsafe { result::malloc_host(bytes, flags) };
                allocated.map(|address| address as u64).during("cuMemHostAlloc")
            }
        };
        allocated.map_err(|error| match (self, error.is_out_of_memory()) {
            (Kind::Device, true) => {
                Error::OutOfMemory { requested: bytes, available: result::mem_get_info().ok() }
            }
            (Kind::PageLocked, true) => Error::OutOfPageLockedMemory { requested: bytes },
            (_, false) => error,
        })
    }

    fn free(self, address: u64) -> Result<(), Error> {
        // SAFETY: the address came from `allocate` and is in no other hands.
        unsafe {
            match self {
                Kind::Device => result::free_sync(address).during("cuMemFree"),
                Kind::PageLocked => result::free_host(address as *mut _).during("cuMemFreeHost"),
            }
        }
    }

    /// A little room to grow, so that calls of about one size share a block: up to a power of two
    /// while blocks are small, by pages of 2 MiB once they are not.
    fn rounded(self, bytes: usize) -> usize {
        const PAGE: usize = 2 << 20;
        let least = match self {
            Kind::Device => 256,
            Kind::PageLocked => 4096,
        };
        match bytes {
            0..PAGE => bytes.next_power_of_two().max(least),
            _ => bytes.div_ceil(PAGE).saturating_mul(PAGE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_round_up() {
        assert_eq!(Kind::Device.rounded(0), 256);
        assert_eq!(Kind::PageLocked.rounded(0), 4096);
        assert_eq!(Kind::Device.rounded(300), 512);
        assert_eq!(Kind::Device.rounded(2 << 20), 2 << 20);
        assert_eq!(Kind::Device.rounded((2 << 20) + 1), 4 << 20);
    }

    #[test]
    fn the_smallest_idle_block_that_fits_is_taken_and_counted() {
        let pool = Pool::new(Kind::Device, 1 << 20);
        pool.used.store(3 * 4096, Ordering::Relaxed);
        for (address, bytes) in [(1, 8192), (2, 4096)] {
            pool.give(Block { address, bytes });
        }
        assert_eq!(pool.usage(), Usage { limit: 1 << 20, kept: 3 * 4096, used: 0 });
        assert_eq!(pool.take(4000).unwrap().address, 2);
        assert_eq!(pool.usage(), Usage { limit: 1 << 20, kept: 8192, used: 4096 });
    }
}
