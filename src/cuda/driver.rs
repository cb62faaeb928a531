//! Whether CUDA is there, and its devices.

use super::device::Device;
use super::error::{During, Error};
use cudarc::driver::{result, sys};
use std::error::Error as _;
use std::sync::{Arc, Mutex, OnceLock};

/// The CUDA driver, loaded and initialised.
pub struct Driver {
    /// As the driver gives it: 1000 × major + 10 × minor of the newest CUDA that it supports.
    pub cuda_version: i32,
    devices: Vec<Mutex<Slot>>,
}

/// A device, once a call has wanted it, or why it can't be had.
type Slot = Option<Result<Arc<Device>, Error>>;

/// The driver, or why there is none. Found out once a process: a machine does not grow a GPU, and
/// a failed search is not repeated at each call.
pub fn driver() -> Result<&'static Driver, Error> {
    DRIVER.get_or_init(Driver::load).as_ref().map_err(Clone::clone)
}

static DRIVER: OnceLock<Result<Driver, Error>> = OnceLock::new();

/// The driver if a call has used it already; loads nothing.
pub(super) fn loaded() -> Option<&'static Driver> {
    DRIVER.get()?.as_ref().ok()
}

/// Every driver function that this crate calls, under the name it has in the library. cudarc
/// panics where one is missing, so they are looked up beforehand.
const FUNCTIONS: &[&str] = &[
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuGetErrorName",
    "cuInit",
    "cuLaunchKernel",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemFreeHost",
    "cuMemGetInfo_v2",
    "cuMemHostAlloc",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamQuery",
];

impl Driver {
    fn load() -> Result<Driver, Error> {
        keep_library()?;
        let missing = |name: &&&str| {
            let symbol = format!("{name}\0");
            // SAFETY: the symbol is only looked up, never called through this type.
            unsafe { sys::culib().get::<unsafe extern "C" fn()>(symbol.as_bytes()) }.is_err()
        };
        if let Some(name) = FUNCTIONS.iter().find(missing) {
            return Err(Error::Unavailable(format!(
                "the libcuda that was found has no function {name}: install NVIDIA driver R525 or \
                 newer, and check that LD_LIBRARY_PATH leads to no other libcuda",
            )));
        }
        unavailable(Driver::initialise())
    }

    fn initialise() -> Result<Driver, Error> {
        result::init().during("cuInit")?;
        let mut cuda_version = 0;
        // SAFETY: writes one integer.
        unsafe { sys::cuDriverGetVersion(&mut cuda_version) }
            .result()
            .during("cuDriverGetVersion")?;
        let count = result::device::get_count().during("cuDeviceGetCount")?;
        if count <= 0 {
            return Err(Error::Unavailable("the NVIDIA driver sees no GPU".to_owned()));
        }
        let devices = (0..count).map(|_| Mutex::new(None)).collect();
        Ok(Driver { cuda_version, devices })
    }

    pub fn device_count(&self) -> usize {
        self.devices.len()
    }

    /// Device `ordinal`, ready to use: its context (0.3 s) and kernels are made on first use and
    /// kept. So is the reason where that fails, unless it was want of memory, which may pass.
    pub fn device(&self, ordinal: usize) -> Result<Arc<Device>, Error> {
        let slot = self.devices.get(ordinal).ok_or_else(|| {
            Error::Unavailable(format!(
                "there is no CUDA device {ordinal}: the driver sees {}, counted from 0",
                self.devices.len(),
            ))
        })?;
        let mut slot = slot.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let made = match slot.as_ref() {
            Some(made) => made.clone(),
            None => match Device::new(ordinal).map(Arc::new) {
                Err(error) if error.is_out_of_memory() => Err(error),
                made => slot.insert(unavailable(made)).clone(),
            },
        };
        made.and_then(|device| device.usable().map(|()| device))
    }

    /// The devices that calls have used already; makes nothing.
    pub fn devices_in_use(&self) -> impl Iterator<Item = Arc<Device>> {
        (0..self.devices.len()).filter_map(|ordinal| self.device_in_use(ordinal))
    }

    /// Device `ordinal` if a call has used it already; makes nothing.
    pub fn device_in_use(&self, ordinal: usize) -> Option<Arc<Device>> {
        let slot = self.devices.get(ordinal)?;
        let slot = slot.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        slot.as_ref()?.as_ref().ok().cloned()
    }
}

/// Loads the driver's library for as long as the process lives, or says why it can't be loaded.
fn keep_library() -> Result<(), Error> {
    let name = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };
    // SAFETY: loads a library whose initialisers are the driver's own.
    match unsafe { libloading::Library::new(name) } {
        Ok(library) => {
            std::mem::forget(library);
            Ok(())
        }
        // Some systems have it by another name alone, which cudarc looks for.
        // SAFETY: as above.
        Err(_) if unsafe { sys::is_culib_present() } => Ok(()),
        Err(error) => Err(Error::Unavailable(format!(
            "the NVIDIA driver's library could not be loaded ({}): install the NVIDIA driver \
             or, in a container, start it with --gpus all (NVIDIA Container Toolkit)",
            // The loader's own words are one level down.
            error.source().map_or_else(|| error.to_string(), ToString::to_string),
        ))),
    }
}

/// Whatever fails before the first gather means that CUDA is not usable here.
fn unavailable<T>(result: Result<T, Error>) -> Result<T, Error> {
    result.map_err(|error| Error::Unavailable(error.reason()))
}

#[cfg(test)]
mod tests {
    use super::FUNCTIONS;

    /// The whole suite runs on the stand-in, so what it has is what we call.
    #[test]
    fn every_function_that_is_called_is_looked_up_beforehand() {
        let stand_in = include_str!("../../__test__/faults/driver/functions.h");
        let of_line = |line: &'static str| line.strip_prefix("FUNCTION(")?.strip_suffix(")");
        let mut functions: Vec<_> = stand_in.lines().filter_map(of_line).collect();
        functions.push("cuGetErrorName");
        functions.sort_unstable();
        let mut listed = FUNCTIONS.to_vec();
        listed.sort_unstable();
        assert_eq!(listed, functions);
    }
}
