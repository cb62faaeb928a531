//! How a gather can fail once its arguments are known to be sound.

use crate::cuda;

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// numpy's words, with the position added.
    #[error("index {index} at position {position} is out of bounds for axis 0 with size {length}")]
    OutOfRange {
        /// The first such place in the index array.
        position: u64,
        /// The index that stands there.
        index: i128,
        /// Rows of the source.
        length: u64,
    },
    #[error("{bytes} bytes of host memory could not be had")]
    OutOfHostMemory { bytes: usize },
    #[error("Expected arrays and device in one place but received {first} and {second}")]
    Apart { first: String, second: String },
    /// A checkpoint said not to go on.
    #[error("stopped between two chunks")]
    Stopped,
    #[error(transparent)]
    Cuda(cuda::Error),
}

impl From<cuda::Error> for Error {
    fn from(error: cuda::Error) -> Error {
        match error {
            cuda::Error::Stopped => Error::Stopped,
            other => Error::Cuda(other),
        }
    }
}
