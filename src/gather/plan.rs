//! Which route a gather takes.

use super::error::Error;
use super::request::Shape;
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

    pub fn name(&self) -> &'static str {
        match self {
            Route::Cpu => "cpu",
            Route::Upload(_) => "upload",
        }
    }

    /// The device it runs on, by the name that a caller would ask for.
    pub fn device(&self) -> String {
        match self {
            Route::Cpu => "cpu".to_owned(),
            Route::Upload(device) => format!("cuda:{}", device.ordinal()),
        }
    }

    pub fn traffic(&self, shape: &Shape) -> Traffic {
        match self {
            Route::Cpu => Traffic { to_device: 0, from_device: 0 },
            // An empty result is known without asking the device.
            Route::Upload(_) if shape.length == 0 => Traffic { to_device: 0, from_device: 0 },
            Route::Upload(_) => Traffic {
                to_device: shape.source_bytes() + shape.index_bytes(),
                from_device: shape.out_bytes(),
            },
        }
    }
}

/// Bytes that cross the bus.
pub struct Traffic {
    pub to_device: usize,
    pub from_device: usize,
}

fn device(ordinal: usize) -> Result<Arc<Device>, cuda::Error> {
    driver()?.device(ordinal)
}
