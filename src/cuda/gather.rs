//! A gather on a device: along the way that moves its bytes the fastest.
//!
//! Kernels reach page-locked host memory over the bus by themselves. So a small or middling gather
//! has its index read from there and its result written to there, in pieces: while one thread
//! copies its piece of the index in, the kernel of another's runs, and a third copies its rows out.
//! Measured on an H200 against copies to and from the device, see bench/results.

use super::device::Device;
use super::error::Error;
use super::kernels::{Addresses, Rule};
use super::lane::Lane;
use super::memory::Memory;
use super::page_locked::PageLocked;
use super::transfer::upload;
use crate::checkpoint::Checkpoint;
use crate::cpu;
use cudarc::driver::sys::CUdeviceptr;
use std::ops::Range;
use std::sync::Arc;

/// Something that a gather reads.
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    /// So many bytes on the host, to be copied.
    Host { address: *const u8, bytes: usize, is_page_locked: bool },
    /// Page-locked memory, to be read where it is.
    PageLocked(*const u8),
    /// Memory of this device.
    Device(&'a Arc<Memory>),
}

/// Where the result goes.
#[derive(Clone, Copy)]
pub enum Target {
    /// To the host, where there is room for all of it.
    Host {
        address: *mut u8,
        /// Whether it has to stay as it was where an index is outside.
        stays_untouched: bool,
    },
    /// To page-locked memory, by the kernel itself: where an index is outside, other rows may have
    /// been written.
    PageLocked(*mut u8),
    /// To memory of the device, new for this result.
    Device,
}

/// How a gather ended.
pub enum Gathered {
    /// The result is on the host.
    OnHost,
    OnDevice(Arc<Memory>),
    /// The first index that names no row.
    Outside(Outside),
}

pub struct Outside {
    pub position: u64,
    /// The index there: its bytes, with zeros behind them.
    pub index: [u8; 8],
}

// SAFETY: operands and targets are addresses; `gather` says who may use them how.
unsafe impl Send for Operand<'_> {}
unsafe impl Sync for Operand<'_> {}
unsafe impl Send for Target {}
unsafe impl Sync for Target {}

/// The most bytes of index and result that go by way of page-locked staging. A larger gather costs
/// so much that copies to and from the device are as fast, and need no such room.
const STAGED_BYTES: usize = 64 << 20;
/// A source on the host of up to so many bytes goes up within the gather's own job, which saves a
/// wait; a larger one beforehand.
const SMALL_SOURCE_BYTES: usize = 64 << 10;
/// Bytes of index and result that one thread sees to, at the least.
const PIECE_BYTES: usize = 512 << 10;
const MOST_PIECES: usize = 16;

/// Gathers on the device.
///
/// # Safety
/// What the operands and the target name is there until the call returns, and is as `rule` says;
/// others may write to source and index meanwhile, nothing else touches the target.
pub unsafe fn gather(
    device: &Arc<Device>,
    rule: &Rule,
    source: Operand,
    index: Operand,
    target: Target,
    checkpoint: Checkpoint,
) -> Result<Gathered, Error> {
    if rule.length == 0 {
        return match target {
            Target::Device => device.with_lane(|lane| lane.take(device, 0)).map(Gathered::OnDevice),
            Target::Host { .. } | Target::PageLocked(_) => Ok(Gathered::OnHost),
        };
    }
    let uploaded;
    let source = match source {
        Operand::Host { address, bytes, is_page_locked } if bytes > SMALL_SOURCE_BYTES => {
            // SAFETY: as the caller says.
            uploaded = unsafe { upload(device, address, bytes, is_page_locked, checkpoint)? };
            device.between(checkpoint)?;
            Operand::Device(&uploaded)
        }
        other => other,
    };
    let call = Call { device, rule, source, checkpoint };
    // SAFETY: as the caller says.
    unsafe {
        match call.staging(index, target) {
            Some(staging) => call.in_pieces(index, target, &staging),
            None => call.at_once(index, target),
        }
    }
}

/// A gather whose source, where it is large, is where the kernel can read it.
struct Call<'a> {
    device: &'a Arc<Device>,
    rule: &'a Rule,
    source: Operand<'a>,
    checkpoint: Checkpoint<'a>,
}

