//! Where a gather runs, and what crosses the bus for it.

use super::error::Error;
use super::request::{Input, Output, Request};
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

/// A place where memory is and gathers run.
#[derive(Clone)]
pub enum Home {
    Cpu,
    Cuda(Arc<Device>),
}

impl Home {
    /// By the name that a caller would ask for.
    pub fn name(&self) -> String {
        match self {
            Home::Cpu => "cpu".to_owned(),
            Home::Cuda(device) => format!("cuda:{}", device.ordinal()),
        }
    }

    /// The place for a new resident array. May load the driver and make a context (0.3 s): never
    /// on the event loop.
    pub fn of_new(choice: DeviceChoice) -> Result<Home, Error> {
        match choice {
            DeviceChoice::Cpu => Ok(Home::Cpu),
            DeviceChoice::Cuda(ordinal) => Ok(Home::Cuda(device(ordinal)?)),
            DeviceChoice::Default | DeviceChoice::Auto => {
                Ok(device(0).map_or(Home::Cpu, Home::Cuda))
            }
        }
    }

    /// The place for a gather: where its resident arrays are, or for arrays on the host where
    /// `choice` leads to.
    pub fn of(request: &Request, choice: DeviceChoice) -> Result<Home, Error> {
        let mut residents =
            [&request.source, &request.index].into_iter().filter_map(|input| match input {
                Input::Resident(storage) => Some(storage.home()),
                Input::Borrowed(_) | Input::Copied(_) => None,
            });
        let Some(home) = residents.next() else {
            // Arrays that are on the host already move the fewest bytes by staying there.
            return Home::of_new(if choice == DeviceChoice::Auto {
                DeviceChoice::Cpu
            } else {
                choice
            });
        };
        let asked = match choice {
            DeviceChoice::Default | DeviceChoice::Auto => None,
            DeviceChoice::Cpu => Some("cpu".to_owned()),
            DeviceChoice::Cuda(ordinal) => Some(format!("cuda:{ordinal}")),
        };
        for other in residents.map(|home| home.name()).chain(asked) {
            if other != home.name() {
                return Err(Error::Apart { first: home.name(), second: other });
            }
        }
        match &home {
            // As for a gather that names it: a device whose context has died is not usable.
            Home::Cuda(on) => Ok(Home::Cuda(device(on.ordinal())?)),
            Home::Cpu => Ok(home),
        }
    }
}

fn device(ordinal: usize) -> Result<Arc<Device>, cuda::Error> {
    driver()?.device(ordinal)
}

/// The way of a gather's bytes.
pub struct Route {
    pub name: &'static str,
    pub home: Home,
    /// Bytes that cross the bus.
    pub to_device: usize,
    pub from_device: usize,
}

impl Route {
    pub fn of(request: &Request, choice: DeviceChoice) -> Result<Route, Error> {
        let shape = &request.shape;
        let home = Home::of(request, choice)?;
        let is_resident = |input: &Input| matches!(input, Input::Resident(_));
        let stays = |there: bool, bytes: usize| if there { 0 } else { bytes };
        Ok(match home {
            Home::Cpu => Route { name: "cpu", home, to_device: 0, from_device: 0 },
            Home::Cuda(_) => {
                let source_stays = is_resident(&request.source);
                // An empty result is known without asking the device.
                let empty = shape.length == 0;
                Route {
                    name: if source_stays { "resident" } else { "upload" },
                    home,
                    to_device: stays(empty || source_stays, shape.source_bytes())
                        + stays(empty || is_resident(&request.index), shape.index_bytes()),
                    from_device: stays(
                        empty || matches!(request.out, Output::Resident),
                        shape.out_bytes(),
                    ),
                }
            }
        })
    }
}
