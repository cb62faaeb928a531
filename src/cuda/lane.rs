//! All that one gather at a time needs on the device, kept from call to call.

use super::error::{During, Error};
use super::memory::Buffer;
use cudarc::driver::{result, sys};

/// A stream of its own and the blocks that it works on.
pub struct Lane {
    pub stream: sys::CUstream,
    done: sys::CUevent,
    pub source: Buffer,
    pub index: Buffer,
    pub out: Buffer,
    pub first_outside: Buffer,
    /// Where small answers come down to: here rather than on a stack, since a copy that has begun
    /// may outlive the function that began it.
    pub answer: Box<Answer>,
}

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
            source: Buffer::EMPTY,
            index: Buffer::EMPTY,
            out: Buffer::EMPTY,
            first_outside: Buffer::EMPTY,
            answer: Box::default(),
        })
    }

    /// Waits for all that was begun on the stream.
    pub fn wait(&self) -> Result<(), Error> {
        // SAFETY: event and stream are ours and alive.
        unsafe {
            result::event::record(self.done, self.stream).during("cuEventRecord")?;
            result::event::synchronize(self.done).during("cuEventSynchronize")
        }
    }

    /// Makes room for the arrays of one gather.
    pub fn reserve(&mut self, source: usize, index: usize, out: usize) -> Result<(), Error> {
        self.first_outside.reserve(size_of::<u64>())?;
        // An empty source still gets an address, so that the kernel's arguments are whole.
        self.source.reserve(source.max(1))?;
        self.index.reserve(index)?;
        self.out.reserve(out)
    }

    /// Gives the lane's memory back, keeping the stream.
    pub fn release_memory(&mut self) -> Result<(), Error> {
        self.source.free()?;
        self.index.free()?;
        self.out.free()?;
        self.first_outside.free()
    }
}
