//! A gather on libuv's pool, and its promise.

use super::failure::Failure;
use super::resident_array::{Kind, ResidentArray};
use super::typed_array::{Memory, View};
use crate::cpu::Scratch;
use crate::cuda::Lent;
use crate::gather::{self, DeviceChoice, Input, Request, Storage};
use napi::bindgen_prelude::{FromNapiValue, Unknown};
use napi::{Env, JsValue, ScopedTask, UnknownRef};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A reference that keeps a value from being collected until it is released. One that is never
/// released, because the environment went away first, went with it: that is no leak to report.
pub type Reference = UnknownRef<false>;

pub fn hold(value: Unknown) -> napi::Result<Reference> {
    // SAFETY: the environment is the value's own.
    unsafe { Reference::from_napi_value(value.value().env, value.raw()) }
}

/// Puts a task on libuv's pool and gives its promise; or gives the failure, where there is none to
/// put there.
pub fn begin<'env, T: ScopedTask<'env> + 'env>(
    env: &'env Env,
    task: Result<T, Failure>,
) -> napi::Result<Unknown<'env>> {
    match task {
        Ok(task) => Ok(env.spawn(task)?.promise_object().to_unknown()),
        Err(failure) => failure.into_value(env, false),
    }
}

/// Inputs of up to this many bytes are copied at the call (0.1 ms), so that the caller may change
/// them at once; larger ones are read in place while the task runs.
const COPIED_BYTES: usize = 1 << 20;

/// What a task is to read of an array of the host, whose memory was just looked up: a copy of a
/// small one; a large one itself, held, where it is aligned so.
pub fn taken(
    view: &View,
    memory: Memory,
    alignment: usize,
    held: &mut Vec<Reference>,
) -> Result<Input, Failure> {
    let Memory { address, bytes } = memory;
    if bytes > COPIED_BYTES && (address as usize).is_multiple_of(alignment) {
        held.push(hold(view.value)?);
        return Ok(match Lent::at(address, bytes) {
            Some(lent) => Input::Pinned(address, lent),
            None => Input::Borrowed(address),
        });
    }
    // SAFETY: the memory was just looked up, on the thread that owns it.
    let copy = unsafe { Scratch::copy_of(address, bytes) };
    copy.map(Input::Copied).ok_or(Failure::Gather(gather::Error::OutOfHostMemory { bytes }))
}

pub struct GatherTask {
    pub request: Request,
    pub device: DeviceChoice,
    /// What must not be collected while the task runs: the result first, where it is on the host,
    /// then the inputs that are read in place.
    pub held: Vec<Reference>,
    pub result: Kind,
    pub index_is_bigint: bool,
}

impl<'env> ScopedTask<'env> for GatherTask {
    type Output = Result<Option<Storage>, Failure>;
    type JsValue = Unknown<'env>;

    fn compute(&mut self) -> napi::Result<Self::Output> {
        Ok(caught(|| gather::run(&self.request, self.device, &|| true).map_err(Failure::Gather)))
    }

    fn resolve(&mut self, env: &'env Env, output: Self::Output) -> napi::Result<Unknown<'env>> {
        match output {
            Ok(Some(storage)) => ResidentArray::into_value(env, storage, self.result),
            Ok(None) => self.held[0].get_value(env),
            Err(failure) => Err(failure.into_rejection(env, self.index_is_bigint)),
        }
    }

    fn finally(self, env: Env) -> napi::Result<()> {
        self.held.into_iter().try_for_each(|value| value.unref(&env))
    }
}

/// Runs `work`; a panic in it becomes a failure. Past a C callback's frame it would end the
/// process.
pub fn caught<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("a panic");
        Err(Failure::Internal(message.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_failure_that_carries_its_message() {
        for panic in [|| panic!("plain words"), || panic!("number {}", 7)] as [fn() -> _; 2] {
            let failure = caught::<()>(panic).unwrap_err();
            let message = failure.to_string();
            assert!(message.contains("plain words") || message.contains("number 7"), "{message}");
        }
        assert!(caught(|| Ok(3)).is_ok());
    }
}
