//! Where a gather runs, and what crosses the bus for it.

use super::error::Error;
use super::request::{Input, Output, Request, Shape};
use super::storage::Storage;
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
        let inputs = [&request.source, &request.index];
        let mut residents = inputs.into_iter().filter_map(|input| match input {
            Input::Resident(storage) => Some(storage.home()),
            Input::Borrowed(_) | Input::Pinned(..) | Input::Copied(_) => None,
        });
        // Arrays that the host can read move the fewest bytes by staying there, unless the result is
        // to be where the arrays belong.
        let stays_on_host = choice == DeviceChoice::Auto
            && inputs.iter().all(|input| input.host_address().is_some());
        let Some(home) = residents.next() else {
            return Home::of_new(if stays_on_host { DeviceChoice::Cpu } else { choice });
        };
        if stays_on_host && !matches!(request.out, Output::Resident) {
            return Ok(Home::Cpu);
        }
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

/// How a kernel gets at the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceWay {
    /// It is on the device.
    Resident,
    /// It is copied there.
    Upload,
    /// It is page-locked, and the kernel reads what it wants of it over the bus.
    Mapped,
}

impl SourceWay {
    pub fn of(request: &Request) -> SourceWay {
        let shape = &request.shape;
        match &request.source {
            Input::Resident(Storage::Device(_)) => SourceWay::Resident,
            // Kept off the device because it need not fit there.
            Input::Resident(Storage::PageLocked(..)) => SourceWay::Mapped,
            Input::Pinned(..) if touched_bytes(shape) < shape.source_bytes() => SourceWay::Mapped,
            Input::Pinned(..)
            | Input::Borrowed(_)
            | Input::Copied(_)
            | Input::Resident(Storage::Host(_)) => SourceWay::Upload,
        }
    }
}

/// Bytes of the source that cross the bus where the kernel reads it from there: whole sectors, for
/// every index anew.
fn touched_bytes(shape: &Shape) -> usize {
    const SECTOR: usize = 32;
    shape.length.saturating_mul(shape.row_bytes.next_multiple_of(SECTOR))
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
        let stays = |there: bool, bytes: usize| if there { 0 } else { bytes };
        Ok(match home {
            Home::Cpu => Route { name: "cpu", home, to_device: 0, from_device: 0 },
            Home::Cuda(_) => {
                let (name, source_bytes) = match SourceWay::of(request) {
                    SourceWay::Resident => ("resident", 0),
                    SourceWay::Mapped => ("mapped", touched_bytes(shape)),
                    SourceWay::Upload => ("upload", shape.source_bytes()),
                };
                let index_stays = matches!(request.index, Input::Resident(Storage::Device(_)));
                // An empty result is known without asking the device.
                let empty = shape.length == 0;
                Route {
                    name,
                    home,
                    to_device: stays(empty, source_bytes)
                        + stays(empty || index_stays, shape.index_bytes()),
                    from_device: stays(
                        empty || matches!(request.out, Output::Resident),
                        shape.out_bytes(),
                    ),
                }
            }
        })
    }
}
