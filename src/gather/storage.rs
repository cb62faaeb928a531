//! An array that lives where gathers run, rather than in JavaScript's memory.

use super::chunks;
use super::error::Error;
use super::plan::{DeviceChoice, Home};
use crate::checkpoint::Checkpoint;
use crate::cpu::{self, Scratch};
use crate::cuda::{self, Device, PageLocked};
use std::sync::Arc;

/// Where the bytes of an array are that lives on a CUDA device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// In the device's memory.
    Device,
    /// In page-locked memory of the host: for more than the device has room for.
    Pinned,
}

/// The bytes of a resident array. Shared by the array and by the gathers that are using it, so that
/// they outlive it where they have to.
#[derive(Clone)]
pub enum Storage {
    Host(Arc<Scratch>),
    Device(Arc<cuda::Memory>),
    /// Page-locked memory of the host, which the kernels of this device read over the bus.
    PageLocked(Arc<PageLocked>, Arc<Device>),
}

impl Storage {
    /// A copy of `bytes` bytes of the host, where `choice` leads to; where that is a CUDA device, in
    /// its memory or page-locked for it.
    ///
    /// # Safety
    /// `from` is readable for `bytes` bytes until the call returns; others may write to it
    /// meanwhile.
    pub unsafe fn copy_of(
        from: *const u8,
        bytes: usize,
        choice: DeviceChoice,
        placement: Placement,
        checkpoint: Checkpoint,
    ) -> Result<Storage, Error> {
        match Home::of_new(choice)? {
            Home::Cpu => {
                let copy = Scratch::with_room(bytes).ok_or(Error::OutOfHostMemory { bytes })?;
                cpu::advise_huge_pages(copy.address(), bytes);
                // SAFETY: as the caller says; there is room.
                unsafe { chunks::copy(from, copy.address(), bytes, checkpoint)? };
                Ok(Storage::Host(Arc::new(copy)))
            }
            // SAFETY: as the caller says.
            Home::Cuda(device) => Ok(unsafe {
                match placement {
                    Placement::Device => {
                        Storage::Device(cuda::upload(&device, from, bytes, false, checkpoint)?)
                    }
                    Placement::Pinned => {
                        let copy = PageLocked::with_room(&device, bytes)?;
                        chunks::copy(from, copy.address(), bytes, checkpoint)?;
                        Storage::PageLocked(Arc::new(copy), device)
                    }
                }
            }),
        }
    }

    /// Lets the bytes go, and whatever their device then keeps beyond its limit. May wait for the
    /// device.
    pub fn release(self) {
        match self {
            Storage::Host(memory) => drop(memory),
            Storage::PageLocked(memory, device) => {
                drop(memory);
                device.trim();
            }
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
            Storage::PageLocked(_, device) => Home::Cuda(Arc::clone(device)),
        }
    }

    /// The address on the host; `None` where the bytes are on a device.
    pub fn host_address(&self) -> Option<*mut u8> {
        match self {
            Storage::Host(memory) => Some(memory.address()),
            Storage::PageLocked(memory, _) => Some(memory.address()),
            Storage::Device(_) => None,
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
                chunks::copy(from.address(), to, bytes, checkpoint)?;
            },
            // SAFETY: as the caller says.
            Storage::PageLocked(from, _) => unsafe {
                chunks::copy(from.address(), to, bytes, checkpoint)?;
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
                chunks::copy(from, to.address().add(offset), bytes, checkpoint)?;
            },
            // SAFETY: as the caller says.
            Storage::PageLocked(to, _) => unsafe {
                chunks::copy(from, to.address().add(offset), bytes, checkpoint)?;
            },
            // SAFETY: as the caller says.
            Storage::Device(to) => unsafe { cuda::overwrite(to, offset, from, bytes, checkpoint) }?,
        }
        Ok(())
    }
}
