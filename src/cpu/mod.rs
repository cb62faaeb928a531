//! The gather on host memory: rows of bytes, copied by as many threads as there are cores.

mod copy;
mod gather;
mod scratch;
mod threads;

pub use copy::copy;
pub use gather::{Place, Table, first_outside, gather};
pub use scratch::Scratch;
