//! How much idle memory is kept, on every device and page-locked on the host.

use super::device::{self, Device};
use super::driver;
use super::page_locked::POOL;
use super::pool::Usage;
use std::sync::Arc;

/// Sets how many bytes of idle blocks each device, and the process in page-locked memory, keep for
/// the next call, and frees what is beyond. `None` leaves a limit as it is. Loads no driver.
pub fn set_kept_limits(device_bytes: Option<usize>, page_locked_bytes: Option<usize>) {
    if let Some(bytes) = page_locked_bytes {
        POOL.set_limit(bytes);
    }
    if let Some(bytes) = device_bytes {
        device::set_kept_limit(bytes);
    }
    // Where page-locked blocks are, some device is in use: they are made with its context.
    if let Some(driver) = driver::loaded() {
        for device in driver.devices_in_use() {
            match device_bytes {
                Some(bytes) => device.set_kept_limit(bytes),
                None => device.trim(),
            }
        }
    }
}

/// The limit for each device: what the process has asked for, or what the first one that is in use
/// keeps by itself.
pub fn kept_limit(devices: &[Usage]) -> Option<usize> {
    device::kept_limit().or(devices.first().map(|usage| usage.limit))
}

/// Bytes in our blocks of each device that is in use, once what is beyond the limits is freed: what
/// was collected since the last call.
pub fn device_usages() -> Vec<Usage> {
    let usage = |device: Arc<Device>| {
        device.trim();
        device.usage()
    };
    driver::loaded().map(|driver| driver.devices_in_use().map(usage).collect()).unwrap_or_default()
}

/// Bytes of page-locked memory in our blocks.
pub fn page_locked_usage() -> Usage {
    POOL.usage()
}
