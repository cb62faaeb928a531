//! `cudaGather`: from JavaScript's arguments to a task on its way.

use super::arguments::{Arguments, Array, Memories};
use super::describe::describe;
use super::explain::Explanation;
use super::failure::Failure;
use super::queue;
use super::resident_array::{Kind, ResidentArray};
use super::task::{Held, Reference, Task, Times, begin_as, hold, taken};
use super::typed_array::{Memory, Realm};
use crate::checkpoint::Checkpoint;
use crate::cuda::Lent;
use crate::gather::{self, DeviceChoice, Input, Output, Request, Route, Storage};
use napi::bindgen_prelude::{FnArgs, FromNapiValue, Function, Object, Unknown};
use napi::{Env, JsValue, ValueType};
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
#[allow(clippy::too_many_arguments, reason = "an object would be read by name at every call")]
pub fn cuda_gather<'env>(
    env: &'env Env,
    source: Unknown<'env>,
    index: Unknown<'env>,
    options: Unknown<'env>,
    default_device: Unknown<'env>,
    create: Function<'env, FnArgs<(u32, f64)>, Unknown<'env>>,
    buffer_kind: Function<'env, Unknown<'env>, u32>,
    id: u32,
    observation: Unknown<'env>,
) -> napi::Result<Unknown<'env>> {
    let realm = Realm { create, buffer_kind };
    let task = Arguments::read(source, index, options, default_device, &realm)
        .and_then(|call| prepare(call, observation, &realm));
    begin_as(env, id, task)
}

/// The failure for a `signal` that is no AbortSignal: what is one, index.js knows.
#[napi(skip_typescript)]
pub fn refuse_signal<'env>(env: &'env Env, signal: Unknown<'env>) -> napi::Result<Unknown<'env>> {
    Failure::invalid_type("signal", "an AbortSignal", describe(signal)).into_value(env, false)
}

/// Stops the call that was given this number, as soon as its memory can be let go: at once where it
/// waits, else between two of its chunks.
#[napi(skip_typescript)]
pub fn abort(env: &Env, id: u32) {
    queue::abort(env, id);
}

/// The task for a call: its inputs copied or held, its result made. What it took is to be told to
/// `observation`, where that is an object.
fn prepare<'env>(
    call: Arguments<'env>,
    observation: Unknown<'env>,
    realm: &Realm<'env>,
) -> Result<GatherTask, Failure> {
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
            held.push(Held::of(result)?);
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
    let observation = match observation.get_type()? {
        ValueType::Object => Some(Observation { object: hold(observation)?, route: None }),
        _ => None,
    };
    Ok(GatherTask {
        request,
        device: call.device,
        held,
        result: call.result,
        index_is_bigint,
        observation,
    })
}

/// An array of the host, copied or held; a resident one, which lives anyway.
fn input(
    array: Array,
    memory: Option<Memory>,
    alignment: usize,
    held: &mut Vec<Held>,
) -> Result<Input, Failure> {
    match (array, memory) {
        (Array::Host(view), Some(memory)) => taken(&view, memory, alignment, held),
        (Array::Resident(storage, _), _) => Ok(Input::Resident(storage)),
        (Array::Host(_), None) => {
            unreachable!("the memory of every array of the host was looked up")
        }
    }
}

struct GatherTask {
    request: Request,
    device: DeviceChoice,
    /// What must not be collected while the task runs: the result first, where it is on the host,
    /// then the inputs that are read in place.
    held: Vec<Held>,
    result: Kind,
    index_is_bigint: bool,
    observation: Option<Observation>,
}

/// Somebody who wants to know what the call took.
struct Observation {
    object: Reference,
    route: Option<Explanation>,
}

// SAFETY: the reference is only used on its environment's thread.
unsafe impl Send for Observation {}

/// Bytes on the host of a task that a long one may let pass.
const SMALL_BYTES: usize = 4 << 20;

impl Task for GatherTask {
    type Output = Option<Storage>;

    fn compute(&mut self, checkpoint: Checkpoint) -> Result<Option<Storage>, Failure> {
        if let Some(observation) = &mut self.observation {
            observation.route = Some(Explanation::of(Route::of(&self.request, self.device)?));
        }
        Ok(gather::run(&self.request, self.device, checkpoint)?)
    }

    fn resolve<'env>(
        &mut self,
        env: &'env Env,
        storage: Option<Storage>,
    ) -> Result<Unknown<'env>, Failure> {
        self.held.iter().try_for_each(|held| held.check(env))?;
        match storage {
            Some(storage) => Ok(ResidentArray::into_value(env, storage, self.result)?),
            None => self.held[0].value(env),
        }
    }

    fn is_small(&self) -> bool {
        self.request.moved_bytes() <= SMALL_BYTES
    }

    fn new_bytes(&self) -> usize {
        match self.request.out {
            Output::Host { is_callers: false, .. } => self.request.shape.out_bytes(),
            Output::Host { .. } | Output::Pinned(..) | Output::Resident => 0,
        }
    }

    fn tell(&mut self, env: &Env, times: Times) -> napi::Result<()> {
        let Some(Observation { object, route }) = &self.observation else { return Ok(()) };
        let object = object.get_value(env)?;
        // SAFETY: the value is an object of this environment.
        let mut object = unsafe { Object::from_napi_value(env.raw(), object.raw()) }?;
        if let Some(route) = route {
            object.set("route", route.route.as_str())?;
            object.set("device", route.device.as_str())?;
            object.set("bytesToDevice", route.bytes_to_device)?;
            object.set("bytesFromDevice", route.bytes_from_device)?;
        }
        object.set("waitMs", times.waited.as_secs_f64() * 1e3)?;
        object.set("runMs", times.ran.as_secs_f64() * 1e3)
    }

    fn index_is_bigint(&self) -> bool {
        self.index_is_bigint
    }

    fn finish(self, env: &Env) {
        self.held.into_iter().for_each(|held| held.release(env));
        if let Some(Observation { object, .. }) = self.observation {
            let _ = object.unref(env);
        }
    }
}
