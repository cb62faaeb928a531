//! One CUDA device: its context, its kernels, and the lanes that gathers run in.

use super::error::{During, Error};
use super::kernels::Kernels;
use super::lane::Lane;
use super::page_locked::{self, PageLocked};
use super::pool::{Kind, Pool, Usage};
use crate::checkpoint::Checkpoint;
use cudarc::driver::{result, sys};
use std::sync::{Mutex, OnceLock};

/// Bytes of idle blocks that a device keeps, unless the process asks for another limit: an eighth of
/// its memory.
const KEPT_SHARE: usize = 8;

/// The limit that the process has asked for, for devices that are used later.
static KEPT_LIMIT: Mutex<Option<usize>> = Mutex::new(None);

pub(super) fn kept_limit() -> Option<usize> {
    *KEPT_LIMIT.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Sets how many bytes of idle blocks every device keeps that is not in use yet.
pub(super) fn set_kept_limit(bytes: usize) {
    *KEPT_LIMIT.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(bytes);
}

pub struct Device {
    ordinal: usize,
    context: sys::CUcontext,
    pub(super) kernels: Kernels,
    pub(super) pool: Pool,
    /// Lanes that no gather is using. They live as long as the process: a context that is torn
    /// down at exit races with the driver's own teardown.
    idle: Mutex<Vec<Lane>>,
    /// The error after which the driver refused even to wait: the context is of no use any more.
    lost: OnceLock<Error>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Device {}
unsafe impl Sync for Device {}

impl Device {
    /// Takes the device's primary context, the one that every library in the process shares.
    pub(super) fn new(ordinal: usize) -> Result<Device, Error> {
        let device = result::device::get(ordinal as i32).during("cuDeviceGet")?;
        // SAFETY: the device exists; the context is released where a later step fails.
        let context =
            unsafe { result::primary_ctx::retain(device) }.during("cuDevicePrimaryCtxRetain")?;
        let load = || {
            // SAFETY: the context was just retained.
            unsafe { result::ctx::set_current(context) }.during("cuCtxSetCurrent")?;
            let (_free, total) = result::mem_get_info().during("cuMemGetInfo")?;
            let limit = kept_limit().unwrap_or(total / KEPT_SHARE);
            Ok((Kernels::load(device)?, Pool::new(Kind::Device, limit)))
        };
        let (kernels, pool) = load().inspect_err(|_| {
            // SAFETY: as retained above; nothing uses it, and this thread is taken off it.
            unsafe {
                let _ = result::ctx::set_current(std::ptr::null_mut());
                let _ = result::primary_ctx::release(device);
            }
        })?;
        Ok(Device {
            ordinal,
            context,
            kernels,
            pool,
            idle: Mutex::new(Vec::new()),
            lost: OnceLock::new(),
        })
    }

    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// Makes the device's context the calling thread's.
    pub(super) fn make_current(&self) -> Result<(), Error> {
        // SAFETY: the context is retained for the life of the process.
        unsafe { result::ctx::set_current(self.context) }.during("cuCtxSetCurrent")
    }

    /// Runs `work` in a lane that no other job is using. Afterwards nothing on the lane is still
    /// running, whether `work` failed or not, so that host memory can be let go.
    ///
    /// Where the device is full, idle memory is freed and the work begun once more.
    pub(super) fn with_lane<T>(
        &self,
        work: impl Fn(&mut Lane) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.enter()?;
        let result = match self.attempt(&work) {
            Err(error) if error.is_out_of_memory() => {
                self.release();
                self.attempt(&work)
            }
            other => other,
        };
        self.pool.trim();
        page_locked::POOL.trim();
        result
    }

    /// A block of page-locked memory, which belongs to no device; this one's context serves to ask
    /// for it.
    pub(super) fn with_page_locked(&self, bytes: usize) -> Result<PageLocked, Error> {
        self.enter()?;
        let made = match PageLocked::new(bytes) {
            Err(error) if error.is_out_of_memory() => {
                self.release();
                PageLocked::new(bytes)
            }
            other => other,
        };
        made.inspect_err(|error| self.check(error, self.make_current()))
    }

    /// Makes the device's context the calling thread's, where it is alive.
    fn enter(&self) -> Result<(), Error> {
        self.usable()?;
        self.make_current().inspect_err(|error| self.check(error, self.make_current()))
    }

    fn release(&self) {
        self.pool.release();
        page_locked::POOL.release();
    }

    /// What a lane's work does between its chunks: asks whether to go on, and comes back to this
    /// device, since what ran meanwhile may have been on another.
    pub(super) fn between(&self, checkpoint: Checkpoint) -> Result<(), Error> {
        match checkpoint() {
            true => self.make_current(),
            false => Err(Error::Stopped),
        }
    }

    fn attempt<T>(&self, work: impl FnOnce(&mut Lane) -> Result<T, Error>) -> Result<T, Error> {
        let mut job = Job { device: self, lane: None, may_be_running: true };
        let result = self.take_lane().and_then(|lane| work(job.lane.insert(lane)));
        if let Err(error) = &result {
            self.check(error, job.wait());
        }
        job.may_be_running = false;
        result
    }

    /// Most errors concern one call. Where the driver does not even wait or change contexts any
    /// more, as after an illegal address, this one is dead for the process.
    fn check(&self, error: &Error, alive: Result<(), Error>) {
        if alive.is_err() {
            let _ = self.lost.set(error.clone());
        }
    }

    /// The lane that was used last, so that one caller at a time keeps using one lane's memory; a
    /// new one where all are in use.
    fn take_lane(&self) -> Result<Lane, Error> {
        let idle = self.idle_lanes().pop();
        idle.map_or_else(Lane::new, Ok)
    }

    /// An error where an earlier one has ended the device's context.
    pub(super) fn usable(&self) -> Result<(), Error> {
        self.lost.get().map_or(Ok(()), |error| {
            Err(Error::Unavailable(format!(
                "CUDA device {} was lost to an earlier error: {error}",
                self.ordinal
            )))
        })
    }

    /// Frees what the pools hold beyond their limits.
    pub fn trim(&self) {
        if self.usable().is_ok() && self.make_current().is_ok() {
            self.pool.trim();
            page_locked::POOL.trim();
        }
    }

    /// Sets how many bytes of idle blocks the device keeps, and frees what is beyond.
    pub(super) fn set_kept_limit(&self, bytes: usize) {
        self.pool.set_limit(bytes);
        self.trim();
    }

    /// Bytes of the device in our blocks.
    pub fn usage(&self) -> Usage {
        self.pool.usage()
    }

    fn idle_lanes(&self) -> std::sync::MutexGuard<'_, Vec<Lane>> {
        self.idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Free memory of the device, in bytes, where it can say.
    pub fn free_memory(&self) -> Option<usize> {
        self.make_current().ok()?;
        result::mem_get_info().ok().map(|(free, _total)| free)
    }
}

/// A job's hold on its lane, given back however the job ends.
struct Job<'device> {
    device: &'device Device,
    lane: Option<Lane>,
    may_be_running: bool,
}

impl Job<'_> {
    /// Waits for all that runs on the device.
    fn wait(&self) -> Result<(), Error> {
        result::ctx::synchronize().during("cuCtxSynchronize")
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        // Only where the work panicked; everything else has waited by now.
        if self.may_be_running {
            let _ = self.wait();
        }
        if let Some(mut lane) = self.lane.take() {
            lane.finish();
            self.device.idle_lanes().push(lane);
        }
    }
}

/// What the driver says of a device without a context on it, as far as it does.
pub struct Properties {
    pub name: Option<String>,
    pub total_memory: Option<usize>,
    pub compute_capability: Option<(i32, i32)>,
}

impl Properties {
    pub fn of(ordinal: usize) -> Properties {
        use sys::CUdevice_attribute::{
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
        };
        let Ok(device) = result::device::get(ordinal as i32) else {
            return Properties { name: None, total_memory: None, compute_capability: None };
        };
        // SAFETY: the device exists.
        let attribute = |which| unsafe { result::device::get_attribute(device, which) }.ok();
        Properties {
            name: result::device::get_name(device).ok(),
            // SAFETY: the device exists.
            total_memory: unsafe { result::device::total_mem(device) }.ok(),
            compute_capability: attribute(MAJOR).zip(attribute(MINOR)),
        }
    }
}
