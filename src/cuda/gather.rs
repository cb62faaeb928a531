//! A gather on a device: what is not there yet goes up, what is wanted on the host comes down.

use super::device::Device;
use super::error::Error;
use super::kernels::{Addresses, Rule};
use super::lane::Lane;
use super::memory::Memory;
use crate::checkpoint::Checkpoint;
use crate::cpu;
use std::sync::Arc;

/// Something that a gather reads.
pub enum Operand<'a> {
    /// So many bytes on the host, to be copied up.
    Host(*const u8, usize),
    /// Memory of this device.
    Device(&'a Arc<Memory>),
}

/// Where the result goes.
pub enum Target {
    /// To the host, where there is room for all of it.
    Host(*mut u8),
    /// To memory of the device, new for this result.
    Device,
}

/// How a gather ended.
pub enum Gathered {
    /// The result is on the host.
    OnHost,
    OnDevice(Arc<Memory>),
    /// The first index that names no row: its position, and its bytes with zeros behind them.
    Outside {
        position: u64,
        index: [u8; 8],
    },
}

/// Gathers on the device. Where an index is outside, and where anything fails before the copy
/// down, a target on the host is left untouched.
///
/// # Safety
/// What the operands and the target name is there until the call returns, and is as `rule` says;
/// others may write to source and index meanwhile, nothing else touches the target.
pub unsafe fn gather(
    device: &Arc<Device>,
    rule: &Rule,
    source: &Operand,
    index: &Operand,
    target: &Target,
    checkpoint: Checkpoint,
) -> Result<Gathered, Error> {
    if let (0, Target::Host(_)) = (rule.length, target) {
        return Ok(Gathered::OnHost);
    }
    let (index_size, out_bytes) = (rule.index_size(), (rule.length * rule.row_bytes) as usize);
    device.with_lane(|lane| {
        let out = lane.take(device, out_bytes)?;
        let mut staged = None;
        if rule.length > 0 {
            // SAFETY: as the caller says.
            let (source, index) = unsafe {
                let index = match index {
                    Operand::Device(memory) => copy_of(device, lane, memory, rule)?,
                    host => place(device, lane, host, checkpoint)?,
                };
                (place(device, lane, source, checkpoint)?, index)
            };
            let flag = lane.take(device, size_of::<u64>())?;
            let at = Addresses {
                source: source.address(),
                index: index.address(),
                out: out.address(),
                first_outside: flag.address(),
            };
            flag.set(0xff, size_of::<u64>(), lane.stream)?;
            // SAFETY: the blocks hold what the rule says; `wait` here, or the one in `with_lane`
            // after a failure, comes before any memory is let go.
            unsafe {
                device.kernels.launch(rule, &at, lane.stream)?;
                let answer = (&raw mut lane.answer.first_outside).cast();
                flag.read(0, answer, size_of::<u64>(), lane.stream)?;
            }
            if let Target::Host(_) = target {
                // On its way before it is known to be good, which saves a wait; it goes no further
                // than the lane's own memory until it is.
                staged = lane.begin_read(&out, out_bytes)?;
            }
            lane.wait()?;
            let position = lane.answer.first_outside;
            if position != u64::MAX {
                let index = index_at(lane, &index, position, index_size)?;
                return Ok(Gathered::Outside { position, index });
            }
        }
        match *target {
            Target::Device => Ok(Gathered::OnDevice(out)),
            Target::Host(address) => {
                // SAFETY: as above; what is staged is there since the wait.
                unsafe {
                    match staged {
                        Some(from) => cpu::copy(from, address, out_bytes),
                        None => {
                            lane.read(&out, address, out_bytes, &|| device.between(checkpoint))?
                        }
                    }
                }
                Ok(Gathered::OnHost)
            }
        }
    })
}

/// An operand's memory on the device, for as long as the job runs.
///
/// # Safety
/// As for [`gather`].
unsafe fn place(
    device: &Arc<Device>,
    lane: &mut Lane,
    operand: &Operand,
    checkpoint: Checkpoint,
) -> Result<Arc<Memory>, Error> {
    match *operand {
        Operand::Device(memory) => {
            lane.keep(memory);
            Ok(Arc::clone(memory))
        }
        Operand::Host(from, bytes) => {
            let memory = lane.take(device, bytes)?;
            // SAFETY: as the caller says.
            unsafe { lane.write(&memory, 0, from, bytes, &|| device.between(checkpoint))? };
            Ok(memory)
        }
    }
}

/// A copy of an index that lives on the device and may be updated meanwhile: a row's threads must
/// all see the same index, and the error the one that was checked.
fn copy_of(
    device: &Arc<Device>,
    lane: &mut Lane,
    index: &Arc<Memory>,
    rule: &Rule,
) -> Result<Arc<Memory>, Error> {
    let bytes = rule.length as usize * rule.index_size();
    lane.keep(index);
    let copy = lane.take(device, bytes)?;
    copy.copy_from(index, bytes, lane.stream)?;
    Ok(copy)
}

/// The index at `position`, read from the copy that the kernel checked: the caller may have
/// changed the original meanwhile.
fn index_at(lane: &mut Lane, index: &Memory, position: u64, size: usize) -> Result<[u8; 8], Error> {
    lane.answer.index = [0; 8];
    let answer = lane.answer.index.as_mut_ptr();
    // SAFETY: the block holds the index, and the answer has room for the widest.
    unsafe { index.read(position as usize * size, answer, size, lane.stream)? };
    lane.wait()?;
    Ok(lane.answer.index)
}
