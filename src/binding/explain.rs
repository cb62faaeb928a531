//! `explain`: the route that a gather would take, without the gather.

use super::arguments::{Arguments, Memories};
use super::failure::Failure;
use super::task::{begin, caught};
use super::typed_array::Realm;
use crate::gather::{self, DeviceChoice, Route, Shape};
use napi::bindgen_prelude::{FnArgs, Function, Unknown};
use napi::{Env, Task};
use napi_derive::napi;

/// What {@link explain} found.
#[napi(object)]
pub struct Explanation {
    /// `'cpu'`: everything stays in host memory. `'upload'`: source and index are copied to the
    /// device, the result is copied back.
    #[napi(ts_type = "'cpu' | 'upload'")]
    pub route: String,
    /// As the option `device` takes it: `'cpu'`, `'cuda:0'`, …
    #[napi(ts_type = "'cpu' | `cuda:${number}`")]
    pub device: String,
    /// Bytes that would cross the bus to the device.
    pub bytes_to_device: f64,
    /// Bytes that would cross the bus from the device.
    pub bytes_from_device: f64,
}

/// Says which route {@link cudaGather} would take with these arguments and how many bytes it would
/// move, and gathers nothing. Rejects as the call would for arguments that don't fit each other or
/// a device that is not usable; a bad index is not looked for, and no result is made that could be
/// too large.
///
/// The first call that leads to a CUDA device makes its context (0.3 s, on a thread of libuv's
/// pool).
#[napi(
    ts_generic_types = "S extends SourceArray, O extends SameClass<S> = SameClass<S, ArrayBuffer>",
    ts_args_type = "source: S, index: IndexArray, options?: GatherOptions<S, O>",
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
        if let Some(out) = &call.out {
            Memories::of(&call, out)?;
        }
        Ok(ExplainTask { shape: call.shape, device: call.device })
    });
    begin(env, task)
}

struct ExplainTask {
    shape: Shape,
    device: DeviceChoice,
}

impl Task for ExplainTask {
    type Output = Result<Explanation, Failure>;
    type JsValue = Explanation;

    fn compute(&mut self) -> napi::Result<Self::Output> {
        Ok(caught(|| {
            let route = Route::choose(self.device).map_err(Failure::Gather)?;
            let gather::Traffic { to_device, from_device } = route.traffic(&self.shape);
            Ok(Explanation {
                route: route.name().to_owned(),
                device: route.device(),
                bytes_to_device: to_device as f64,
                bytes_from_device: from_device as f64,
            })
        }))
    }

    fn resolve(&mut self, env: Env, output: Self::Output) -> napi::Result<Explanation> {
        output.map_err(|failure| failure.into_rejection(&env, false))
    }
}
