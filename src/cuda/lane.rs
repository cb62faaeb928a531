//! What one job at a time works with on a device.

use super::device::Device;
use super::error::{During, Error};
use super::memory::Memory;
use super::page_locked::PageLocked;
use super::staging::Ring;
use cudarc::driver::{result, sys};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A stream of its own, kept from job to job, and the memory that the current job has taken.
pub struct Lane {
    pub stream: sys::CUstream,
    done: sys::CUevent,
    /// Held until the job is over and nothing runs any more: a block that went back to the pool
    /// earlier could be handed to another job while this one's kernel still uses it.
    taken: Vec<Arc<Memory>>,
    /// Where kernels leave their answer, with no copy; and where small copies come down to.
    answer: PageLocked,
    /// For large copies, made with the first of them.
    ring: Option<Ring>,
}

/// Copies of this many bytes and more go by way of the ring.
const STAGED_BYTES: usize = 1 << 20;

/// How long a wait looks again and again before it sleeps: to be woken costs more than a small
/// gather takes, and the thread is one of libuv's or ours, not the event loop's.
const LOOKS_FOR: Duration = Duration::from_micros(500);

/// Bytes that are copied from page-locked memory between two checkpoints: some milliseconds' worth.
const CHUNK_BYTES: usize = 128 << 20;

/// Where a lane's answers stand in its block.
#[repr(C)]
struct Answer {
    first_outside: u64,
    index: [u8; 8],
}

// SAFETY: the driver's handles may be used from any thread; a lane is used by one at a time.
unsafe impl Send for Lane {}

impl Lane {
    /// The device's context is current.
    pub fn new() -> Result<Lane, Error> {
        let answer = PageLocked::new(size_of::<Answer>())?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)
            .during("cuStreamCreate")?;
        // For the long waits, where a spinning core may be the event loop's.
        let flags = sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC;
        let done = result::event::create(flags).during("cuEventCreate").inspect_err(|_| {
            // SAFETY: the stream is ours and has no work.
            let _ = unsafe { result::stream::destroy(stream) };
        })?;
        Ok(Lane { stream, done, taken: Vec::new(), answer, ring: None })
    }

    /// A block for this job, or for longer where the caller keeps it.
    pub fn take(&mut self, device: &Arc<Device>, bytes: usize) -> Result<Arc<Memory>, Error> {
        let memory = Arc::new(Memory::new(device, bytes)?);
        self.taken.push(Arc::clone(&memory));
        Ok(memory)
    }

    fn answer(&self) -> *mut Answer {
        self.answer.address().cast()
    }

    /// The address at which a kernel is to leave the first position that is outside, set to the
    /// greatest number.
    pub fn asked(&mut self) -> sys::CUdeviceptr {
        // SAFETY: the block is ours, and nothing runs on the lane. Volatile, here and below, since
        // the device is on the other side.
        unsafe {
            let first_outside = &raw mut (*self.answer()).first_outside;
            first_outside.write_volatile(u64::MAX);
            first_outside as sys::CUdeviceptr
        }
    }

    /// What a kernel has left there, once the lane has been waited for.
    pub fn first_outside(&self) -> Option<u64> {
        // SAFETY: the block is ours and holds the answer.
        let first = unsafe { (&raw const (*self.answer()).first_outside).read_volatile() };
        (first != u64::MAX).then_some(first)
    }

    /// The index of `size` bytes at `position` of a block, with zeros behind.
    pub fn index_at(
        &mut self,
        index: &Memory,
        position: u64,
        size: usize,
    ) -> Result<[u8; 8], Error> {
        // SAFETY: the block holds the index, and the answer has room for the widest.
        unsafe {
            let answer = &raw mut (*self.answer()).index;
            answer.write_volatile([0; 8]);
            index.read(position as usize * size, answer.cast(), size, self.stream)?;
            self.wait()?;
            Ok(answer.read_volatile())
        }
    }

    /// The ring with its memory; `None` where the copy is too small for it, or where no page-locked
    /// memory can be had and the driver's own way has to do.
    fn ring(&mut self, bytes: usize) -> Option<&mut Ring> {
        if bytes < STAGED_BYTES {
            return None;
        }
        if self.ring.is_none() {
            self.ring = Some(Ring::new().ok()?);
        }
        let ring = self.ring.as_mut()?;
        ring.fill().ok()?;
        Some(ring)
    }

    /// Begins a copy of `bytes` bytes from the host to `offset` in a block. `between` is called
    /// between the chunks of a long one.
    ///
    /// # Safety
    /// `from` is readable for `bytes` bytes until the lane has been waited for.
    pub unsafe fn write(
        &mut self,
        to: &Memory,
        offset: usize,
        from: *const u8,
        bytes: usize,
        between: &dyn Fn() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let stream = self.stream;
        // SAFETY: as the caller says.
        unsafe {
            match self.ring(bytes) {
                Some(ring) => ring.upload(from, to.place(offset, bytes), bytes, stream, between),
                None => to.write(offset, from, bytes, stream),
            }
        }
    }

    /// As [`Lane::write`], from page-locked memory, which needs no way around.
    ///
    /// # Safety
    /// As for [`Lane::write`].
    pub unsafe fn write_page_locked(
        &mut self,
        to: &Memory,
        offset: usize,
        from: *const u8,
        bytes: usize,
        between: &dyn Fn() -> Result<(), Error>,
    ) -> Result<(), Error> {
        for at in (0..bytes).step_by(CHUNK_BYTES) {
            if at > 0 {
                self.wait()?;
                between()?;
            }
            let size = CHUNK_BYTES.min(bytes - at);
            // SAFETY: as the caller says.
            unsafe { to.write(offset + at, from.add(at), size, self.stream)? };
        }
        Ok(())
    }

    /// Copies the first `bytes` bytes of a block to the host, and waits for all of the lane.
    ///
    /// # Safety
    /// `to` is writable for `bytes` bytes until the call returns, and after a failure until the
    /// device has been waited for.
    pub unsafe fn read(
        &mut self,
        from: &Memory,
        to: *mut u8,
        bytes: usize,
        between: &dyn Fn() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let stream = self.stream;
        // SAFETY: as the caller says.
        unsafe {
            match self.ring(bytes) {
                Some(ring) => ring.download(from.place(0, bytes), to, bytes, stream, between)?,
                None => from.read(0, to, bytes, stream)?,
            }
        }
        self.wait()
    }

    /// Waits for all that was begun on the stream.
    pub fn wait(&self) -> Result<(), Error> {
        let start = Instant::now();
        loop {
            // SAFETY: the stream is ours and alive.
            match unsafe { sys::cuStreamQuery(self.stream) } {
                sys::CUresult::CUDA_ERROR_NOT_READY if start.elapsed() < LOOKS_FOR => {
                    std::thread::yield_now();
                }
                sys::CUresult::CUDA_ERROR_NOT_READY => break,
                other => return other.result().during("cuStreamQuery"),
            }
        }
        // SAFETY: event and stream are ours and alive.
        unsafe {
            result::event::record(self.done, self.stream).during("cuEventRecord")?;
            result::event::synchronize(self.done).during("cuEventSynchronize")
        }
    }

    /// Lets the job's memory go; nothing runs on the lane any more.
    pub fn finish(&mut self) {
        self.taken.clear();
        if let Some(ring) = &mut self.ring {
            ring.empty();
        }
    }
}
