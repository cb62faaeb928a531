//! The arguments of a gather, checked: source, index, options, and how they hang together.

use super::failure::Failure;
use super::options::Options;
use super::resident_array::{Kind, ResidentArray};
use super::typed_array::{Class, Memory, Realm, View};
use crate::gather::{self, Bounds, DeviceChoice, IndexType, Shape, Storage};
use napi::bindgen_prelude::Unknown;

/// An array that a gather reads.
pub enum Array<'env> {
    Host(View<'env>),
    Resident(Storage, Kind),
}

impl<'env> Array<'env> {
    /// The array that the argument `name` must be, of a class that `accepts` takes; `expected` says
    /// which in the error.
    fn of(
        value: Unknown<'env>,
        name: &'static str,
        expected: &str,
        accepts: impl Fn(Class) -> bool,
        realm: &Realm<'env>,
    ) -> Result<Array<'env>, Failure> {
        if Class::of(value).is_some() {
            return View::of(value, name, expected, accepts, realm).map(Array::Host);
        }
        match ResidentArray::of(value, name)? {
            Some((storage, kind)) if accepts(kind.class) => Ok(Array::Resident(storage, kind)),
            Some((_, kind)) => {
                let received = format!("a DeviceArray of {}", kind.class.dtype().name());
                Err(Failure::invalid_type(name, expected, received))
            }
            None => View::of(value, name, expected, accepts, realm).map(Array::Host),
        }
    }

    pub fn class(&self) -> Class {
        match self {
            Array::Host(view) => view.class,
            Array::Resident(_, kind) => kind.class,
        }
    }

    pub fn length(&self) -> usize {
        match self {
            Array::Host(view) => view.length,
            Array::Resident(_, kind) => kind.length,
        }
    }
}

/// What a call asks for. Reading it may run code of the caller's, so its memory comes after.
pub struct Arguments<'env> {
    pub source: Array<'env>,
    pub index: Array<'env>,
    pub shape: Shape,
    /// Of the result.
    pub result: Kind,
    /// The caller's own array for the result.
    pub out: Option<View<'env>>,
    /// Whether the result is to stay where the gather runs.
    pub stays: bool,
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
        let expected = "a typed array or DeviceArray";
        let source = Array::of(source, "source", expected, |_| true, realm)?;
        let is_integer = |class: Class| IndexType::of(class.dtype()).is_some();
        let expected = "a typed array or DeviceArray of integers (Int8Array to BigUint64Array)";
        let index = Array::of(index, "index", expected, is_integer, realm)?;

        let class = source.class();
        let row_length = options.row_length.unwrap_or(match &source {
            Array::Host(_) => 1,
            Array::Resident(_, kind) => kind.row_length,
        });
        let rows = gather::rows_of(source.length(), row_length)?;
        let length = gather::result_length(index.length(), row_length)?;
        let shape = Shape {
            row_bytes: row_length * class.dtype().size(),
            length: index.length(),
            index_type: IndexType::of(index.class().dtype()).expect("the class was just accepted"),
            bounds: Bounds { rows, mode: options.mode, wrap_negative: options.wrap_negative },
            fill: options.fill(class, realm)?,
        };
        let out = match options.out {
            Some(out) => Some(check_out(out, class, length, realm)?),
            None => None,
        };
        // Where there is a resident array, it says where the gather runs; only a device that the
        // caller names can contradict it.
        let are_on_host = matches!((&source, &index), (Array::Host(_), Array::Host(_)));
        let device = match are_on_host {
            true => options.device_for_host()?,
            false => options.device.unwrap_or(DeviceChoice::Default),
        };
        let stays = options.stays;
        let result = Kind { class, length, row_length };
        Ok(Arguments { source, index, shape, result, out, stays, device })
    }
}

/// The caller's own array for the result.
fn check_out<'env>(
    out: Unknown<'env>,
    class: Class,
    length: usize,
    realm: &Realm<'env>,
) -> Result<View<'env>, Failure> {
    let expected = format!("{} of length {length}", class.with_article());
    let out = View::of(out, "out", &expected, |of| of == class, realm)?;
    if out.length != length {
        return Err(Failure::InvalidValue(format!(
            "Expected {expected} for out (index.length * rowLength) but received one of length {}",
            out.length,
        )));
    }
    Ok(out)
}

/// Where the arrays of a call are on the host, as far as they are there. No code of the caller's may
/// run between this and their use.
pub struct Memories {
    pub source: Option<Memory>,
    pub index: Option<Memory>,
    pub result: Option<Memory>,
}

impl Memories {
    /// `result` is the caller's `out`, or an array that was made for the call.
    pub fn of(call: &Arguments, result: Option<&View>) -> Result<Memories, Failure> {
        let memory = |array: &Array| match array {
            Array::Host(view) => view.memory().map(Some),
            Array::Resident(..) => Ok(None),
        };
        let found = Memories {
            source: memory(&call.source)?,
            index: memory(&call.index)?,
            result: result.map(View::memory).transpose()?,
        };
        for (name, input) in [("source", &found.source), ("index", &found.index)] {
            if let (Some(result), Some(input)) = (&found.result, input)
                && result.overlaps(input)
            {
                return Err(Failure::InvalidValue(format!(
                    "Expected memory of its own for out but received one that overlaps {name}",
                )));
            }
        }
        Ok(found)
    }
}
