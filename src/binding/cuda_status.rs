//! `cudaStatus`: is CUDA usable, and if not, why.

use super::failure::Failure;
use super::task::{Task, begin, into_unknown};
use crate::checkpoint::Checkpoint;
use crate::cuda::{
    Driver, Properties, Usage, device_usages, driver, kept_limit, page_locked_usage,
};
use napi::Env;
use napi::bindgen_prelude::Unknown;
use napi_derive::napi;

/// What {@link cudaStatus} found.
#[napi(object, use_nullable = true)]
pub struct CudaStatus {
    /// Whether a gather can run on CUDA: device 0 has a context and the kernels are loaded.
    pub usable: bool,
    /// Why it is not usable and what to do about it; `null` where it is.
    pub reason: Option<String>,
    /// The NVIDIA driver's version, such as `'580.159.04'`; `null` where it is not known (it is
    /// read from the Linux kernel module).
    pub driver_version: Option<String>,
    /// The newest CUDA version that the driver supports, such as `'13.0'`; `null` without a driver.
    pub cuda_version: Option<String>,
    /// The devices that the driver sees, in its order: `devices[1]` is `'cuda:1'`.
    pub devices: Vec<CudaDevice>,
    /// What cugather holds of their memory, and of the host's in page-locked form.
    pub memory: MemoryStatus,
}

/// Memory that cugather holds, of this process and for all of its threads.
#[napi(object)]
pub struct MemoryStatus {
    /// On all devices together; the limit is for each.
    pub device_bytes: HeldMemory,
    /// Page-locked on the host.
    pub pinned_bytes: HeldMemory,
}

/// In bytes.
#[napi(object, use_nullable = true)]
pub struct HeldMemory {
    /// The most that is kept idle for the next call, see {@link setMemoryLimits}; `null` as long as
    /// none was set and no device was used: an eighth of the device's memory then.
    pub limit: Option<f64>,
    /// Kept idle.
    pub kept: f64,
    /// In arrays and running calls.
    pub used: f64,
}

/// A CUDA device.
#[napi(object, use_nullable = true)]
pub struct CudaDevice {
    /// The name that the option `device` takes: `'cuda:0'`, `'cuda:1'`, …
    #[napi(ts_type = "`cuda:${number}`")]
    pub device: String,
    /// The model, such as `'NVIDIA H200'`; `null`, as below, where the driver does not say.
    pub name: Option<String>,
    /// Such as `'9.0'`.
    pub compute_capability: Option<String>,
    pub memory: CudaMemory,
}

/// A device's memory, in bytes.
#[napi(object, use_nullable = true)]
pub struct CudaMemory {
    pub total: Option<f64>,
    /// `null` also for a device that this process has not used yet: asking would make a context on it.
    pub free: Option<f64>,
}

/// Says whether CUDA is usable and, if not, exactly why. Makes the context on device 0 where there
/// is one (0.3 s, on a thread of libuv's pool), so that the answer is that of a gather.
///
/// Never rejects for want of CUDA: that is an answer.
#[napi(ts_return_type = "Promise<CudaStatus>")]
pub fn cuda_status(env: &Env) -> napi::Result<Unknown<'_>> {
    begin(env, Ok(StatusTask))
}

struct StatusTask;

impl Task for StatusTask {
    type Output = CudaStatus;

    fn compute(&mut self, _checkpoint: Checkpoint) -> Result<CudaStatus, Failure> {
        Ok(status())
    }

    fn resolve<'env>(
        &mut self,
        env: &'env Env,
        status: CudaStatus,
    ) -> Result<Unknown<'env>, Failure> {
        into_unknown(env, status)
    }
}

fn status() -> CudaStatus {
    let mut status = CudaStatus {
        usable: false,
        reason: None,
        driver_version: driver_version(),
        cuda_version: None,
        devices: Vec::new(),
        memory: memory(),
    };
    // Device 0 alone decides, as it does for a gather that names no device.
    match driver().and_then(|driver| Ok((driver, driver.device(0)?))) {
        Ok(_) => status.usable = true,
        Err(error) => status.reason = Some(error.reason()),
    }
    if let Ok(driver) = driver() {
        let (major, minor) = (driver.cuda_version / 1000, driver.cuda_version % 1000 / 10);
        status.cuda_version = Some(format!("{major}.{minor}"));
        status.devices = (0..driver.device_count()).map(|n| describe(driver, n)).collect();
    }
    // After device 0 is made, whose limit it is to show.
    status.memory = memory();
    status
}

fn memory() -> MemoryStatus {
    let held = |limit: Option<usize>, kept: usize, used: usize| HeldMemory {
        limit: limit.map(|bytes| bytes as f64),
        kept: kept as f64,
        used: used as f64,
    };
    let devices = device_usages();
    let sum = |of: fn(&Usage) -> usize| devices.iter().map(of).sum();
    let pinned = page_locked_usage();
    MemoryStatus {
        device_bytes: held(kept_limit(&devices), sum(|of| of.kept), sum(|of| of.used)),
        pinned_bytes: held(Some(pinned.limit), pinned.kept, pinned.used),
    }
}

fn describe(driver: &Driver, ordinal: usize) -> CudaDevice {
    let properties = Properties::of(ordinal);
    let in_use = driver.device_in_use(ordinal);
    CudaDevice {
        device: format!("cuda:{ordinal}"),
        name: properties.name,
        compute_capability: properties
            .compute_capability
            .map(|(major, minor)| format!("{major}.{minor}")),
        memory: CudaMemory {
            total: properties.total_memory.map(|bytes| bytes as f64),
            free: in_use.and_then(|device| device.free_memory()).map(|bytes| bytes as f64),
        },
    }
}

/// The version in `/proc/driver/nvidia/version`: the first word there that is numbers and dots.
fn driver_version() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    first_version(&text).map(str::to_owned)
}

fn first_version(text: &str) -> Option<&str> {
    let is_version =
        |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok());
    text.split_whitespace().find(is_version)
}

#[cfg(test)]
mod tests {
    use super::first_version;

    #[test]
    fn the_kernel_modules_version_is_found() {
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release";
        assert_eq!(first_version(open), Some("580.159.04"));
        assert_eq!(first_version("GCC version: none"), None);
    }
}
