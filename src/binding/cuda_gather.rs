//! `cudaGather`: from JavaScript's arguments to a task on its way.

use super::arguments::{Arguments, Array, Memories};
use super::failure::Failure;
use super::task::{GatherTask, Reference, begin, hold, taken};
use super::typed_array::{Memory, Realm};
use crate::cuda::Lent;
use crate::gather::{Input, Output, Request};
use napi::Env;
use napi::bindgen_prelude::{FnArgs, Function, Unknown};
use napi_derive::napi;

/// Gathers rows of `source`: `result[i] = source[index[i]]`, as
/// [numpy.take](https://numpy.org/doc/stable/reference/generated/numpy.take.html) does along axis
/// 0, on a CUDA device where one is usable and else on the CPU, with the same results and errors.
///
/// The work runs on a thread of libuv's pool. Until the promise settles, leave inputs over 1 MiB
/// and `out` alone: they are used in place. Smaller inputs are copied at the call.
///
/// @param source Rows of `rowLength` elements; a typed array of any class, or a
///   {@link DeviceArray}, which need not be moved. Values are moved, never
///   converted: NaN payloads, -0 and 64-bit integers come out bit for bit.
/// @param index Row numbers: a typed array of any integer class, or a DeviceArray of one, read by
///   value. -1 is the last row.
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
///   with its name and number as `driverError` and `driverCode`; `ERR_DISPOSED` for a DeviceArray
///   that was disposed of.
///
/// Every error rejects the promise; none is thrown synchronously. After any of them the next call
/// works.
#[napi(
    ts_generic_types = "S extends SourceArray, O extends SameClass<S> = SameClass<S, ArrayBuffer>, R extends 'host' | 'device' = 'host'",
    ts_args_type = "source: S | DeviceArray<S>, index: IndexArray | DeviceArray<IndexArray>, options?: GatherOptions<S, O, R>",
    ts_return_type = "Promise<GatherResult<S, O, R>>"
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
        Some(out) => Some(out),
        None if call.stays => None,
        None => Some(realm.create(call.result.class, call.result.length)?),
    };
    let memory = Memories::of(&call, result.as_ref())?;
    let mut held = Vec::new();
    let out = match (&result, memory.result) {
        (Some(result), Some(Memory { address, bytes })) => {
            held.push(hold(result.value)?);
            match Lent::at(address, bytes).filter(|_| is_callers) {
                Some(lent) => Output::Pinned(address, lent),
                None => Output::Host { address, is_callers },
            }
        }
        _ => Output::Resident,
    };
    // Arrays that other addons made may be aligned to nothing; rows are moved as bytes, but an
    // index is read whole.
    let index_alignment = call.shape.index_type.size();
    let index_is_bigint = call.index.class().is_bigint();
    let request = Request {
        shape: call.shape,
        source: input(call.source, memory.source, 1, &mut held)?,
        index: input(call.index, memory.index, index_alignment, &mut held)?,
        out,
    };
    Ok(GatherTask { request, device: call.device, held, result: call.result, index_is_bigint })
}

/// An array of the host, copied or held; a resident one, which lives anyway.
fn input(
    array: Array,
    memory: Option<Memory>,
    alignment: usize,
    held: &mut Vec<Reference>,
) -> Result<Input, Failure> {
    match (array, memory) {
        (Array::Host(view), Some(memory)) => taken(&view, memory, alignment, held),
        (Array::Resident(storage, _), _) => Ok(Input::Resident(storage)),
        (Array::Host(_), None) => {
            unreachable!("the memory of every array of the host was looked up")
        }
    }
}
