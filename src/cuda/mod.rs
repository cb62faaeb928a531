//! The gather on a CUDA device: plain bytes and numbers in, no idea of JavaScript.
//!
//! The driver's library is found at the first call, never at load, and nothing but the driver is
//! needed: the kernels are PTX that it compiles. CUDA's own names and results are explained in the
//! [driver API reference](https://docs.nvidia.com/cuda/cuda-driver-api/).

mod device;
mod driver;
mod error;
mod gather;
mod kernels;
mod lane;
mod memory;
mod staging;
mod transfer;

pub use device::{Device, Properties};
pub use driver::{Driver, driver};
pub use error::Error;
pub use gather::{Gathered, Operand, Target, gather};
pub use kernels::Rule;
pub use memory::Memory;
pub use transfer::{download, overwrite, upload};
