//! Device memory, and the copies to and from it.

use super::device::Device;
use super::error::{During, Error};
use super::pool::Block;
use cudarc::driver::{result, sys};
use std::sync::Arc;

/// A block of device memory. Dropping it calls no driver, so that any thread may: the block goes
/// back to its device's pool. Whoever drops it has waited for the work that uses it.
pub struct Memory {
    device: Arc<Device>,
    block: Block,
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

    /// Begins a copy of `bytes` bytes from `offset` on in another block.
    pub(super) fn copy_from(
        &self,
        other: &Memory,
        offset: usize,
        bytes: usize,
        stream: sys::CUstream,
    ) -> Result<(), Error> {
        let (to, from) = (self.place(0, bytes), other.place(offset, bytes));
        // SAFETY: both blocks are that long.
        unsafe { result::memcpy_dtod_async(to, from, bytes, stream) }.during("cuMemcpyDtoDAsync")
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.device.pool.give(self.block);
    }
}
