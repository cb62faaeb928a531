//! The arguments of a gather, checked: source, index, options, and how they hang together.

use super::failure::Failure;
use super::options::Options;
use super::typed_array::{Class, Memory, Realm, View};
use crate::gather::{self, Bounds, DeviceChoice, IndexType, Shape};
use napi::bindgen_prelude::Unknown;

/// What a call asks for. Reading it may run code of the caller's, so its memory comes after.
pub struct Arguments<'env> {
    pub source: View<'env>,
    pub index: View<'env>,
    pub shape: Shape,
    /// Elements of the result.
    pub result_length: usize,
    /// The caller's own array for the result.
    pub out: Option<View<'env>>,
    pub device: DeviceChoice,
}

impl<'env> Arguments<'env> {
    pub fn read(
        source: Unknown<'env>,
        index: Unknown<'env>,
        options: Unknown<'env>,
        default_device: Unknown<'env>,
        realm: &Realm<'env>,
    ) -> Result<Arguments<'env>, Failure> {
        let options = Options::read(options, default_device)?;
        let source = View::of(source, "source", "a typed array", |_| true, realm)?;
        let is_integer = |class: Class| IndexType::of(class.dtype()).is_some();
        let expected = "a typed array of integers (Int8Array to BigUint64Array)";
        let index = View::of(index, "index", expected, is_integer, realm)?;

        let rows = gather::rows_of(source.length, options.row_length)?;
        let result_length = gather::result_length(index.length, options.row_length)?;
        let shape = Shape {
            row_bytes: options.row_length * source.class.dtype().size(),
            length: index.length,
            index_type: IndexType::of(index.class.dtype()).expect("the class was just accepted"),
            bounds: Bounds { rows, mode: options.mode, wrap_negative: options.wrap_negative },
            fill: options.fill(source.class, realm)?,
        };
        let out = match options.out {
            Some(out) => Some(check_out(out, result_length, &source, realm)?),
            None => None,
        };
        Ok(Arguments { source, index, shape, result_length, out, device: options.device })
    }
}

/// The caller's own array for the result.
fn check_out<'env>(
    out: Unknown<'env>,
    length: usize,
    source: &View,
    realm: &Realm<'env>,
) -> Result<View<'env>, Failure> {
    let expected = format!("{} of length {length}", source.class.with_article());
    let out = View::of(out, "out", &expected, |class| class == source.class, realm)?;
    if out.length != length {
        return Err(Failure::InvalidValue(format!(
            "Expected {expected} for out (index.length * rowLength) but received one of length {}",
            out.length,
        )));
    }
    Ok(out)
}

/// Where the arrays of a call are. No code of the caller's may run between this and their use.
pub struct Memories {
    pub source: Memory,
    pub index: Memory,
    pub result: Memory,
}

impl Memories {
    /// `result` is the caller's `out`, or an array that was made for the call.
    pub fn of(call: &Arguments, result: &View) -> Result<Memories, Failure> {
        let found = Memories {
            source: call.source.memory()?,
            index: call.index.memory()?,
            result: result.memory()?,
        };
        for (name, input) in [("source", &found.source), ("index", &found.index)] {
            if found.result.overlaps(input) {
                return Err(Failure::InvalidValue(format!(
                    "Expected memory of its own for out but received one that overlaps {name}",
                )));
            }
        }
        Ok(found)
    }
}
