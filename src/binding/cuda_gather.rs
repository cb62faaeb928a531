//! `cudaGather`: from JavaScript's arguments to a task on its way.

use super::arguments::Arguments;
use super::failure::Failure;
use super::task::{GatherTask, Held, Reference, hold};
use super::typed_array::{Realm, View};
use crate::cpu::Scratch;
use crate::gather::{Input, Output, Request};
use napi::Env;
use napi::bindgen_prelude::{FnArgs, Function, PromiseRaw, Unknown};
use napi_derive::napi;

/// Inputs of up to this many bytes are copied at the call (0.1 ms), so that the caller may change
/// them at once; larger ones are read in place while the task runs.
const COPIED_BYTES: usize = 1 << 20;

/// Gathers rows of `source`: `result[i] = source[index[i]]`, as
/// [numpy.take](https://numpy.org/doc/stable/reference/generated/numpy.take.html) does along axis
/// 0, on a CUDA device where one is usable and else on the CPU, with the same results and errors.
///
/// The work runs on a thread of libuv's pool. Until the promise settles, leave inputs over 1 MiB
/// and `out` alone: they are used in place. Smaller inputs are copied at the call.
///
/// @param source Rows of `rowLength` elements; a typed array of any class. Values are moved, never
///   converted: NaN payloads, -0 and 64-bit integers come out bit for bit.
/// @param index Row numbers: a typed array of any integer class, read by value. -1 is the last row.
/// @param options See {@link GatherOptions}.
/// @returns A new typed array of the source's class (a plain `Uint8Array` for a `Buffer`), with
///   `index.length * rowLength` elements and a buffer of its own; or `out`.
/// @throws {RangeError} `ERR_OUT_OF_RANGE` where an index names no row, with the fields `position`
///   (the first such place in `index`), `index` (the value there) and `length` (rows of the
///   source); and for a number that an option can't take.
/// @throws {TypeError} `ERR_INVALID_ARG_TYPE` or `ERR_INVALID_ARG_VALUE`, naming the argument and
///   what was passed.
/// @throws {Error} `ERR_CUDA_UNAVAILABLE` where `device` names a CUDA device that is not usable,
///   with the reason; `ERR_CUDA_OUT_OF_MEMORY`; `ERR_CUDA` for any other failure of the driver,
///   with its name and number as `driverError` and `driverCode`.
///
/// Every error rejects the promise; none is thrown synchronously. After any of them the next call
/// works.
#[napi(
    ts_generic_types = "S extends SourceArray, O extends SameClass<S> = SameClass<S, ArrayBuffer>",
    ts_args_type = "source: S, index: IndexArray, options?: GatherOptions<S, O>",
    ts_return_type = "Promise<O>"
)]
pub fn cuda_gather<'env>(
    env: &'env Env,
    source: Unknown<'env>,
    index: Unknown<'env>,
    options: Unknown<'env>,
    default_device: Unknown<'env>,
    create: Function<'env, FnArgs<(u32, f64)>, Unknown<'env>>,
    is_resizable: Function<'env, Unknown<'env>, bool>,
) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
    let realm = Realm { create, is_resizable };
    let task = Arguments::read(source, index, options, default_device, &realm)
        .and_then(|arguments| prepare(arguments, &realm))
        .map_err(|failure| failure.into_error(env, false))?;
    Ok(env.spawn(task)?.promise_object())
}

/// The task for a call: its inputs copied or held, its result made.
fn prepare<'env>(call: Arguments<'env>, realm: &Realm<'env>) -> Result<GatherTask, Failure> {
    let is_callers = call.out.is_some();
    let result = match call.out {
        Some(out) => out,
        None => realm.create(call.source.class, call.result_length)?,
    };
    let mut inputs = Vec::new();
    let request = Request {
        shape: call.shape,
        source: input(&call.source, &mut inputs)?,
        index: input(&call.index, &mut inputs)?,
        out: Output { address: result.data, is_callers },
    };
    let held = Held { result: hold(result.value)?, inputs };
    let index_is_bigint = call.index.class.is_bigint();
    Ok(GatherTask { request, device: call.device, held, index_is_bigint })
}

/// A copy of a small input; a large one itself, kept alive in `inputs`.
fn input<'env>(view: &View<'env>, inputs: &mut Vec<Reference>) -> Result<Input, Failure> {
    if view.bytes() <= COPIED_BYTES {
        // SAFETY: the view's memory is that long, and we are on the thread that owns it.
        return Ok(Input::Copied(unsafe { Scratch::copy_of(view.data, view.bytes()) }));
    }
    inputs.push(hold(view.value)?);
    Ok(Input::Borrowed(view.data))
}
