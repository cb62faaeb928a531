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

/// The most bytes of index and result that are in page-locked staging at once; a larger gather takes
/// its rows in turns.
const STAGED_BYTES: usize = 64 << 20;
/// A source on the host of up to so many bytes goes up within the gather's own job, which saves a
/// wait; a larger one beforehand.
const SMALL_SOURCE_BYTES: usize = 64 << 10;
/// Bytes of index and result that one thread sees to, at the least.
const PIECE_BYTES: usize = 512 << 10;
const MOST_PIECES: usize = 16;
/// A number of rows that makes whole accesses of 16 bytes whatever the sizes of index and row.
const ALIGNED_ROWS: usize = 16;

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
    // SAFETY: as the caller says.
    let gathered = unsafe { upload_and_gather(device, rule, source, index, target, checkpoint) };
    // What the whole call had, rather than one of its jobs, is back in the pools only now.
    device.trim();
    gathered
}

/// # Safety
/// As for [`gather`].
unsafe fn upload_and_gather(
    device: &Arc<Device>,
    rule: &Rule,
    source: Operand,
    index: Operand,
    target: Target,
    checkpoint: Checkpoint,
) -> Result<Gathered, Error> {
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
            Some(staging) => call.in_turns(index, target, &staging),
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
    /// Rows that there is room for: all, or as many as are taken in one turn.
    rows: usize,
}