/// Page-locked room for as much of a call as is neither on the device nor page-locked itself.
struct Staging {
    index: Option<PageLocked>,
    out: Option<PageLocked>,
}

impl Call<'_> {
    fn index_bytes(&self) -> usize {
        self.rule.length as usize * self.rule.index_size()
    }

    fn out_bytes(&self) -> usize {
        (self.rule.length * self.rule.row_bytes) as usize
    }

    /// `None` where the call is too large for it, where nothing needs it, or where there is none to
    /// be had: copies to and from the device then do.
    fn staging(&self, index: Operand, target: Target) -> Option<Staging> {
        let index_bytes = matches!(index, Operand::Host { .. }).then_some(self.index_bytes());
        let out_bytes = matches!(target, Target::Host { .. }).then_some(self.out_bytes());
        let bytes = index_bytes.unwrap_or(0).checked_add(out_bytes.unwrap_or(0))?;
        if bytes == 0 || bytes > STAGED_BYTES {
            return None;
        }
        let room = |bytes: Option<usize>| {
            bytes.map(|bytes| self.device.with_page_locked(bytes)).transpose().ok()
        };
        Some(Staging { index: room(index_bytes)?, out: room(out_bytes)? })
    }

    /// # Safety
    /// As for [`gather`]; the staging is for this call.
    unsafe fn in_pieces(
        &self,
        index: Operand,
        target: Target,
        staging: &Staging,
    ) -> Result<Gathered, Error> {
        let (index_size, row_bytes) = (self.rule.index_size(), self.rule.row_bytes as usize);
        // Room on the device is one block for all pieces.
        let (out, result) = match (&staging.out, target) {
            (Some(room), _) => (room.address(), None),
            (None, Target::PageLocked(address)) => (address, None),
            (None, Target::Host { .. } | Target::Device) => {
                let memory =
                    self.device.with_lane(|lane| lane.take(self.device, self.out_bytes()))?;
                (memory.address() as *mut u8, Some(memory))
            }
        };
        let [staged_index, staged_out] = [&staging.index, &staging.out].map(|room| room.is_some());
        let length = self.rule.length as usize;
        let staged = usize::from(staged_index) * self.index_bytes()
            + usize::from(staged_out) * self.out_bytes();
        // A multiple of 16 rows, so that every piece is as well aligned as the first.
        let rows =
            length.div_ceil((staged / PIECE_BYTES).clamp(1, MOST_PIECES)).next_multiple_of(16);
        let (call, room) = (self, SharedAddress(out));
        let piece = move |p: usize| {
            let rows = p * rows..length.min((p + 1) * rows);
            let SharedAddress(out) = { room };
            call.device.with_lane(|lane| {
                // SAFETY: as the caller says; the pieces don't overlap, and what a failed attempt
                // has begun was waited for.
                unsafe {
                    let index = match (index, &staging.index) {
                        (Operand::Host { address: from, .. }, Some(room)) => {
                            let at = rows.start * index_size;
                            let to = room.address().add(at);
                            let bytes = rows.len() * index_size;
                            std::ptr::copy_nonoverlapping(from.add(at), to, bytes);
                            Operand::PageLocked(room.address())
                        }
                        (index, _) => index,
                    };
                    let outside = call.launch(lane, rows.clone(), index, out as CUdeviceptr)?;
                    if let (Target::Host { address, stays_untouched: false }, None) =
                        (target, &outside)
                    {
                        let at = rows.start * row_bytes;
                        let bytes = rows.len() * row_bytes;
                        std::ptr::copy_nonoverlapping(out.add(at), address.add(at), bytes);
                    }
                    Ok(outside)
                }
            })
        };
        let mut first = None;
        for outside in cpu::map(length.div_ceil(rows), piece) {
            // In the order of the rows, so that the first that is outside is the first of all.
            let outside = outside?;
            first = first.or(outside);
        }
        if let Some(outside) = first {
            return Ok(Gathered::Outside(outside));
        }
        if let Target::Host { address, stays_untouched: true } = target {
            // SAFETY: as the caller says.
            unsafe { cpu::copy(out, address, self.out_bytes()) };
        }
        Ok(result.map_or(Gathered::OnHost, Gathered::OnDevice))
    }

    /// # Safety
    /// As for [`gather`].
    unsafe fn at_once(&self, index: Operand, target: Target) -> Result<Gathered, Error> {
        self.device.with_lane(|lane| {
            let (out, result) = match target {
                Target::PageLocked(address) => (address as CUdeviceptr, None),
                Target::Host { .. } | Target::Device => {
                    let memory = lane.take(self.device, self.out_bytes())?;
                    (memory.address(), Some(memory))
                }
            };
            // SAFETY: as the caller says; the lane is waited for here, or in `with_lane` after a
            // failure, before any memory is let go.
            unsafe {
                if let Some(outside) =
                    self.launch(lane, 0..self.rule.length as usize, index, out)?
                {
                    return Ok(Gathered::Outside(outside));
                }
                match (target, result) {
                    (Target::Host { address, .. }, Some(result)) => {
                        let between = || self.device.between(self.checkpoint);
                        lane.read(&result, address, self.out_bytes(), &between)?;
                        Ok(Gathered::OnHost)
                    }
                    (_, result) => Ok(result.map_or(Gathered::OnHost, Gathered::OnDevice)),
                }
            }
        })
    }

    /// Gathers some of the rows to where they belong in `out`, and waits for it.
    ///
    /// # Safety
    /// As for [`gather`], with `out` for the target; the device can write there.
    unsafe fn launch(
        &self,
        lane: &mut Lane,
        rows: Range<usize>,
        index: Operand,
        out: CUdeviceptr,
    ) -> Result<Option<Outside>, Error> {
        let Call { device, source, .. } = *self;
        let rule = Rule { length: rows.len() as u64, ..*self.rule };
        let (index_size, between) = (rule.index_size(), || device.between(self.checkpoint));
        let (at, bytes) = (rows.start * index_size, rows.len() * index_size);
        let out = out + rows.start as u64 * rule.row_bytes;
        // SAFETY: as the caller says; the lane holds what is taken here until it was waited for.
        unsafe {
            let source = match source {
                Operand::Device(memory) => memory.address(),
                Operand::PageLocked(address) => address as CUdeviceptr,
                Operand::Host { address: from, bytes, .. } => {
                    let memory = lane.take(device, bytes)?;
                    lane.write(&memory, 0, from, bytes, &|| Ok(()))?;
                    memory.address()
                }
            };
            // An index that is read once is read where it is. One that a row's threads share is
            // copied, for they must see one value, and so is one that could not be read again for
            // the error.
            let (index, copy) = match index {
                Operand::PageLocked(from) if rule.has_single_accesses(source, out) => {
                    (from.add(at) as CUdeviceptr, None)
                }
                _ => {
                    let copy = lane.take(device, bytes)?;
                    match index {
                        Operand::Device(memory) => {
                            copy.copy_from(memory, at, bytes, lane.stream)?
                        }
                        Operand::PageLocked(from) => {
                            lane.write_page_locked(&copy, 0, from.add(at), bytes, &between)?;
                        }
                        Operand::Host { address: from, .. } => {
                            lane.write(&copy, 0, from.add(at), bytes, &between)?;
                        }
                    }
                    (copy.address(), Some(copy))
                }
            };
            let addresses = Addresses { source, index, out, first_outside: lane.asked() };
            device.kernels.launch(&rule, &addresses, lane.stream)?;
            lane.wait()?;
            let Some(position) = lane.first_outside() else { return Ok(None) };
            let index = match copy {
                Some(copy) => lane.index_at(&copy, position, index_size)?,
                None => {
                    let from = (index as *const u8).add(position as usize * index_size);
                    let mut bytes = [0; 8];
                    std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), index_size);
                    bytes
                }
            };
            Ok(Some(Outside { position: rows.start as u64 + position, index }))
        }
    }
}

/// An address that threads share, each for its own piece.
#[derive(Clone, Copy)]
struct SharedAddress(*mut u8);

// SAFETY: only `in_pieces` has any, whose pieces don't overlap.
unsafe impl Send for SharedAddress {}
unsafe impl Sync for SharedAddress {}
