//! What one job at a time works with on a device.

use super::device::Device;
use super::error::{During, Error};
use super::memory::Memory;
use super::staging::Ring;
use cudarc::driver::{result, sys};
use std::sync::Arc;

/// A stream of its own, kept from job to job, and the blocks that the current job has taken.
pub struct Lane {
    pub stream: sys::CUstream,
    done: sys::CUevent,
    /// Held until the job is over and nothing runs any more: a block that went back to the pool
    /// earlier could be handed to another job while this one's kernel still uses it.
    taken: Vec<Arc<Memory>>,
    /// Where small answers come down to: here rather than on a stack, since a copy that has begun
    /// may outlive the function that began it.
    pub answer: Box<Answer>,
    staging: Staging,
}

/// The ring for large copies, made with the first of them.
enum Staging {
    NotYet,
    Ring(Ring),
    /// Page-locked memory could not be had: the driver's own way has to do.
    None,
}

/// Copies of this many bytes and more go by way of the ring.
const STAGED_BYTES: usize = 1 << 20;

#[derive(Default)]
pub struct Answer {
    pub first_outside: u64,
    pub index: [u8; 8],
}

// SAFETY: the driver's handles may be used from any thread; a lane is used by one at a time.
unsafe impl Send for Lane {}

impl Lane {
    /// The device's context is current.
    pub fn new() -> Result<Lane, Error> {
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)
            .during("cuStreamCreate")?;
        // A blocking wait: a plain one spins a core, which the event loop may need.
        let flags = sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC;
        let done = result::event::create(flags).during("cuEventCreate").inspect_err(|_| {
            // SAFETY: the stream is ours and has no work.
            let _ = unsafe { result::stream::destroy(stream) };
        })?;
        Ok(Lane {
            stream,
            done,
            taken: Vec::new(),
            answer: Box::default(),
            staging: Staging::NotYet,
        })
    }

    /// A block for this job, or for longer where the caller keeps it.
    pub fn take(&mut self, device: &Arc<Device>, bytes: usize) -> Result<Arc<Memory>, Error> {
        let memory = Arc::new(Memory::new(device, bytes)?);
        self.taken.push(Arc::clone(&memory));
        Ok(memory)
    }

    /// Keeps a block for as long as this job runs, whatever becomes of it elsewhere.
    pub fn keep(&mut self, memory: &Arc<Memory>) {
        self.taken.push(Arc::clone(memory));
    }

    fn ring(&mut self, bytes: usize) -> Option<&mut Ring> {
        if bytes < STAGED_BYTES {
            return None;
        }
        if let Staging::NotYet = self.staging {
            self.staging = Ring::new().map_or(Staging::None, Staging::Ring);
        }
        match &mut self.staging {
            Staging::Ring(ring) => Some(ring),
            Staging::NotYet | Staging::None => None,
        }
    }

    /// Begins a copy of `bytes` bytes from the host to `offset` in a block.
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

    /// Begins a copy of the first `bytes` bytes of a block to memory of the lane's own, where there
    /// is room for them: they are there once the lane has been waited for, and until its next copy.
    pub fn begin_read(&mut self, from: &Memory, bytes: usize) -> Result<Option<*const u8>, Error> {
        let stream = self.stream;
        match self.ring(bytes) {
            Some(ring) => ring.begin_download(from.place(0, bytes), bytes, stream),
            None => Ok(None),
        }
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
        // SAFETY: event and stream are ours and alive.
        unsafe {
            result::event::record(self.done, self.stream).during("cuEventRecord")?;
            result::event::synchronize(self.done).during("cuEventSynchronize")
        }
    }

    /// Lets the job's blocks go; nothing runs on the lane any more.
    pub fn finish(&mut self) {
        self.taken.clear();
    }
}
