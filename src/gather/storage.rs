//! An array that lives where gathers run, rather than in JavaScript's memory.

use super::error::Error;
use super::plan::{DeviceChoice, Home};
use crate::checkpoint::Checkpoint;
use crate::cpu::Scratch;
use crate::cuda;
use std::sync::Arc;

/// The bytes of a resident array. Shared by the array and by the gathers that are using it, so that
/// they outlive it where they have to.
#[derive(Clone)]
pub enum Storage {
    Host(Arc<Scratch>),
    Device(Arc<cuda::Memory>),
}

impl Storage {
    /// A copy of `bytes` bytes of the host, where `choice` leads to.
    ///
    /// # Safety
    /// `from` is readable for `bytes` bytes until the call returns; others may write to it
    /// meanwhile.
    pub unsafe fn copy_of(
        from: *const u8,
        bytes: usize,
        choice: DeviceChoice,
        checkpoint: Checkpoint,
    ) -> Result<Storage, Error> {
        match Home::of_new(choice)? {
            Home::Cpu => {
                // SAFETY: as the caller says.
                let copy = unsafe { Scratch::copy_of(from, bytes) };
                Ok(Storage::Host(Arc::new(copy.ok_or(Error::OutOfHostMemory { bytes })?)))
            }
            // SAFETY: as the caller says.
            Home::Cuda(device) => {
                Ok(Storage::Device(unsafe { cuda::upload(&device, from, bytes, checkpoint) }?))
            }
        }
    }

    /// Lets the bytes go, and whatever their device then keeps beyond its limit. May wait for the
    /// device.
    pub fn release(self) {
        match self {
            Storage::Host(memory) => drop(memory),
            Storage::Device(memory) => {
                let device = Arc::clone(memory.device());
                drop(memory);
                device.trim();
            }
        }
    }

    /// Where the bytes are.
    pub fn home(&self) -> Home {
        match self {
            Storage::Host(_) => Home::Cpu,
            Storage::Device(memory) => Home::Cuda(Arc::clone(memory.device())),
        }
    }

    /// Copies the first `bytes` bytes to the host.
    ///
    /// # Safety
    /// `to` is writable for `bytes` bytes until the call returns, and nothing else touches it; the
    /// storage has as many.
    pub unsafe fn read(
        &self,
        to: *mut u8,
        bytes: usize,
        checkpoint: Checkpoint,
    ) -> Result<(), Error> {
        match self {
            // SAFETY: as the caller says.
            Storage::Host(from) => unsafe {
                std::ptr::copy_nonoverlapping(from.address(), to, bytes);
            },
            // SAFETY: as the caller says.
            Storage::Device(from) => unsafe { cuda::download(from, to, bytes, checkpoint) }?,
        }
        Ok(())
    }

    /// Copies `bytes` bytes of the host over those from `offset` on. A gather that is reading them
    /// sees old or new ones.
    ///
    /// # Safety
    /// `from` is readable for `bytes` bytes until the call returns, and the storage has
    /// `offset + bytes`.
    pub unsafe fn write(
        &self,
        offset: usize,
        from: *const u8,
        bytes: usize,
        checkpoint: Checkpoint,
    ) -> Result<(), Error> {
        match self {
            // SAFETY: as the caller says.
            Storage::Host(to) => unsafe {
                std::ptr::copy(from, to.address().add(offset), bytes);
            },
            // SAFETY: as the caller says.
            Storage::Device(to) => unsafe { cuda::overwrite(to, offset, from, bytes, checkpoint) }?,
        }
        Ok(())
    }
}
