//! A gather, along its route.

use super::bounds::Bounds;
use super::chunks::{CHUNK_BYTES, in_chunks};
use super::error::Error;
use super::index::{Index, with_index_type};
use super::plan::{DeviceChoice, Home, SourceWay};
use super::request::{Input, Output, Request, Shape};
use super::storage::Storage;
use crate::checkpoint::Checkpoint;
use crate::cpu::{self, Scratch, Table};
use crate::cuda::{self, Device, Gathered, Operand, Outside, Rule, Target};
use std::sync::Arc;

/// Does what `request` asks for, on the device that its arrays or `choice` lead to. Blocks until it
/// is done, or until `checkpoint` says to stop. Gives the result where that is to stay on the device.
pub fn run(
    request: &Request,
    choice: DeviceChoice,
    checkpoint: Checkpoint,
) -> Result<Option<Storage>, Error> {
    match Home::of(request, choice)? {
        Home::Cpu => {
            with_index_type!(request.shape.index_type, I => on_cpu::<I>(request, checkpoint))
        }
        Home::Cuda(device) => on_device(request, &device, checkpoint),
    }
}

fn on_cpu<I: Index>(request: &Request, checkpoint: Checkpoint) -> Result<Option<Storage>, Error> {
    let shape = &request.shape;
    let Shape { row_bytes, length, bounds, fill, .. } = *shape;
    let source = host_address(&request.source)?;
    let index = host_address(&request.index)?;

    let out_of_memory = |bytes| Error::OutOfHostMemory { bytes };
    let (out, result, must_stay_untouched) = match request.out {
        Output::Host { address, is_callers } => (address, None, is_callers && bounds.can_fail()),
        Output::Pinned(address, _) => (address, None, bounds.can_fail()),
        Output::Resident => {
            let bytes = shape.out_bytes();
            let room = Scratch::with_room(bytes).ok_or_else(|| out_of_memory(bytes))?;
            cpu::advise_huge_pages(room.address(), bytes);
            (room.address(), Some(Storage::Host(Arc::new(room))), false)
        }
    };
    // A result of the caller's stays untouched where an index is bad: so all are checked before
    // the first row is written, and on a copy, for the caller may change them in between.
    let checked_copy = match &request.index {
        Input::Copied(_) => None,
        Input::Borrowed(_) | Input::Pinned(..) | Input::Resident(_) if must_stay_untouched => {
            let bytes = shape.index_bytes();
            // SAFETY: the request's index is that long.
            let copy = unsafe { Scratch::copy_of(index, bytes) };
            Some(copy.ok_or_else(|| out_of_memory(bytes))?)
        }
        Input::Borrowed(_) | Input::Pinned(..) | Input::Resident(_) => None,
    };
    let index = checked_copy.as_ref().map_or(index, |copy| copy.address());
    let index = Indices::<I>(index.cast());
    // SAFETY: `i` is below `length` wherever this is called.
    let place = |i: usize| bounds.place(unsafe { index.read(i) });

    // An index costs its read and its miss, however short its row.
    let step = (CHUNK_BYTES / row_bytes.max(16)).max(1);
    if must_stay_untouched {
        in_chunks(length, step, checkpoint, |chunk| {
            let found = cpu::first_outside(chunk.len(), |i| place(chunk.start + i));
            fail_outside(bounds, chunk.start, found)
        })?;
    }
    in_chunks(length, step, checkpoint, |chunk| {
        // SAFETY: the request's memory is as its shape says, `place` names only rows below `rows`,
        // and the chunk is within the result.
        let found = unsafe {
            let out = out.add(chunk.start * row_bytes);
            let table = Table { source, out, row_bytes, length: chunk.len(), fill };
            cpu::gather(table, |i| place(chunk.start + i))
        };
        fail_outside(bounds, chunk.start, found)
    })?;
    Ok(result)
}

/// `found` is a place in a chunk that begins at `start`.
fn fail_outside<I: Index>(
    bounds: Bounds,
    start: usize,
    found: Option<(usize, I)>,
) -> Result<(), Error> {
    match found {
        None => Ok(()),
        Some((position, index)) => Err(Error::OutOfRange {
            position: (start + position) as u64,
            index: index.into(),
            length: bounds.rows,
        }),
    }
}

/// An index array that its owner may be writing to.
struct Indices<I>(*const I);

// SAFETY: only read, and as `read` says.
unsafe impl<I> Sync for Indices<I> {}

impl<I: Index> Indices<I> {
    /// The index at `i`, read exactly once: the value that is checked is the value that is used.
    ///
    /// # Safety
    /// The array is longer than `i`.
    unsafe fn read(&self, i: usize) -> I {
        // SAFETY: as the caller says. Volatile, so that the compiler can't read it again later.
        unsafe { self.0.add(i).read_volatile() }
    }
}

