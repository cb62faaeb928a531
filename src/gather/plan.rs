//! Which route a gather takes.

use super::error::Error;
use crate::cuda::{self, Device, driver};
use std::sync::Arc;

/// The device that a caller asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceChoice {
    /// CUDA where it is usable, else the CPU.
    Default,
    /// Whatever moves the fewest bytes over the bus.
    Auto,
    Cpu,
    /// A CUDA device by its number, or an error where it is not usable.
    Cuda(usize),
}

/// What happens to the bytes.
pub enum Route {
    /// Source, index and result stay on the host.
    Cpu,
    /// Source and index go up to the device, the result comes down.
    Upload(Arc<Device>),
}

impl Route {
    /// The route for arrays on the host. May load the driver and make a context (0.3 s): never on
    /// the event loop.
    pub fn choose(choice: DeviceChoice) -> Result<Route, Error> {
        match choice {
            // The arrays are on the host already: the CPU moves nothing over the bus.
            DeviceChoice::Cpu | DeviceChoice::Auto => Ok(Route::Cpu),
            DeviceChoice::Cuda(ordinal) => Ok(Route::Upload(device(ordinal)?)),
            DeviceChoice::Default => Ok(device(0).map_or(Route::Cpu, Route::Upload)),
        }
    }
}

fn device(ordinal: usize) -> Result<Arc<Device>, cuda::Error> {
    driver()?.device(ordinal)
}
