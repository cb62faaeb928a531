//! `cudaGather`: from JavaScript's arguments to a task on its way.

use super::failure::Failure;
use super::options::Options;
use super::task::{GatherTask, Held, Reference, hold};
use super::typed_array::{Class, Realm, View};
use crate::cpu::Scratch;
use crate::gather::{Bounds, IndexType, Input, Output, Request, Shape};
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
    let task = prepare(source, index, options, default_device, &realm)
        .map_err(|failure| failure.into_error(env, false))?;
    Ok(env.spawn(task)?.promise_object())
}

fn prepare<'env>(
    source: Unknown<'env>,
    index: Unknown<'env>,
    options: Unknown<'env>,
    default_device: Unknown<'env>,
    realm: &Realm<'env>,
) -> Result<GatherTask, Failure> {
    // The options first: their getters are the caller's code. Past this line none runs.
    let options = Options::read(options, default_device)?;
    let source = View::of(source, "source", "a typed array", |_| true, realm)?;
    let is_integer = |class: Class| IndexType::of(class.dtype()).is_some();
    let expected = "a typed array of integers (Int8Array to BigUint64Array)";
    let index = View::of(index, "index", expected, is_integer, realm)?;

    let fill = options.fill(source.class, realm)?;
    let length = result_length(&source, &index, options.row_length)?;
    let (result, is_callers) = match options.out {
        Some(out) => (check_out(out, length, &source, &index, realm)?, true),
        None => (realm.create(source.class, length)?, false),
    };
    let shape = Shape {
        row_bytes: options.row_length * source.class.dtype().size(),
        length: index.length,
        index_type: IndexType::of(index.class.dtype()).expect("the class was just accepted"),
        bounds: Bounds {
            rows: (source.length / options.row_length) as u64,
            mode: options.mode,
            wrap_negative: options.wrap_negative,
        },
        fill,
    };
    let mut inputs = Vec::new();
    let request = Request {
        shape,
        source: input(&source, &mut inputs)?,
        index: input(&index, &mut inputs)?,
        out: Output { address: result.data, is_callers },
    };
    let held = Held { result: hold(result.value)?, inputs };
    let index_is_bigint = index.class.is_bigint();
    Ok(GatherTask { request, device: options.device, held, index_is_bigint })
}

/// Elements of the result, where source and row length go together.
fn result_length(source: &View, index: &View, row_length: usize) -> Result<usize, Failure> {
    if !source.length.is_multiple_of(row_length) {
        return Err(Failure::InvalidValue(format!(
            "Expected a source of whole rows but received a {} of length {}, which is not a \
             multiple of rowLength {row_length}",
            source.class.name(),
            source.length,
        )));
    }
    // Typed arrays stay below 2^53 elements whatever the runtime, so that no size overflows later.
    const MOST: usize = (1 << 53) - 1;
    index.length.checked_mul(row_length).filter(|&length| length <= MOST).ok_or_else(|| {
        Failure::OutOfRange(format!(
            "The result would have {} rows of {row_length} elements, more than a typed array can \
             hold",
            index.length,
        ))
    })
}

/// The caller's own array for the result.
fn check_out<'env>(
    out: Unknown<'env>,
    length: usize,
    source: &View,
    index: &View,
    realm: &Realm<'env>,
) -> Result<View<'env>, Failure> {
    let name = source.class.name();
    let expected = format!("a {name} of length {length}");
    let out = View::of(out, "out", &expected, |class| class == source.class, realm)?;
    if out.length != length {
        return Err(Failure::InvalidValue(format!(
            "Expected {expected} for out (index.length * rowLength) but received one of length {}",
            out.length,
        )));
    }
    for (other, input) in [("source", source), ("index", index)] {
        if out.overlaps(input) {
            return Err(Failure::InvalidValue(format!(
                "Expected memory of its own for out but received one that overlaps {other}",
            )));
        }
    }
    Ok(out)
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
