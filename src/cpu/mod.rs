//! The gather on host memory: rows of bytes, copied by many threads.

mod copy;
mod gather;
mod huge_pages;
mod scratch;
mod threads;

pub use copy::{copy, zero};
pub use gather::{Place, Table, first_outside, gather};
pub use huge_pages::advise as advise_huge_pages;
pub use scratch::Scratch;
pub use threads::{Claim, map};
