//! `explain`: the route that a gather would take, without the gather.

use super::arguments::{Arguments, Array, Memories};
use super::failure::Failure;
use super::task::{Task, begin, into_unknown};
use super::typed_array::{Memory, Realm};
use crate::checkpoint::Checkpoint;
use crate::cuda::Lent;
use crate::gather::{DeviceChoice, Input, Output, Request, Route};
use napi::Env;
use napi::bindgen_prelude::{FnArgs, Function, Unknown};
use napi_derive::napi;

/// What {@link explain} found.
#[napi(object)]
pub struct Explanation {
    /// `'cpu'`: everything stays in host memory. `'upload'`: the source is copied to the device.
    /// `'resident'`: the source is on the device already. `'mapped'`: the source is in page-locked
    /// memory, and the device reads what it wants of it over the bus. In these three an index that
    /// is not on the device goes there, and a result that is wanted on the host comes back.
    #[napi(ts_type = "'cpu' | 'upload' | 'resident' | 'mapped'")]
    pub route: String,
    /// As the option `device` takes it: `'cpu'`, `'cuda:0'`, …
    #[napi(ts_type = "'cpu' | `cuda:${number}`")]
    pub device: String,
    /// Bytes that would cross the bus to the device.
    pub bytes_to_device: f64,
    /// Bytes that would cross the bus from the device.
    pub bytes_from_device: f64,
}

impl Explanation {
    pub fn of(route: Route) -> Explanation {
        Explanation {
            route: route.name.to_owned(),
            device: route.home.name(),
            bytes_to_device: route.to_device as f64,
            bytes_from_device: route.from_device as f64,
        }
    }
}

/// Says which route {@link cudaGather} would take with these arguments and how many bytes it would
/// move, and gathers nothing. Rejects as the call would for arguments that don't fit each other or
/// a device that is not usable; a bad index is not looked for, and no result is made that could be
/// too large.
///
/// The first call that leads to a CUDA device makes its context (0.3 s, on a thread of libuv's
/// pool).
#[napi(
    ts_generic_types = "S extends SourceArray, O extends SameClass<S> = SameClass<S, ArrayBuffer>, R extends 'host' | 'device' = 'host'",
    ts_args_type = "source: S | DeviceArray<S>, index: IndexArray | DeviceArray<IndexArray>, options?: GatherOptions<S, O, R>",
    ts_return_type = "Promise<Explanation>"
)]
pub fn explain<'env>(
    env: &'env Env,
    source: Unknown<'env>,
    index: Unknown<'env>,
    options: Unknown<'env>,
    default_device: Unknown<'env>,
    create: Function<'env, FnArgs<(u32, f64)>, Unknown<'env>>,
    buffer_kind: Function<'env, Unknown<'env>, u32>,
) -> napi::Result<Unknown<'env>> {
    let realm = Realm { create, buffer_kind };
    let task = Arguments::read(source, index, options, default_device, &realm).and_then(|call| {
        if call.out.is_some() {
            Memories::of(&call, call.out.as_ref())?;
        }
        let nowhere = std::ptr::null_mut();
        let request = Request {
            shape: call.shape,
            source: input(call.source)?,
            index: input(call.index)?,
            out: match call.stays {
                true => Output::Resident,
                false => Output::Host { address: nowhere, is_callers: false },
            },
        };
        Ok(ExplainTask { request, device: call.device })
    });
    begin(env, task)
}

/// An input whose route is asked for, and which is not read.
fn input(array: Array) -> Result<Input, Failure> {
    Ok(match array {
        Array::Host(view) => {
            let Memory { address, bytes } = view.memory()?;
            match Lent::at(address, bytes) {
                Some(lent) => Input::Pinned(address, lent),
                None => Input::Borrowed(address),
            }
        }
        Array::Resident(storage, _) => Input::Resident(storage),
    })
}

struct ExplainTask {
    request: Request,
    device: DeviceChoice,
}

impl Task for ExplainTask {
    type Output = Explanation;

    fn compute(&mut self, _checkpoint: Checkpoint) -> Result<Explanation, Failure> {
        Ok(Explanation::of(Route::of(&self.request, self.device)?))
    }

    fn resolve<'env>(
        &mut self,
        env: &'env Env,
        explanation: Explanation,
    ) -> Result<Unknown<'env>, Failure> {
        into_unknown(env, explanation)
    }
}
