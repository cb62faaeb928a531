//! The upload route: source and index go up, the result comes down.

use super::device::Device;
use super::error::Error;
use super::kernels::{Addresses, Rule};
use super::lane::Lane;

/// Where a gather reads and writes on the host.
pub struct HostArrays {
    pub source: *const u8,
    pub source_bytes: usize,
    pub index: *const u8,
    pub index_bytes: usize,
    pub out: *mut u8,
    pub out_bytes: usize,
}

/// The first index that names no row: its position, and its bytes with zeros behind them.
#[derive(Debug, PartialEq, Eq)]
pub struct Outside {
    pub position: u64,
    pub index: [u8; 8],
}

/// Gathers on the device from arrays on the host. Where an index is outside, and where anything
/// fails before the copy back, `out` is left untouched.
///
/// # Safety
/// The arrays are there, as long as they say, until the call returns, and hold what `rule` says of
/// them; others may write to source and index meanwhile, nothing else touches `out`.
pub unsafe fn gather_from_host(
    device: &Device,
    rule: &Rule,
    arrays: &HostArrays,
) -> Result<Option<Outside>, Error> {
    if rule.length == 0 {
        return Ok(None);
    }
    device.with_lane(|lane| {
        reserve(device, lane, arrays)?;
        let at = Addresses {
            source: lane.source.address(),
            index: lane.index.address(),
            out: lane.out.address(),
            first_outside: lane.first_outside.address(),
        };
        let mut first_outside = u64::MAX;
        // SAFETY: as the caller says of the arrays; the blocks were just made large enough. `wait`
        // here, or the one in `with_lane` after a failure, comes before the host memory is let go.
        unsafe {
            lane.source.write(arrays.source, arrays.source_bytes, lane.stream)?;
            lane.index.write(arrays.index, arrays.index_bytes, lane.stream)?;
            lane.first_outside.set(0xff, size_of::<u64>(), lane.stream)?;
            device.kernels.launch(rule, &at, lane.stream)?;
            let flag = (&raw mut first_outside).cast();
            lane.first_outside.read(0, flag, size_of::<u64>(), lane.stream)?;
        }
        lane.wait()?;
        if first_outside != u64::MAX {
            return outside(lane, first_outside, arrays.index_bytes / rule.length as usize)
                .map(Some);
        }
        // SAFETY: as above.
        unsafe { lane.out.read(0, arrays.out, arrays.out_bytes, lane.stream)? };
        lane.wait()?;
        Ok(None)
    })
}

/// Room for everything, at the cost of what idle lanes hold where the device is full.
fn reserve(device: &Device, lane: &mut Lane, arrays: &HostArrays) -> Result<(), Error> {
    let HostArrays { source_bytes, index_bytes, out_bytes, .. } = *arrays;
    match lane.reserve(source_bytes, index_bytes, out_bytes) {
        Err(error) if error.is_out_of_memory() => {
            device.release_idle_memory()?;
            // Its own memory too: blocks grown for another shape of call may be in the way.
            lane.release_memory()?;
            // A lane that can't get all gives back what it got: the next call may fit.
            lane.reserve(source_bytes, index_bytes, out_bytes)
                .inspect_err(|_| drop(lane.release_memory()))
        }
        other => other,
    }
}

/// The index at `position`, read from the copy that the kernel checked: the caller may have
/// changed the original meanwhile.
fn outside(lane: &Lane, position: u64, index_size: usize) -> Result<Outside, Error> {
    let mut index = [0; 8];
    // SAFETY: the block holds the index, and `index` has room for the widest.
    unsafe {
        let offset = position as usize * index_size;
        lane.index.read(offset, index.as_mut_ptr(), index_size, lane.stream)?;
    }
    lane.wait()?;
    Ok(Outside { position, index })
}
