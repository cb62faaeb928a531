//! Typed arrays: their classes, and their memory.

use super::describe::describe;
use super::failure::Failure;
use crate::gather::Dtype;
use napi::bindgen_prelude::{FnArgs, Function, Unknown};
use napi::{JsValue, sys};
use std::ffi::c_void;

/// A class of typed arrays, by Node-API's number for it (`napi_typedarray_type`); `index.js` has
/// the constructors in the same order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class(usize);

const CLASSES: [(&str, Dtype); 12] = [
    ("Int8Array", Dtype::Int8),
    ("Uint8Array", Dtype::Uint8),
    ("Uint8ClampedArray", Dtype::Uint8Clamped),
    ("Int16Array", Dtype::Int16),
    ("Uint16Array", Dtype::Uint16),
    ("Int32Array", Dtype::Int32),
    ("Uint32Array", Dtype::Uint32),
    ("Float32Array", Dtype::Float32),
    ("Float64Array", Dtype::Float64),
    ("BigInt64Array", Dtype::BigInt64),
    ("BigUint64Array", Dtype::BigUint64),
    ("Float16Array", Dtype::Float16),
];

impl Class {
    /// The class of a value and its number of elements, or `None` where it is no typed array. Goes
    /// by what the value is, not by its prototype: views of other realms count, forgeries don't.
    pub fn of(value: Unknown) -> Option<(Class, usize)> {
        let info = Info::of(value)?;
        Some((info.class, info.length))
    }

    pub fn name(self) -> &'static str {
        CLASSES[self.0].0
    }

    /// "a Float32Array", "an Int8Array".
    pub fn with_article(self) -> String {
        let article = if self.name().starts_with('I') { "an" } else { "a" };
        format!("{article} {}", self.name())
    }

    pub fn dtype(self) -> Dtype {
        CLASSES[self.0].1
    }

    pub fn is_bigint(self) -> bool {
        matches!(self.dtype(), Dtype::BigInt64 | Dtype::BigUint64)
    }
}

/// What Node-API says of a typed array.
struct Info {
    class: Class,
    length: usize,
    data: *mut c_void,
    buffer: sys::napi_value,
}

impl Info {
    fn of(value: Unknown) -> Option<Info> {
        let env = value.value().env;
        let mut is_typed_array = false;
        // SAFETY: `env` and `value` belong together, and the out parameters are live. A status
        // other than ok leaves `is_typed_array` false.
        unsafe { sys::napi_is_typedarray(env, value.raw(), &mut is_typed_array) };
        if !is_typed_array {
            return None;
        }
        // Node versions whose Node-API has no number for Float16Array leave the type as it was.
        const FLOAT16: sys::napi_typedarray_type = CLASSES.len() as i32 - 1;
        let (mut class, mut length, mut offset) = (FLOAT16, 0, 0);
        let (mut data, mut buffer) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: as above.
        let status = unsafe {
            sys::napi_get_typedarray_info(
                env,
                value.raw(),
                &mut class,
                &mut length,
                &mut data,
                &mut buffer,
                &mut offset,
            )
        };
        let class = usize::try_from(class).ok().filter(|&class| class < CLASSES.len())?;
        (status == sys::Status::napi_ok).then_some(Info {
            class: Class(class),
            length,
            data,
            buffer,
        })
    }
}

/// A typed array and its memory. The memory is there while the array is alive and its buffer is
/// neither transferred nor shrunk.
#[derive(Clone, Copy)]
pub struct View<'env> {
    pub value: Unknown<'env>,
    pub class: Class,
    /// Elements.
    pub length: usize,
    /// The first element, its offset in the buffer counted in. May be null where there is none.
    pub data: *mut u8,
}

impl<'env> View<'env> {
    /// The view that the argument `name` must be, of a class that `accepts` takes; `expected` says
    /// which in the error.
    pub fn of(
        value: Unknown<'env>,
        name: &'static str,
        expected: &str,
        accepts: impl Fn(Class) -> bool,
        realm: &Realm<'env>,
    ) -> Result<View<'env>, Failure> {
        let info = Info::of(value)
            .filter(|info| accepts(info.class))
            .ok_or_else(|| Failure::invalid_type(name, expected, describe(value)))?;
        let env = value.value().env;
        // SAFETY: the buffer was just returned for this value.
        let buffer = unsafe { Unknown::from_raw_unchecked(env, info.buffer) };
        if realm.is_resizable.call(buffer)? {
            let received = format!(
                "{} on a resizable or growable buffer, which could change under the gather: use a \
                 buffer of fixed length",
                info.class.with_article(),
            );
            return Err(Failure::invalid_type(name, expected, received));
        }
        let mut detached = false;
        // SAFETY: as above; a SharedArrayBuffer is never detached and leaves this false.
        unsafe { sys::napi_is_detached_arraybuffer(env, info.buffer, &mut detached) };
        if detached {
            let received = format!(
                "a detached {} (its buffer was transferred, and its memory with it)",
                info.class.name(),
            );
            return Err(Failure::invalid_type(name, expected, received));
        }
        Ok(View { value, class: info.class, length: info.length, data: info.data.cast() })
    }

    pub fn bytes(&self) -> usize {
        self.length * self.class.dtype().size()
    }

    /// Whether the two share a byte of memory.
    pub fn overlaps(&self, other: &View) -> bool {
        let (a, b) = (self.data as usize, other.data as usize);
        let both_hold_some = self.length > 0 && other.length > 0;
        both_hold_some && a < b + other.bytes() && b < a + self.bytes()
    }
}

/// What `index.js` lends us of the realm that it runs in, so that results are instances of the
/// caller's own classes where a test runner or `vm` has realms of its own.
pub struct Realm<'env> {
    /// `new classes[class](length)`
    pub create: Function<'env, FnArgs<(u32, f64)>, Unknown<'env>>,
    /// Whether an ArrayBuffer is resizable or a SharedArrayBuffer growable.
    pub is_resizable: Function<'env, Unknown<'env>, bool>,
}

impl<'env> Realm<'env> {
    /// A new typed array of zeros.
    pub fn create(&self, class: Class, length: usize) -> Result<View<'env>, Failure> {
        let too_large = |_| {
            let bytes = length as u128 * class.dtype().size() as u128;
            Failure::OutOfRange(format!(
                "The result, {} of length {length} ({bytes} bytes), is larger than this runtime can \
                 make",
                class.with_article(),
            ))
        };
        let value = self
            .create
            .call(FnArgs { data: (class.0 as u32, length as f64) })
            .map_err(too_large)?;
        match Info::of(value) {
            Some(info) if info.class == class && info.length == length => {
                Ok(View { value, class, length, data: info.data.cast() })
            }
            _ => {
                Err(Failure::Internal(format!("the runtime did not make {}", class.with_article())))
            }
        }
    }
}
