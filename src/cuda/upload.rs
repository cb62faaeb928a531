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
    device.with_memory(|lane| {
        lane.reserve(arrays.source_bytes, arrays.index_bytes, arrays.out_bytes)?;
        let at = Addresses {
            source: lane.source.address(),
            index: lane.index.address(),
            out: lane.out.address(),
            first_outside: lane.first_outside.address(),
        };
        // SAFETY: as the caller says of the arrays; the blocks were just made large enough. `wait`
        // here, or the one in `with_lane` after a failure, comes before the host memory is let go.
        unsafe {
            lane.source.write(arrays.source, arrays.source_bytes, lane.stream)?;
            lane.index.write(arrays.index, arrays.index_bytes, lane.stream)?;
            lane.first_outside.set(0xff, size_of::<u64>(), lane.stream)?;
            device.kernels.launch(rule, &at, lane.stream)?;
            let answer = (&raw mut lane.answer.first_outside).cast();
            lane.first_outside.read(0, answer, size_of::<u64>(), lane.stream)?;
        }
        lane.wait()?;
        let first_outside = lane.answer.first_outside;
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

/// The index at `position`, read from the copy that the kernel checked: the caller may have
/// changed the original meanwhile.
fn outside(lane: &mut Lane, position: u64, index_size: usize) -> Result<Outside, Error> {
    lane.answer.index = [0; 8];
    // SAFETY: the block holds the index, and the answer has room for the widest.
    unsafe {
        let (offset, answer) = (position as usize * index_size, lane.answer.index.as_mut_ptr());
        lane.index.read(offset, answer, index_size, lane.stream)?;
    }
    lane.wait()?;
    Ok(Outside { position, index: lane.answer.index })
}
