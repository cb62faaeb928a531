//! What a gather is, in plain Rust: element and index types, the index rule, a checked request,
//! the route that it takes, and the way along that route.

mod bounds;
mod dtype;
mod error;
mod index;
mod plan;
mod request;
mod run;

pub use bounds::{Bounds, Mode};
pub use dtype::Dtype;
pub use error::Error;
pub use index::IndexType;
pub use plan::{DeviceChoice, Route, Traffic};
pub use request::{Input, Output, Request, Shape, ShapeError, result_length, rows_of};
pub use run::run;
