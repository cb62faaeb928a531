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
mod limits;
mod memory;
mod page_locked;
mod pool;
mod staging;
mod transfer;

pub use device::{Device, Properties};
pub use driver::{Driver, driver};
pub use error::Error;
pub use gather::{Gathered, Operand, Outside, Target, gather};
pub use kernels::Rule;
pub use limits::{device_usages, kept_limit, page_locked_usage, set_kept_limits};
pub use memory::Memory;
pub use page_locked::{Lent, PageLocked};
pub use pool::Usage;
pub use transfer::{download, overwrite, upload};
