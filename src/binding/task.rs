//! A task on libuv's pool, and its promise.

use super::failure::Failure;
use super::queue::{self, Job, JobId};
use super::typed_array::{Memory, View};
use crate::checkpoint::Checkpoint;
use crate::cpu::Scratch;
use crate::cuda::Lent;
use crate::gather::{self, Input};
use napi::bindgen_prelude::{FromNapiValue, ToNapiValue, Unknown};
use napi::{Env, JsError, JsValue, UnknownRef, sys};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// A reference that keeps a value from being collected until it is released. One that is never
/// released, because the environment went away first, went with it: that is no leak to report.
pub type Reference = UnknownRef<false>;

pub fn hold(value: Unknown) -> napi::Result<Reference> {
    // SAFETY: the environment is the value's own.
    unsafe { Reference::from_napi_value(value.value().env, value.raw()) }
}

/// What a promise stands for.
pub trait Task: Send + 'static {
    type Output: Send + 'static;

    /// On a thread of libuv's pool.
    fn compute(&mut self, checkpoint: Checkpoint) -> Result<Self::Output, Failure>;

    /// On the event loop: what the promise is to give.
    fn resolve<'env>(
        &mut self,
        env: &'env Env,
        output: Self::Output,
    ) -> Result<Unknown<'env>, Failure>;

    /// On the event loop, last of all: lets go of what was kept from being collected.
    fn finish(self, _env: &Env)
    where
        Self: Sized,
    {
    }

    /// Whether a long task may let it pass.
    fn is_small(&self) -> bool {
        false
    }

    /// Bytes of a result that was made for it, for V8 to collect.
    fn new_bytes(&self) -> usize {
        0
    }

    /// On the event loop, before the promise is settled: how long the task waited and ran.
    fn tell(&mut self, _env: &Env, _times: Times) -> napi::Result<()> {
        Ok(())
    }

    /// Whether an index is a bigint to the caller, for the error.
    fn index_is_bigint(&self) -> bool {
        false
    }
}

/// How long a task waited in the queue, and ran.
#[derive(Clone, Copy, Default)]
pub struct Times {
    pub waited: Duration,
    pub ran: Duration,
}

/// A task on its way.
struct Promised<T: Task> {
    task: T,
    deferred: sys::napi_deferred,
    begun: Instant,
    times: Times,
    /// `None` until it has run.
    output: Option<Result<T::Output, Failure>>,
}

// SAFETY: the deferred is only used on its environment's thread, by `settle`.
unsafe impl<T: Task> Send for Promised<T> {}

impl<T: Task> Job for Promised<T> {
    fn run(&mut self, checkpoint: Checkpoint) {
        self.times.waited = self.begun.elapsed();
        let task = &mut self.task;
        self.output = Some(caught(|| task.compute(checkpoint)));
        self.times.ran = self.begun.elapsed() - self.times.waited;
    }

    fn settle(self: Box<Self>, env: &Env) {
        let Promised { mut task, deferred, begun, mut times, output } = *self;
        if output.is_none() {
            times.waited = begun.elapsed();
        }
        let _ = task.tell(env, times);
        let output = output.unwrap_or(Err(Failure::Gather(gather::Error::Stopped)));
        let index_is_bigint = task.index_is_bigint();
        let settled = output
            .and_then(|output| task.resolve(env, output))
            .map_err(|failure| failure.into_value(env, index_is_bigint));
        // SAFETY: on the environment's thread, with values of it; the deferred is used once. What
        // fails here fails because the environment is ending.
        unsafe {
            match settled {
                Ok(value) => sys::napi_resolve_deferred(env.raw(), deferred, value.raw()),
                Err(Ok(failure)) => sys::napi_reject_deferred(env.raw(), deferred, failure.raw()),
                Err(Err(thrown)) => {
                    let thrown = JsError::from(thrown).into_value(env.raw());
                    sys::napi_reject_deferred(env.raw(), deferred, thrown)
                }
            };
        }
        task.finish(env);
    }

    fn is_small(&self) -> bool {
        self.task.is_small()
    }

    fn new_bytes(&self) -> usize {
        self.task.new_bytes()
    }
}

/// Puts a task in the queue and gives its promise; or gives the failure, where there is none to put
/// there.
pub fn begin<'env, T: Task>(
    env: &'env Env,
    task: Result<T, Failure>,
) -> napi::Result<Unknown<'env>> {
    begin_as(env, 0, task)
}

/// As [`begin`], with a number to abort the task by.
pub fn begin_as<'env, T: Task>(
    env: &'env Env,
    id: JobId,
    task: Result<T, Failure>,
) -> napi::Result<Unknown<'env>> {
    let task = match task {
        Ok(task) => task,
        Err(failure) => return failure.into_value(env, false),
    };
    let (mut deferred, mut promise) = (null_mut(), null_mut());
    // SAFETY: on the environment's thread.
    napi::check_status!(unsafe {
        sys::napi_create_promise(env.raw(), &mut deferred, &mut promise)
    })?;
    let (begun, times) = (Instant::now(), Times::default());
    queue::submit(env, id, Box::new(Promised { task, deferred, begun, times, output: None }))?;
    // SAFETY: the promise was just made in this environment.
    Ok(unsafe { Unknown::from_raw_unchecked(env.raw(), promise) })
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
    held: &mut Vec<Held>,
) -> Result<Input, Failure> {
    let Memory { address, bytes } = memory;
    if bytes > COPIED_BYTES && (address as usize).is_multiple_of(alignment) {
        held.push(Held::of(view)?);
        return Ok(match Lent::at(address, bytes) {
            Some(lent) => Input::Pinned(address, lent),
            None => Input::Borrowed(address),
        });
    }
    // SAFETY: the memory was just looked up, on the thread that owns it.
    let copy = unsafe { Scratch::copy_of(address, bytes) };
    copy.map(Input::Copied).ok_or(Failure::Gather(gather::Error::OutOfHostMemory { bytes }))
}

/// An array of the caller's that a task uses in place.
pub struct Held {
    name: &'static str,
    value: Reference,
}

// SAFETY: a reference is only used on its environment's thread.
unsafe impl Send for Held {}

impl Held {
    pub fn of(view: &View) -> Result<Held, Failure> {
        Ok(Held { name: view.name, value: hold(view.value)? })
    }

    /// The array.
    pub fn value<'env>(&self, env: &'env Env) -> Result<Unknown<'env>, Failure> {
        Ok(self.value.get_value(env)?)
    }

    pub fn release(self, env: &Env) {
        // Fails where the environment is ending, and its references with it.
        let _ = self.value.unref(env);
    }

    /// A failure where the caller has moved the memory away meanwhile: what was read there, or
    /// written, can't be vouched for.
    pub fn check(&self, env: &Env) -> Result<(), Failure> {
        View::check_attached(self.value.get_value(env)?, self.name)
    }
}

/// What a promise gives that gives nothing.
pub fn undefined(env: &Env) -> Result<Unknown<'_>, Failure> {
    into_unknown(env, ())
}

/// A Rust value as JavaScript's.
pub fn into_unknown<T: ToNapiValue>(env: &Env, value: T) -> Result<Unknown<'_>, Failure> {
    // SAFETY: on the environment's thread; the value was just made in it.
    unsafe {
        let value = T::to_napi_value(env.raw(), value)?;
        Ok(Unknown::from_raw_unchecked(env.raw(), value))
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
