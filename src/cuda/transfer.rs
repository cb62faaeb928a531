//! Whole arrays, up to a device and down again.

use super::device::Device;
use super::error::Error;
use super::memory::Memory;
use crate::checkpoint::Checkpoint;
use std::sync::Arc;

/// New device memory with a copy of `bytes` bytes of the host.
///
/// # Safety
/// `from` is readable for `bytes` bytes until the call returns; others may write to it meanwhile.
pub unsafe fn upload(
    device: &Arc<Device>,
    from: *const u8,
    bytes: usize,
    is_page_locked: bool,
    checkpoint: Checkpoint,
) -> Result<Arc<Memory>, Error> {
    device.with_lane(|lane| {
        let memory = lane.take(device, bytes)?;
        let between = || device.between(checkpoint);
        // SAFETY: as the caller says; the lane is waited for here or in `with_lane`.
        unsafe {
            match is_page_locked {
                true => lane.write_page_locked(&memory, 0, from, bytes, &between)?,
                false => lane.write(&memory, 0, from, bytes, &between)?,
            }
        }
        lane.wait()?;
        Ok(memory)
    })
}

/// Copies the first `bytes` bytes of device memory to the host.
///
/// # Safety
/// `to` is writable for `bytes` bytes until the call returns, and nothing else touches it.
pub unsafe fn download(
    memory: &Arc<Memory>,
    to: *mut u8,
    bytes: usize,
    checkpoint: Checkpoint,
) -> Result<(), Error> {
    let device = memory.device();
    device.with_lane(|lane| {
        // SAFETY: as the caller says; the lane is waited for here or in `with_lane`.
        unsafe { lane.read(memory, to, bytes, &|| device.between(checkpoint)) }
    })
}

/// Copies `bytes` bytes of the host over device memory, from `offset` on.
///
/// # Safety
/// As for [`upload`]; `offset + bytes` is within the memory.
pub unsafe fn overwrite(
    memory: &Arc<Memory>,
    offset: usize,
    from: *const u8,
    bytes: usize,
    checkpoint: Checkpoint,
) -> Result<(), Error> {
    let device = memory.device();
    device.with_lane(|lane| {
        // SAFETY: as the caller says; the lane is waited for here or in `with_lane`.
        unsafe { lane.write(memory, offset, from, bytes, &|| device.between(checkpoint))? };
        lane.wait()
    })
}
