//! What a gather is, in plain Rust: element and index types, the index rule, a checked request,
//! arrays that live where gathers run, the route of a gather, and the way along it.

mod bounds;
mod chunks;
mod dtype;
mod error;
mod index;
mod plan;
mod request;
mod run;
mod storage;

pub use bounds::{Bounds, Mode};
pub use dtype::Dtype;
pub use error::Error;
pub use index::IndexType;
pub use plan::{DeviceChoice, Route};
pub use request::{Input, Output, Request, Shape, ShapeError, result_length, rows_of};
pub use run::run;
pub use storage::{Placement, Storage};