fn on_device(
    request: &Request,
    device: &Arc<Device>,
    checkpoint: Checkpoint,
) -> Result<Option<Storage>, Error> {
    let shape = &request.shape;
    let rule = Rule {
        length: shape.length as u64,
        rows: shape.bounds.rows,
        row_bytes: shape.row_bytes as u64,
        index_type: shape.index_type as u32,
        mode: shape.bounds.mode as u32,
        wrap_negative: shape.bounds.wrap_negative,
        fill: shape.fill,
    };
    let index = match &request.index {
        Input::Pinned(address, _) => Operand::PageLocked(*address),
        Input::Resident(Storage::PageLocked(memory, _)) => Operand::PageLocked(memory.address()),
        Input::Resident(Storage::Device(memory)) => Operand::Device(memory),
        host => on_host(host, shape.index_bytes())?,
    };
    let source = match (SourceWay::of(request), &request.source) {
        (_, Input::Resident(Storage::Device(memory))) => Operand::Device(memory),
        (SourceWay::Mapped, source) => Operand::PageLocked(host_address(source)?),
        (SourceWay::Upload | SourceWay::Resident, source) => on_host(source, shape.source_bytes())?,
    };
    let target = match request.out {
        Output::Host { address, is_callers } => {
            if !is_callers {
                cpu::advise_huge_pages(address, shape.out_bytes());
            }
            Target::Host { address, stays_untouched: is_callers && shape.bounds.can_fail() }
        }
        Output::Pinned(address, _) => Target::PageLocked(address),
        Output::Resident => Target::Device,
    };
    // SAFETY: the request's memory is as its shape says.
    match unsafe { cuda::gather(device, &rule, source, index, target, checkpoint) }? {
        Gathered::OnHost => Ok(None),
        Gathered::OnDevice(memory) => Ok(Some(Storage::Device(memory))),
        Gathered::Outside(Outside { position, index }) => Err(Error::OutOfRange {
            position,
            index: shape.index_type.decode(index),
            length: rule.rows,
        }),
    }
}

fn host_address(input: &Input) -> Result<*const u8, Error> {
    let apart = || Error::Apart { first: "cpu".to_owned(), second: "a CUDA device".to_owned() };
    input.host_address().ok_or_else(apart)
}

/// An input on the host that is to be copied.
fn on_host(input: &Input, bytes: usize) -> Result<Operand<'_>, Error> {
    let is_page_locked = matches!(input, Input::Pinned(..));
    Ok(Operand::Host { address: host_address(input)?, bytes, is_page_locked })
}

#[cfg(test)]
mod tests {
    use super::super::bounds::Mode;
    use super::super::index::IndexType;
    use super::*;

    /// Gathers float32 by int32 on the CPU into a result of the caller's.
    fn gather(source: &[f32], index: &[i32], mode: Mode, out: &mut [f32]) -> Result<(), Error> {
        let bounds = Bounds { rows: source.len() as u64, mode, wrap_negative: true };
        let request = Request {
            shape: Shape {
                row_bytes: 4,
                length: index.len(),
                index_type: IndexType::I32,
                bounds,
                fill: [0xff; 16],
            },
            source: Input::Borrowed(source.as_ptr().cast()),
            index: Input::Borrowed(index.as_ptr().cast()),
            out: Output::Host { address: out.as_mut_ptr().cast(), is_callers: true },
        };
        run(&request, DeviceChoice::Cpu, &|| true).map(|_| ())
    }

    #[test]
    fn rows_come_out_in_the_order_of_the_index() {
        let mut out = [0.0; 4];
        gather(&[10.0, 20.0, 30.0], &[2, 0, -1, -3], Mode::Raise, &mut out).unwrap();
        assert_eq!(out, [30.0, 10.0, 30.0, 10.0]);
    }

    #[test]
    fn a_bad_index_leaves_the_callers_result_untouched() {
        let mut index = vec![0; 100_000];
        (index[77_777], index[99_999]) = (-4, 3);
        let mut out = vec![-1.0; index.len()];
        let error = gather(&[1.0, 2.0, 3.0], &index, Mode::Raise, &mut out).unwrap_err();
        assert_eq!(
            error.to_string(),
            "index -4 at position 77777 is out of bounds for axis 0 with size 3"
        );
        assert!(out.iter().all(|&value| value == -1.0));
    }

    #[test]
    fn no_rows_and_no_index_is_no_error() {
        for mode in [Mode::Raise, Mode::Wrap, Mode::Clip, Mode::Fill] {
            gather(&[], &[], mode, &mut []).unwrap();
        }
        assert!(gather(&[], &[0], Mode::Clip, &mut [0.0]).is_err());
    }
}
