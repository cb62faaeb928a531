//! `cudaGather`: from JavaScript's arguments to a task on its way.

use super::arguments::{Arguments, Memories};
use super::failure::Failure;
use super::task::{GatherTask, Held, begin, hold};
use super::typed_array::{Memory, Realm, View};
use crate::cpu::Scratch;
use crate::gather::{self, Input, Output, Request};
use napi::Env;
use napi::bindgen_prelude::{FnArgs, Function, Unknown};
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
    buffer_kind: Function<'env, Unknown<'env>, u32>,
) -> napi::Result<Unknown<'env>> {
    let realm = Realm { create, buffer_kind };
    let task = Arguments::read(source, index, options, default_device, &realm)
        .and_then(|call| prepare(call, &realm));
    begin(env, task)
}

/// The task for a call: its inputs copied or held, its result made.
fn prepare<'env>(call: Arguments<'env>, realm: &Realm<'env>) -> Result<GatherTask, Failure> {
    let is_callers = call.out.is_some();
    let result = match call.out {
        Some(out) => out,
        None => realm.create(call.source.class, call.result_length)?,
    };
    let memory = Memories::of(&call, &result)?;
    let mut held = Held { result: hold(result.value)?, inputs: Vec::new() };
    let mut input = |view: &View, memory: Memory, alignment: usize| {
        if memory.bytes <= COPIED_BYTES || !(memory.address as usize).is_multiple_of(alignment) {
            // SAFETY: the memory was just looked up, on the thread that owns it.
            let copy = unsafe { Scratch::copy_of(memory.address, memory.bytes) };
            let out_of_memory = gather::Error::OutOfHostMemory { bytes: memory.bytes };
            return copy.map(Input::Copied).ok_or(Failure::Gather(out_of_memory));
        }
        held.inputs.push(hold(view.value)?);
        Ok(Input::Borrowed(memory.address))
    };
    // Arrays that other addons made may be aligned to nothing; rows are moved as bytes, but an
    // index is read whole.
    let request = Request {
        shape: call.shape,
        source: input(&call.source, memory.source, 1)?,
        index: input(&call.index, memory.index, call.shape.index_type.size())?,
        out: Output { address: memory.result.address, is_callers },
    };
    let index_is_bigint = call.index.class.is_bigint();
    Ok(GatherTask { request, device: call.device, held, index_is_bigint })
}
