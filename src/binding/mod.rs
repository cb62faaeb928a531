//! The border to JavaScript.

mod arguments;
mod cuda_gather;
mod cuda_status;
mod describe;
mod explain;
mod failure;
mod memory_limits;
mod options;
mod pace;
mod pinned;
mod queue;
mod resident_array;
mod resident_copies;
mod tag;
mod task;
mod typed_array;

use napi::bindgen_prelude::{Object, retain_current_module_for_unload_safety};
use napi_derive::napi;
use std::sync::Once;

/// Once a process, when the addon is first loaded.
#[napi(module_exports)]
pub fn init(_exports: Object) -> napi::Result<()> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Our threads and the driver's outlive the environment that first loaded the addon, which
        // may be a worker's: its code must stay mapped.
        retain_current_module_for_unload_safety();
        // A panic becomes a rejection (see `task`), and a library does not write to stderr.
        #[cfg(not(test))]
        std::panic::set_hook(Box::new(|_| {}));
    });
    Ok(())
}
