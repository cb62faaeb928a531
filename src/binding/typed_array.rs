//! Typed arrays: their classes, and their memory.

use super::describe::describe;
use super::failure::Failure;
use crate::gather::Dtype;
use napi::bindgen_prelude::{FnArgs, FromNapiValue, Function, JsValuesTupleIntoVec, Unknown};
use napi::{JsValue, ValueType, sys};
use std::ffi::c_void;
use std::ptr::null_mut;

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

    /// The class whose constructor is `value`: index.js has found its number, or -1.
    pub fn numbered(number: i32, value: Unknown) -> Result<Class, Failure> {
        match usize::try_from(number) {
            Ok(number) if number < CLASSES.len() => Ok(Class(number)),
            _ => Err(Failure::invalid_type(
                "Class",
                "a typed-array class, such as Float32Array,",
                describe(value),
            )),
        }
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
    env: sys::napi_env,
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
        let (mut data, mut buffer) = (null_mut(), null_mut());
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
            env,
            class: Class(class),
            length,
            data,
            buffer,
        })
    }

    /// Whether the buffer's memory has gone elsewhere. A SharedArrayBuffer's can't.
    fn is_detached(&self) -> bool {
        let mut detached = false;
        // SAFETY: the buffer is a value of `env`, just looked up; a status other than ok leaves
        // `detached` false.
        unsafe { sys::napi_is_detached_arraybuffer(self.env, self.buffer, &mut detached) };
        detached
    }
}

/// What a buffer's memory may do while the view stands; index.js has the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BufferKind {
    Fixed = 0,
    /// Resizable or growable.
    Changing = 1,
    /// Not to be written to.
    Immutable = 2,
}

/// A typed array that a gather may use. Its memory is looked for late, by `memory`.
#[derive(Clone, Copy)]
pub struct View<'env> {
    pub value: Unknown<'env>,
    pub class: Class,
    /// Elements.
    pub length: usize,
    pub name: &'static str,
}

/// The memory of a view: there while the array is alive and its buffer is not transferred.
#[derive(Clone, Copy)]
pub struct Memory {
    /// The first element, the view's offset counted in. May be null where there is none.
    pub address: *mut u8,
    pub bytes: usize,
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
        let refused = |words: &str| {
            let received = format!("{} {words}", info.class.with_article());
            Err(Failure::invalid_type(name, expected, received))
        };
        match realm.kind_of(info.buffer)? {
            BufferKind::Changing => refused(
                "on a resizable or growable buffer, which could change under the gather: use a \
                 buffer of fixed length",
            ),
            BufferKind::Immutable if name == "out" => refused("on an immutable buffer"),
            BufferKind::Fixed | BufferKind::Immutable => {
                Ok(View { value, class: info.class, length: info.length, name })
            }
        }
    }

    /// A failure where a view that was taken earlier has lost its memory since.
    pub fn check_attached(value: Unknown, name: &'static str) -> Result<(), Failure> {
        match Info::of(value) {
            Some(info) if info.is_detached() => Err(detached(name, info.class)),
            _ => Ok(()),
        }
    }

    /// Where the elements are. No code of the caller's may run between this and the use of it: it
    /// could transfer the buffer away.
    pub fn memory(&self) -> Result<Memory, Failure> {
        let View { value, class, length, name } = *self;
        let info = Info::of(value).filter(|info| info.length == length && !info.is_detached());
        let info = info.ok_or_else(|| detached(name, class))?;
        Ok(Memory { address: info.data.cast(), bytes: length * class.dtype().size() })
    }
}

/// A failure that says that an array has lost its memory.
fn detached(name: &'static str, class: Class) -> Failure {
    let received = format!(
        "a detached {} (its buffer was transferred, and its memory with it)",
        class.name(),
    );
    Failure::invalid_type(name, "an array that still has its memory", received)
}

impl Memory {
    /// Whether the two share a byte.
    pub fn overlaps(&self, other: &Memory) -> bool {
        let (a, b) = (self.address as usize, other.address as usize);
        self.bytes > 0 && other.bytes > 0 && a < b + other.bytes && b < a + self.bytes
    }
}

/// What `index.js` lends us of the realm that it runs in, so that results are instances of the
/// caller's own classes where a test runner or `vm` has realms of its own.
pub struct Realm<'env> {
    /// `new classes[class](length)`, or undefined where that throws.
    pub create: Function<'env, FnArgs<(u32, f64)>, Unknown<'env>>,
    /// The `BufferKind` of a buffer.
    pub buffer_kind: Function<'env, Unknown<'env>, u32>,
}

impl<'env> Realm<'env> {
    fn kind_of(&self, buffer: sys::napi_value) -> Result<BufferKind, Failure> {
        // SAFETY: the buffer is a value of this environment, just looked up.
        let buffer = unsafe { Unknown::from_raw_unchecked(self.buffer_kind.value().env, buffer) };
        Ok(match call(&self.buffer_kind, buffer)? {
            kind if kind == BufferKind::Changing as u32 => BufferKind::Changing,
            kind if kind == BufferKind::Immutable as u32 => BufferKind::Immutable,
            _ => BufferKind::Fixed,
        })
    }

    /// A new typed array of zeros. Runs a constructor, which a caller may have made its own.
    pub fn create(&self, class: Class, length: usize) -> Result<View<'env>, Failure> {
        let value = call(&self.create, FnArgs { data: (class.0 as u32, length as f64) })?;
        if value.get_type()? == ValueType::Undefined {
            let bytes = length as u128 * class.dtype().size() as u128;
            return Err(Failure::OutOfRange(format!(
                "{} of length {length} ({bytes} bytes) could not be made: it is larger than this \
                 runtime's arrays can be, or than the memory that is left",
                class.name(),
            )));
        }
        match Info::of(value) {
            Some(info) if info.class == class && info.length == length => {
                Ok(View { value, class, length, name: "result" })
            }
            _ => {
                let class = class.with_article();
                Err(Failure::Internal(format!("the runtime did not make {class}")))
            }
        }
    }
}

/// Calls a function of index.js. What it throws, such as at the end of the stack, stays pending, for
/// whoever called us: napi's own call makes a string of it, which may run the caller's code and, at
/// the end of the stack, throws again without end.
fn call<Args: JsValuesTupleIntoVec, Return: FromNapiValue>(
    function: &Function<'_, Args, Return>,
    args: Args,
) -> napi::Result<Return> {
    let env = function.value().env;
    let args = args.into_vec(env)?;
    let (mut this, mut value) = (null_mut(), null_mut());
    // SAFETY: the function and its arguments are values of this environment.
    unsafe {
        napi::check_status!(sys::napi_get_undefined(env, &mut this))?;
        napi::check_status!(sys::napi_call_function(
            env,
            this,
            function.raw(),
            args.len(),
            args.as_ptr(),
            &mut value,
        ))?;
        Return::from_napi_value(env, value)
    }
}
