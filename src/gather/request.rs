//! A gather whose arguments have been checked, ready for any thread.

use super::bounds::Bounds;
use super::index::IndexType;
use crate::cpu::Scratch;

/// How source, index and result hang together.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Bytes of one row of the source: element size × row length; not 0.
    pub row_bytes: usize,
    /// Indices, and rows of the result.
    pub length: usize,
    pub index_type: IndexType,
    pub bounds: Bounds,
    /// The fill value's bytes, repeated to 16.
    pub fill: [u8; 16],
}

impl Shape {
    pub fn source_bytes(&self) -> usize {
        self.bounds.rows as usize * self.row_bytes
    }

    pub fn index_bytes(&self) -> usize {
        self.length * self.index_type.size()
    }

    pub fn out_bytes(&self) -> usize {
        self.length * self.row_bytes
    }
}

/// Memory that a gather reads.
pub enum Input {
    /// The caller's own, which the caller keeps alive and may change.
    Borrowed(*const u8),
    /// A copy taken when the call was made.
    Copied(Scratch),
}

impl Input {
    pub fn as_ptr(&self) -> *const u8 {
        match self {
            Input::Borrowed(address) => *address,
            Input::Copied(copy) => copy.as_ptr(),
        }
    }
}

/// Memory that a gather writes.
pub struct Output {
    pub address: *mut u8,
    /// Whether the caller holds it, so that it has to stay untouched where the gather fails.
    pub is_callers: bool,
}

/// One gather. The memory it names is at least as long as its shape says, aligned for its
/// elements, and stays until the gather is over: whoever makes a request sees to that.
pub struct Request {
    pub shape: Shape,
    pub source: Input,
    pub index: Input,
    pub out: Output,
}

// SAFETY: the addresses are followed by one gather at a time, under the terms above.
unsafe impl Send for Request {}
