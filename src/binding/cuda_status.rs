//! `cudaStatus`: is CUDA usable, and if not, why.

use super::failure::Failure;
use super::task::caught;
use crate::cuda::{self, Properties, driver};
use napi::bindgen_prelude::AsyncTask;
use napi::{Env, Task};
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
}

/// A CUDA device.
#[napi(object, use_nullable = true)]
pub struct CudaDevice {
    /// The name that the option `device` takes: `'cuda:0'`, `'cuda:1'`, …
    #[napi(ts_type = "`cuda:${number}`")]
    pub device: String,
    /// The model, such as `'NVIDIA H200'`.
    pub name: String,
    /// Such as `'9.0'`.
    pub compute_capability: String,
    pub memory: CudaMemory,
}

/// A device's memory, in bytes.
#[napi(object, use_nullable = true)]
pub struct CudaMemory {
    pub total: f64,
    /// `null` for a device that this process has not used yet: asking would make a context on it.
    pub free: Option<f64>,
}

/// Says whether CUDA is usable and, if not, exactly why. Makes the context on device 0 where there
/// is one (0.3 s, on a thread of libuv's pool), so that the answer is that of a gather.
///
/// Never rejects for want of CUDA: that is an answer.
#[napi(ts_return_type = "Promise<CudaStatus>")]
pub fn cuda_status() -> AsyncTask<StatusTask> {
    AsyncTask::new(StatusTask)
}

pub struct StatusTask;

impl Task for StatusTask {
    type Output = Result<CudaStatus, Failure>;
    type JsValue = CudaStatus;

    fn compute(&mut self) -> napi::Result<Self::Output> {
        Ok(caught(|| Ok(status())))
    }

    fn resolve(&mut self, env: Env, output: Self::Output) -> napi::Result<CudaStatus> {
        output.map_err(|failure| failure.into_error(&env, false))
    }
}

fn status() -> CudaStatus {
    let mut status = CudaStatus {
        usable: false,
        reason: None,
        driver_version: driver_version(),
        cuda_version: None,
        devices: Vec::new(),
    };
    if let Err(error) = look(&mut status) {
        status.usable = false;
        status.reason = Some(error.reason());
    }
    status
}

/// Fills in what can be found, up to the first thing that fails.
fn look(status: &mut CudaStatus) -> Result<(), cuda::Error> {
    let driver = driver()?;
    let (major, minor) = (driver.cuda_version / 1000, driver.cuda_version % 1000 / 10);
    status.cuda_version = Some(format!("{major}.{minor}"));
    let usable = driver.device(0);
    for ordinal in 0..driver.device_count() {
        let Properties { name, total_memory, compute_capability } = Properties::of(ordinal)?;
        let free = match driver.device_in_use(ordinal) {
            Some(device) => Some(device.memory()?.0 as f64),
            None => None,
        };
        status.devices.push(CudaDevice {
            device: format!("cuda:{ordinal}"),
            name,
            compute_capability: format!("{}.{}", compute_capability.0, compute_capability.1),
            memory: CudaMemory { total: total_memory as f64, free },
        });
    }
    usable?;
    status.usable = true;
    Ok(())
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
