//! `cugather`: `result[i] = source[index[i]]` for Node.js, on the GPU, off the event loop.
//!
//! The house has three floors, and a file imports only from its own floor and those below:
//!
//! - [`binding`], the top floor, the only one that knows JavaScript: arguments, options, errors,
//!   tasks, and the queue in which they wait for one of libuv's threads;
//! - [`gather`], plain Rust: element and index types, the index rule, a checked request, the route
//!   that it takes;
//! - [`cpu`] and [`cuda`], the ground floor, bytes and numbers alone: the gather on host memory,
//!   and the one on a CUDA device with its kernels in `kernels/gather.cu`. [`checkpoint`] is what
//!   long work on any floor asks between its chunks.
//!
//! `index.js` wraps the binding in an async function: there errors get their JavaScript stack.

// Under test nothing is registered with Node, so nothing calls the binding.
#![cfg_attr(test, allow(dead_code))]

mod binding;
mod checkpoint;
mod cpu;
mod cuda;
mod gather;

/// For the targets in `fuzz/` and the benchmarks in `benches/`, which are crates of their own.
#[cfg(any(fuzzing, feature = "internals"))]
pub mod internals {
    pub use crate::gather::*;
}
