//! Device memory that grows and is kept, and the copies to and from it.

use super::error::{During, Error};
use cudarc::driver::{result, sys};

/// A block of device memory, allocated when first needed and again only when it has to grow.
pub struct Buffer {
    address: sys::CUdeviceptr,
    bytes: usize,
}

impl Buffer {
    pub const EMPTY: Buffer = Buffer { address: 0, bytes: 0 };

    pub fn address(&self) -> sys::CUdeviceptr {
        self.address
    }

    /// Makes room for `bytes`; what the block held is lost where it has to grow. The device's
    /// context is current.
    pub fn reserve(&mut self, bytes: usize) -> Result<(), Error> {
        if bytes <= self.bytes {
            return Ok(());
        }
        self.free()?;
        let rounded = rounded(bytes);
        // SAFETY: the size is not 0.
        let allocated = unsafe { result::malloc_sync(rounded) }.during("cuMemAlloc");
        self.address = allocated.map_err(|error| match error.is_out_of_memory() {
            true => {
                Error::OutOfMemory { requested: rounded, available: result::mem_get_info().ok() }
            }
            false => error,
        })?;
        self.bytes = rounded;
        Ok(())
    }

    /// Gives the memory back. The device's context is current and no work uses the block.
    pub fn free(&mut self) -> Result<(), Error> {
        let Buffer { address, bytes } = std::mem::replace(self, Buffer::EMPTY);
        match bytes {
            0 => Ok(()),
            // SAFETY: the address came from `malloc_sync` and is forgotten here.
            _ => unsafe { result::free_sync(address) }.during("cuMemFree"),
        }
    }

    /// Begins a copy of `bytes` bytes from the host to the start of the block.
    ///
    /// # Safety
    /// `from` is readable for `bytes` bytes until the stream has been waited for.
    pub unsafe fn write(
        &self,
        from: *const u8,
        bytes: usize,
        stream: sys::CUstream,
    ) -> Result<(), Error> {
        debug_assert!(bytes <= self.bytes);
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the block has room for `bytes`, and the caller vouches for `from`. The raw call,
        // since a Rust slice may not stand for memory that JavaScript can write to meanwhile.
        unsafe { sys::cuMemcpyHtoDAsync_v2(self.address, from.cast(), bytes, stream) }
            .result()
            .during("cuMemcpyHtoDAsync")
    }

    /// Begins a copy of `bytes` bytes from `offset` in the block to the host.
    ///
    /// # Safety
    /// `to` is writable for `bytes` bytes until the stream has been waited for.
    pub unsafe fn read(
        &self,
        offset: usize,
        to: *mut u8,
        bytes: usize,
        stream: sys::CUstream,
    ) -> Result<(), Error> {
        debug_assert!(offset + bytes <= self.bytes);
        let from = self.address + offset as u64;
        // SAFETY: the block holds these bytes, and the caller vouches for `to`.
        unsafe { sys::cuMemcpyDtoHAsync_v2(to.cast(), from, bytes, stream) }
            .result()
            .during("cuMemcpyDtoHAsync")
    }

    /// Begins setting the first `bytes` bytes to `value`.
    pub fn set(&self, value: u8, bytes: usize, stream: sys::CUstream) -> Result<(), Error> {
        debug_assert!(bytes <= self.bytes);
        // SAFETY: the block has room for `bytes`.
        unsafe { result::memset_d8_async(self.address, value, bytes, stream) }
            .during("cuMemsetD8Async")
    }
}

/// A little room to grow, so that calls of about one size share a block: up to a power of two
/// while blocks are small, by pages of 2 MiB once they are not.
fn rounded(bytes: usize) -> usize {
    const PAGE: usize = 2 << 20;
    match bytes {
        0..PAGE => bytes.next_power_of_two().max(256),
        _ => bytes.div_ceil(PAGE).saturating_mul(PAGE),
    }
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn sizes_round_up() {
        assert_eq!(rounded(1), 256);
        assert_eq!(rounded(300), 512);
        assert_eq!(rounded(2 << 20), 2 << 20);
        assert_eq!(rounded((2 << 20) + 1), 4 << 20);
    }
}
