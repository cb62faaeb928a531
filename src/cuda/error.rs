//! What can go wrong between us and the CUDA driver, in words that say what to do.

use cudarc::driver::{DriverError, sys};
use std::ffi::{CStr, c_char};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no CUDA to use; the reason is a whole sentence.
    #[error("CUDA is not usable: {0}")]
    Unavailable(String),
    #[error(
        "the GPU is out of memory: {requested} more bytes were needed{}",
        available.map(|(free, total)| format!(" and {free} of {total} bytes are free")).unwrap_or_default()
    )]
    OutOfMemory {
        requested: usize,
        /// Free and total bytes of the device after the failure, where it could say.
        available: Option<(usize, usize)>,
    },
    #[error("the driver could not page-lock {requested} more bytes of host memory")]
    OutOfPageLockedMemory { requested: usize },
    /// A checkpoint said not to go on.
    #[error("stopped between two chunks")]
    Stopped,
    #[error("{call} failed with {name} (error {code}){}", hint(*code))]
    Driver { call: &'static str, name: String, code: u32 },
}

impl Error {
    pub(super) fn driver(call: &'static str, error: DriverError) -> Error {
        // As a number first: a newer driver may know results that cudarc's enum does not.
        let code = error.0 as u32;
        Error::Driver { call, name: name_of(code), code }
    }

    /// Why CUDA is not usable, where this is the error that says so.
    pub fn reason(&self) -> String {
        match self {
            Error::Unavailable(reason) => reason.clone(),
            other => other.to_string(),
        }
    }

    pub fn is_out_of_memory(&self) -> bool {
        const CUDA_ERROR_OUT_OF_MEMORY: u32 = sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY as u32;
        matches!(
            self,
            Error::OutOfMemory { .. }
                | Error::OutOfPageLockedMemory { .. }
                | Error::Driver { code: CUDA_ERROR_OUT_OF_MEMORY, .. }
        )
    }
}

/// Names the driver call that a result came from.
pub(super) trait During<T> {
    fn during(self, call: &'static str) -> Result<T, Error>;
}

impl<T> During<T> for Result<T, DriverError> {
    fn during(self, call: &'static str) -> Result<T, Error> {
        self.map_err(|error| Error::driver(call, error))
    }
}

/// The driver's name for a result. Asked with a plain number, since cudarc's own call takes its
/// enum, which holds only the results known to it.
fn name_of(code: u32) -> String {
    type GetErrorName = unsafe extern "C" fn(u32, *mut *const c_char) -> u32;
    // SAFETY: a result was returned, so the library is loaded; the type is cuGetErrorName's, with
    // CUresult as the 32-bit integer that it is in C.
    let get = unsafe { sys::culib().get::<GetErrorName>(b"cuGetErrorName\0") };
    let mut name = std::ptr::null();
    match get {
        // SAFETY: on success the driver sets `name` to a string that it keeps for ever.
        Ok(get) if unsafe { get(code, &mut name) } == 0 && !name.is_null() => unsafe {
            CStr::from_ptr(name).to_string_lossy().into_owned()
        },
        _ => "an error that it has no name for".to_owned(),
    }
}

/// What the user can do about a result, where there is something to say; begins with a colon.
fn hint(code: u32) -> &'static str {
    match code {
        34 => {
            ": the libcuda found is the CUDA toolkit's stub, which is for linking only; take its \
             stubs folder off LD_LIBRARY_PATH, so that the driver's own libcuda is found"
        }
        35 => ": the NVIDIA driver is older than this needs; install R525 or newer",
        100 => {
            ": no NVIDIA GPU can be seen; check nvidia-smi, CUDA_VISIBLE_DEVICES and, in a \
             container, --gpus"
        }
        209 => ": the kernels hold no code for this GPU; cugather needs compute capability 5.0",
        218 | 222 => {
            ": the NVIDIA driver does not understand the kernels' PTX (ISA 8.0); install driver \
             R525 or newer"
        }
        221 => {
            ": the driver's compiler, libnvidia-ptxjitcompiler, was not found; install the whole \
             driver and, in a container, add 'compute' to NVIDIA_DRIVER_CAPABILITIES"
        }
        223 => ": compiling PTX was switched off; unset CUDA_DISABLE_PTX_JIT and CUDA_DISABLE_JIT",
        214 | 220 | 700 | 702 | 709 | 710 | 714..=719 => {
            ": this may end CUDA for the process; restart it to go on with the GPU"
        }
        802 => {
            ": the GPU system is not ready yet; on a server with NVSwitch, start the service \
             nvidia-fabricmanager"
        }
        803 => {
            ": the driver's library and its kernel module are of different versions; restart the \
             machine after a driver update, or start the container again"
        }
        804 => {
            ": the CUDA compatibility package does not support this GPU; take its folder off \
             LD_LIBRARY_PATH"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_error_says_call_name_number_and_remedy() {
        let error =
            Error::Driver { call: "cuInit", name: "CUDA_ERROR_NO_DEVICE".to_owned(), code: 100 };
        let message = error.to_string();
        assert!(
            message.starts_with("cuInit failed with CUDA_ERROR_NO_DEVICE (error 100): no NVIDIA")
        );
        assert!(!error.is_out_of_memory());
    }

    #[test]
    fn out_of_memory_says_the_bytes() {
        let error = Error::OutOfMemory { requested: 4096, available: Some((1024, 2048)) };
        assert!(error.is_out_of_memory());
        assert!(error.to_string().contains("4096 more bytes were needed and 1024 of 2048"));
    }
}
