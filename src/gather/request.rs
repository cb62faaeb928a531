//! A gather whose arguments have been checked, ready for any thread.

use super::bounds::Bounds;
use super::index::IndexType;
use super::storage::Storage;
use crate::cpu::Scratch;
use crate::cuda::Lent;
use std::sync::Arc;

/// Why source, index and row length do not make a gather.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    #[error(
        "Expected a source of whole rows but received one of length {source_length}, which is not \
         a multiple of rowLength {row_length}"
    )]
    RaggedSource { source_length: usize, row_length: usize },
    #[error(
        "The result would have {length} rows of {row_length} elements, more than a typed array can \
         hold"
    )]
    ResultTooLarge { length: usize, row_length: usize },
}

/// Rows of a source of `source_length` elements; `row_length` is not 0.
pub fn rows_of(source_length: usize, row_length: usize) -> Result<u64, ShapeError> {
    match source_length.is_multiple_of(row_length) {
        true => Ok((source_length / row_length) as u64),
        false => Err(ShapeError::RaggedSource { source_length, row_length }),
    }
}

/// Elements of the result for `length` indices.
pub fn result_length(length: usize, row_length: usize) -> Result<usize, ShapeError> {
    // Typed arrays stay below 2^53 elements of at most 8 bytes whatever the runtime, so that no
    // size in bytes overflows later.
    const MOST: usize = (1 << 53) - 1;
    length
        .checked_mul(row_length)
        .filter(|&elements| elements <= MOST)
        .ok_or(ShapeError::ResultTooLarge { length, row_length })
}

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
    /// The caller's own in page-locked memory, which is kept alive here.
    Pinned(*const u8, Arc<Lent>),
    /// A copy taken when the call was made.
    Copied(Scratch),
    /// An array that lives where gathers run.
    Resident(Storage),
}

impl Input {
    /// Where it is on the host; `None` for one that is on a device.
    pub fn host_address(&self) -> Option<*const u8> {
        match self {
            Input::Borrowed(address) | Input::Pinned(address, _) => Some(*address),
            Input::Copied(copy) => Some(copy.address()),
            Input::Resident(storage) => storage.host_address().map(|address| address.cast_const()),
        }
    }
}

/// Where the result goes.
pub enum Output {
    /// Into memory of the host.
    Host {
        address: *mut u8,
        /// Whether the caller holds it, so that it has to stay untouched where the gather fails.
        is_callers: bool,
    },
    /// Into page-locked memory of the caller's.
    Pinned(*mut u8, Arc<Lent>),
    /// Into a new array that lives where the gather runs.
    Resident,
}

/// One gather. The memory it names is at least as long as its shape says, an index aligned for its
/// elements, and stays until the gather is over: whoever makes a request sees to that.
pub struct Request {
    pub shape: Shape,
    pub source: Input,
    pub index: Input,
    pub out: Output,
}

impl Request {
    /// Bytes of it that may have to be moved: a resident source stays where it is.
    pub fn moved_bytes(&self) -> usize {
        let of = |input: &Input, bytes: usize| match input {
            Input::Resident(_) => 0,
            Input::Borrowed(_) | Input::Pinned(..) | Input::Copied(_) => bytes,
        };
        let out = match self.out {
            Output::Host { .. } | Output::Pinned(..) => self.shape.out_bytes(),
            Output::Resident => 0,
        };
        of(&self.source, self.shape.source_bytes())
            .saturating_add(of(&self.index, self.shape.index_bytes()))
            .saturating_add(out)
    }
}

// SAFETY: the addresses are followed by one gather at a time, under the terms above.
unsafe impl Send for Request {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_whole_rows() {
        assert_eq!(rows_of(45, 5), Ok(9));
        assert_eq!(rows_of(0, 5), Ok(0));
        assert!(rows_of(44, 5).is_err() && rows_of(3, 1 << 40).is_err());
    }

    #[test]
    fn a_result_too_large_to_count_is_refused() {
        assert_eq!(result_length(0, usize::MAX), Ok(0));
        assert_eq!(result_length(1 << 26, 1 << 26), Ok(1 << 52));
        assert!(result_length(1 << 27, 1 << 26).is_err());
        assert!(result_length(1 << 40, 1 << 40).is_err());
    }
}
