//! `setMemoryLimits`: how much idle memory is kept for the next call.

use super::failure::Failure;
use super::options::MemoryLimits;
use super::task::{Task, begin, undefined};
use crate::checkpoint::Checkpoint;
use crate::cuda::set_kept_limits;
use napi::Env;
use napi::bindgen_prelude::Unknown;
use napi_derive::napi;

/// Sets how much idle memory is kept for the next call, and frees what is beyond. Memory that arrays
/// and running calls use does not count. For every thread of the process; {@link cudaStatus} shows
/// the limits, and what is kept and used.
///
/// Rejects with a RangeError for a number that is no size, a TypeError for what is no number.
#[napi(
    ts_args_type = "limits: { deviceBytes?: number | undefined; pinnedBytes?: number | undefined }",
    ts_return_type = "Promise<void>"
)]
pub fn set_memory_limits<'env>(
    env: &'env Env,
    limits: Unknown<'env>,
) -> napi::Result<Unknown<'env>> {
    begin(env, MemoryLimits::read(limits).map(LimitsTask))
}

struct LimitsTask(MemoryLimits);

impl Task for LimitsTask {
    type Output = ();

    fn compute(&mut self, _checkpoint: Checkpoint) -> Result<(), Failure> {
        set_kept_limits(self.0.device_bytes, self.0.pinned_bytes);
        Ok(())
    }

    fn resolve<'env>(&mut self, env: &'env Env, (): ()) -> Result<Unknown<'env>, Failure> {
        undefined(env)
    }
}
