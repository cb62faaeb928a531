//! The checks of a request against plain arithmetic that can't overflow.
#![no_main]

use cugather::internals::{ShapeError, result_length, rows_of};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u64, u64, std::num::NonZeroU64)| {
    let (source_length, length, row_length) =
        (input.0 as usize, input.1 as usize, input.2.get() as usize);
    match rows_of(source_length, row_length) {
        Ok(rows) => assert_eq!(u128::from(rows) * row_length as u128, source_length as u128),
        Err(error) => {
            assert_eq!(error, ShapeError::RaggedSource { source_length, row_length });
            assert_ne!(source_length % row_length, 0);
        }
    }
    let elements = length as u128 * row_length as u128;
    match result_length(length, row_length) {
        Ok(result) => assert_eq!(result as u128, elements),
        Err(_) => assert!(elements >= 1 << 53),
    }
});
