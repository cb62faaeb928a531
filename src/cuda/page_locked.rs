//! Page-locked host memory: the driver's copies, and kernels, reach it at the speed of the bus.

use super::device::Device;
use super::error::Error;
use super::pool::{Block, Kind, Pool};
use crate::cpu;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// Bytes of idle blocks that the process keeps, unless it asks for another limit.
const KEPT_BYTES: usize = 256 << 20;

pub(super) static POOL: Pool = Pool::new(Kind::PageLocked, KEPT_BYTES);

/// A block of page-locked memory. It has one address, for the host and for kernels: every device
/// that CUDA still supports shares the address space of its 64-bit host. Dropping it calls no
/// driver: the block goes back to the process's pool. Whoever drops it has waited for the work that
/// uses it.
pub struct PageLocked {
    block: Block,
}

impl PageLocked {
    /// A block of at least `bytes` bytes, holding whatever it held. A context is current.
    pub(super) fn new(bytes: usize) -> Result<PageLocked, Error> {
        Ok(PageLocked { block: POOL.take(bytes)? })
    }

    /// A block of at least `bytes` bytes, holding whatever it held. It belongs to no device: any one
    /// serves to ask for it.
    pub fn with_room(device: &Device, bytes: usize) -> Result<PageLocked, Error> {
        device.with_page_locked(bytes)
    }

    pub fn address(&self) -> *mut u8 {
        self.block.address as *mut u8
    }
}

impl Drop for PageLocked {
    fn drop(&mut self) {
        POOL.give(self.block);
    }
}

/// Page-locked memory under an array of the caller's. Gathers find it by the array's address, and
/// keep it while they use it, whatever becomes of the array.
pub struct Lent(PageLocked);

/// What is lent at the moment, by address.
static LENT: Mutex<BTreeMap<usize, Weak<Lent>>> = Mutex::new(BTreeMap::new());

fn lent() -> MutexGuard<'static, BTreeMap<usize, Weak<Lent>>> {
    LENT.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Lent {
    /// `bytes` bytes of zeros.
    pub fn new(device: &Device, bytes: usize) -> Result<Arc<Lent>, Error> {
        let made = Arc::new(Lent(device.with_page_locked(bytes)?));
        // SAFETY: the block has room, and nobody else has its address yet.
        unsafe { cpu::zero(made.0.address(), bytes) };
        lent().insert(made.0.address() as usize, Arc::downgrade(&made));
        Ok(made)
    }

    /// The lent memory that holds all of the `bytes` bytes at `address`.
    pub fn at(address: *const u8, bytes: usize) -> Option<Arc<Lent>> {
        let address = address as usize;
        let lent = lent();
        let (_, nearest) = lent.range(..=address).next_back()?;
        let found = nearest.upgrade()?;
        let block = found.0.block;
        let end = block.address as usize + block.bytes;
        // Let go of the lock first: dropping what was found may be what ends its loan.
        drop(lent);
        (address.checked_add(bytes)? <= end).then_some(found)
    }

    pub fn address(&self) -> *mut u8 {
        self.0.address()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // Before the block goes back to the pool, from which it could be lent again.
        lent().remove(&(self.0.address() as usize));
    }
}