impl Call<'_> {
    fn out_bytes(&self) -> usize {
        (self.rule.length * self.rule.row_bytes) as usize
    }

    /// `None` where nothing needs it, where there is none to be had, and where a result that has to
    /// be whole before the first of it is copied is too large for it: copies to and from the device
    /// then do.
    fn staging(&self, index: Operand, target: Target) -> Option<Staging> {
        let index_size = matches!(index, Operand::Host { .. }).then_some(self.rule.index_size());
        let (row_bytes, must_be_whole) = match target {
            Target::Host { stays_untouched, .. } => {
                (Some(self.rule.row_bytes as usize), stays_untouched)
            }
            Target::PageLocked(_) | Target::Device => (None, false),
        };
        let bytes_a_row = index_size.unwrap_or(0).checked_add(row_bytes.unwrap_or(0))?;
        let length = self.rule.length as usize;
        let rows = length.min(STAGED_BYTES.checked_div(bytes_a_row)?);
        if rows == 0 || must_be_whole && rows < length {
            return None;
        }
        // Whole accesses, so that every turn is as well aligned as the first.
        let rows = if rows < length { rows.next_multiple_of(ALIGNED_ROWS) } else { rows };
        let room = |size: Option<usize>| {
            size.map(|size| self.device.with_page_locked(rows * size)).transpose().ok()
        };
        Some(Staging { index: room(index_size)?, out: room(row_bytes)?, rows })
    }

    /// # Safety
    /// As for [`gather`]; the staging is for this call.
    unsafe fn in_turns(
        &self,
        index: Operand,
        target: Target,
        staging: &Staging,
    ) -> Result<Gathered, Error> {
        let length = self.rule.length as usize;
        // Room on the device is one block for all pieces.
        let result = match target {
            Target::Device => {
                Some(self.device.with_lane(|lane| lane.take(self.device, self.out_bytes()))?)
            }
            Target::Host { .. } | Target::PageLocked(_) => None,
        };
        let out = result.as_ref().map(|memory| memory.address());
        for start in (0..length).step_by(staging.rows) {
            if start > 0 {
                self.device.between(self.checkpoint)?;
            }
            let rows = start..length.min(start + staging.rows);
            // SAFETY: as the caller says.
            if let Some(outside) = unsafe { self.in_pieces(rows, index, target, out, staging)? } {
                return Ok(Gathered::Outside(outside));
            }
        }
        if let (Target::Host { address, stays_untouched: true }, Some(room)) =
            (target, &staging.out)
        {
            // SAFETY: as the caller says; such a result is all in the room.
            unsafe { cpu::copy(room.address(), address, self.out_bytes()) };
        }
        Ok(result.map_or(Gathered::OnHost, Gathered::OnDevice))
    }

    /// Gathers as many rows as there is staging for, shared out among threads.
    ///
    /// # Safety
    /// As for [`gather`]; `result` is that of a target on the device.
    unsafe fn in_pieces(
        &self,
        turn: Range<usize>,
        index: Operand,
        target: Target,
        result: Option<CUdeviceptr>,
        staging: &Staging,
    ) -> Result<Option<Outside>, Error> {
        let (index_size, row_bytes) = (self.rule.index_size(), self.rule.row_bytes as usize);
        let staged = turn.len()
            * (staging.index.as_ref().map_or(0, |_| index_size)
                + staging.out.as_ref().map_or(0, |_| row_bytes));
        let pieces = (staged / PIECE_BYTES).clamp(1, MOST_PIECES);
        let step = turn.len().div_ceil(pieces).next_multiple_of(ALIGNED_ROWS);
        // Addresses as numbers, each thread for its own piece.
        let room_of = |room: &Option<PageLocked>| room.as_ref().map(|room| room.address() as usize);
        let rooms = (room_of(&staging.index), room_of(&staging.out));
        let piece = |p: usize| {
            let rows = turn.start + p * step..turn.end.min(turn.start + (p + 1) * step);
            let in_room = p * step;
            self.device.with_lane(|lane| {
                // SAFETY: as the caller says; the pieces don't overlap, and what a failed attempt
                // has begun was waited for.
                unsafe {
                    let index = match (index, rooms.0) {
                        (Operand::Host { address: from, .. }, Some(room)) => {
                            let to = (room + in_room * index_size) as *mut u8;
                            let from = from.add(rows.start * index_size);
                            std::ptr::copy_nonoverlapping(from, to, rows.len() * index_size);
                            PieceIndex::PageLocked(to)
                        }
                        (index, _) => PieceIndex::of(index, rows.start * index_size),
                    };
                    let (out, is_on_host) = match (rooms.1, target, result) {
                        (Some(room), ..) => ((room + in_room * row_bytes) as CUdeviceptr, true),
                        (None, Target::PageLocked(address), _) => {
                            (address.add(rows.start * row_bytes) as CUdeviceptr, true)
                        }
                        (None, _, Some(result)) => {
                            (result + (rows.start * row_bytes) as u64, false)
                        }
                        (None, _, None) => unreachable!("a result on the host has room"),
                    };
                    let outside = self.launch(lane, rows.len(), index, out, is_on_host)?;
                    if let (None, Target::Host { address, stays_untouched: false }) =
                        (&outside, target)
                    {
                        let to = address.add(rows.start * row_bytes);
                        std::ptr::copy_nonoverlapping(out as *const u8, to, rows.len() * row_bytes);
                    }
                    Ok(outside.map(|found| Outside {
                        position: rows.start as u64 + found.position,
                        ..found
                    }))
                }
            })
        };
        let mut first = None;
        for outside in cpu::map(turn.len().div_ceil(step), piece) {
            // In the order of the rows, so that the first that is outside is the first of all.
            let outside = outside?;
            first = first.or(outside);
        }
        Ok(first)
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
                let index = PieceIndex::of(index, 0);
                let length = self.rule.length as usize;
                if let Some(outside) = self.launch(lane, length, index, out, result.is_none())? {
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

    /// Gathers `length` rows by as many indices, and waits for it.
    ///
    /// # Safety
    /// As for [`gather`], with `out` for the target, which the device can write to.
    unsafe fn launch(
        &self,
        lane: &mut Lane,
        length: usize,
        index: PieceIndex,
        out: CUdeviceptr,
        out_is_on_host: bool,
    ) -> Result<Option<Outside>, Error> {
        let Call { device, source, .. } = *self;
        let rule = Rule { length: length as u64, ..*self.rule };
        let (index_size, between) = (rule.index_size(), || device.between(self.checkpoint));
        let bytes = length * index_size;
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
            // copied, for they must see one value; so is one on the device, which could have been
            // updated when its value is wanted for the error.
            let (index, copy) = match index {
                PieceIndex::PageLocked(from) if rule.has_single_accesses(source, out) => {
                    (from as CUdeviceptr, None)
                }
                _ => {
                    let copy = lane.take(device, bytes)?;
                    match index {
                        PieceIndex::Device(memory, at) => {
                            copy.copy_from(memory, at, bytes, lane.stream)?;
                        }
                        PieceIndex::PageLocked(from) => {
                            lane.write_page_locked(&copy, 0, from, bytes, &between)?;
                        }
                        PieceIndex::Host(from) => lane.write(&copy, 0, from, bytes, &between)?,
                    }
                    (copy.address(), Some(copy))
                }
            };
            let addresses = Addresses { source, index, out, first_outside: lane.asked() };
            let crosses_bus = copy.is_none() || out_is_on_host;
            device.kernels.launch(&rule, &addresses, lane.stream, crosses_bus)?;
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
            Ok(Some(Outside { position, index }))
        }
    }
}

/// Where the indices of a piece begin.
#[derive(Clone, Copy)]
enum PieceIndex<'a> {
    Host(*const u8),
    PageLocked(*const u8),
    /// At so many bytes in a block.
    Device(&'a Memory, usize),
}

impl<'a> PieceIndex<'a> {
    /// # Safety
    /// The operand is longer than `at`.
    unsafe fn of(index: Operand<'a>, at: usize) -> PieceIndex<'a> {
        // SAFETY: as the caller says.
        unsafe {
            match index {
                Operand::Host { address, .. } => PieceIndex::Host(address.add(at)),
                Operand::PageLocked(address) => PieceIndex::PageLocked(address.add(at)),
                Operand::Device(memory) => PieceIndex::Device(memory, at),
            }
        }
    }
}
