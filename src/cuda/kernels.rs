//! The kernels of `kernels/gather.cu`: loading them, and starting one.

use super::error::{During, Error};
use cudarc::driver::{result, sys};
use std::ffi::{CString, c_void};

/// Compiled by the driver for the card at hand. `npm run build:kernels` makes it.
const PTX: &str = concat!(include_str!("../../kernels/gather.ptx"), "\0");

/// Access widths in bytes; one kernel for rows of one access and one for longer rows each.
const WIDTHS: [u64; 5] = [1, 2, 4, 8, 16];

const THREADS: u32 = 256;
/// Accesses that a thread has at a time in the kernels for longer rows (N there).
const ROWS_PER_THREAD: u64 = 4;
/// The most blocks that a grid's first dimension takes. Kernels stride over the rest.
const MOST_BLOCKS: u64 = (1 << 31) - 1;

/// The index rule and the shape of one gather, in the kernels' numbers (`kernels/gather.cu`).
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Indices, and rows of the result.
    pub length: u64,
    /// Rows of the source.
    pub rows: u64,
    pub row_bytes: u64,
    pub index_type: u32,
    pub mode: u32,
    pub wrap_negative: bool,
    /// The fill value, repeated to 16 bytes.
    pub fill: [u8; 16],
}

impl Rule {
    /// Bytes of one index: the numbers are those of `IndexType` in kernels/gather.cu.
    pub fn index_size(&self) -> usize {
        1 << (self.index_type / 2)
    }

    /// Whether a row is one access, so that one thread alone reads its index.
    pub fn has_single_accesses(&self, source: sys::CUdeviceptr, out: sys::CUdeviceptr) -> bool {
        self.row_bytes >> access_width(self.row_bytes | source | out) == 1
    }
}

/// Where a gather reads and writes on the device.
pub struct Addresses {
    pub source: sys::CUdeviceptr,
    pub index: sys::CUdeviceptr,
    pub out: sys::CUdeviceptr,
    pub first_outside: sys::CUdeviceptr,
}

/// `GatherArgs` of kernels/gather.cu, field by field.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct GatherArgs {
    fill: [u8; 16],
    source: u64,
    index: u64,
    out: u64,
    first_outside: u64,
    length: u64,
    rows: u64,
    units: u64,
    units_magic: u64,
    units_shift: u32,
    index_type: u32,
    mode: u32,
    wrap_negative: u32,
}

pub struct Kernels {
    module: sys::CUmodule,
    /// For each width, the kernel for rows of one access and the one for longer rows.
    functions: [[sys::CUfunction; 2]; WIDTHS.len()],
    multiprocessors: u64,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Kernels {}
unsafe impl Sync for Kernels {}

impl Kernels {
    /// Loads the kernels into the current context, which is that of `device`.
    pub fn load(device: sys::CUdevice) -> Result<Kernels, Error> {
        use sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT as MULTIPROCESSORS;
        // SAFETY: the device exists.
        let multiprocessors = unsafe { result::device::get_attribute(device, MULTIPROCESSORS) }
            .during("cuDeviceGetAttribute")?;
        // SAFETY: the image is PTX with a NUL at its end.
        let module =
            unsafe { result::module::load_data(PTX.as_ptr().cast()) }.during("cuModuleLoadData")?;
        let mut kernels = Kernels {
            module,
            functions: [[std::ptr::null_mut(); 2]; WIDTHS.len()],
            multiprocessors: multiprocessors.max(1) as u64,
        };
        kernels.find_functions().inspect_err(|_| kernels.unload())?;
        Ok(kernels)
    }

    fn find_functions(&mut self) -> Result<(), Error> {
        for (found, width) in self.functions.iter_mut().zip(WIDTHS) {
            for (function, kind) in found.iter_mut().zip(["row", "rows"]) {
                let name = CString::new(format!("gather_{kind}_{width}")).unwrap_or_default();
                // SAFETY: the module is loaded.
                *function = unsafe { result::module::get_function(self.module, name) }
                    .during("cuModuleGetFunction")?;
            }
        }
        Ok(())
    }

    fn unload(&self) {
        // SAFETY: nothing has been launched from the module.
        let _ = unsafe { result::module::unload(self.module) };
    }

    /// Starts the gather on `stream`. `first_outside` must have been set to its greatest value.
    ///
    /// One that reads its index or writes its result over the bus needs few threads to keep that
    /// busy, and is faster with no more than a block to a multiprocessor: measured on an H200, 116 us
    /// for 1 Mi against 124.
    ///
    /// # Safety
    /// The addresses, of the device or of page-locked memory, hold what `rule` says of them until the
    /// stream has been waited for, and `out` overlaps none of the others. `rule.length` and
    /// `rule.row_bytes` are not 0, and their product is below 2^63.
    pub unsafe fn launch(
        &self,
        rule: &Rule,
        at: &Addresses,
        stream: sys::CUstream,
        crosses_bus: bool,
    ) -> Result<(), Error> {
        let width = access_width(rule.row_bytes | at.source | at.out);
        let units = rule.row_bytes >> width;
        let (units_magic, units_shift) = divisor(units);
        let mut args = GatherArgs {
            fill: rule.fill,
            source: at.source,
            index: at.index,
            out: at.out,
            first_outside: at.first_outside,
            length: rule.length,
            rows: rule.rows,
            units,
            units_magic,
            units_shift,
            index_type: rule.index_type,
            mode: rule.mode,
            wrap_negative: rule.wrap_negative.into(),
        };
        let (kind, per_thread) = if units == 1 { (0, 1) } else { (1, ROWS_PER_THREAD) };
        let blocks = (rule.length * units).div_ceil(u64::from(THREADS) * per_thread);
        let most = if crosses_bus { self.multiprocessors } else { MOST_BLOCKS };
        let grid = (blocks.min(most) as u32, 1, 1);
        let mut parameters = [(&raw mut args).cast::<c_void>()];
        let function = self.functions[width][kind];
        // SAFETY: the kernel takes one GatherArgs by value, and the caller vouches for its content.
        unsafe {
            result::launch_kernel(function, grid, (THREADS, 1, 1), 0, stream, &mut parameters)
        }
        .during("cuLaunchKernel")
    }
}

/// The place in [`WIDTHS`] (and the power of two) of the widest access that divides all the numbers
/// that were or-ed together.
fn access_width(together: u64) -> usize {
    (together.trailing_zeros() as usize).min(WIDTHS.len() - 1)
}

/// `magic` and `shift` such that `t / units == (t * magic >> 64) >> shift` for every t below 2^63:
/// division by an invariant integer (Granlund and Montgomery, 1994). `units` is at least 2; for 1
/// the kernels do not divide.
fn divisor(units: u64) -> (u64, u32) {
    if units < 2 {
        return (0, 0);
    }
    let bits = u64::BITS - (units - 1).leading_zeros();
    let magic = (1u128 << (63 + bits)) / u128::from(units) + 1;
    (magic as u64, bits - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_widest_access_that_fits_is_taken() {
        assert_eq!(access_width(0x100 | 0x200 | 64), 4);
        assert_eq!(access_width(0x100 | 0x200 | 24), 3);
        assert_eq!(access_width(0x104 | 0x200 | 32), 2);
        assert_eq!(access_width(0x100 | 0x200 | 6), 1);
        assert_eq!(access_width(0x101 | 0x200 | 16), 0);
    }

    #[test]
    fn the_arguments_have_the_size_of_the_kernels_struct() {
        assert_eq!(size_of::<GatherArgs>(), 96);
        assert!(PTX.contains(".param .align 16 .b8 gather_rows_16_param_0[96]"));
    }

    #[test]
    fn the_image_holds_every_kernel() {
        for width in WIDTHS {
            assert!(PTX.contains(&format!(".entry gather_row_{width}(")));
            assert!(PTX.contains(&format!(".entry gather_rows_{width}(")));
        }
    }

    proptest! {
        #[test]
        fn dividing_by_multiplying_is_exact(
            units in prop_oneof![2u64..70, 2..=(1u64 << 63)],
            quotient: u64,
            off in -1i64..=1,
            any in 0..(1u64 << 63),
        ) {
            let (magic, shift) = divisor(units);
            let divide = |t: u64| ((u128::from(t) * u128::from(magic)) >> 64) as u64 >> shift;
            // Numbers around a multiple are where a wrong magic number shows.
            let near = (quotient % ((1 << 63) / units + 1) * units).saturating_add_signed(off);
            for t in [any, near.min((1 << 63) - 1), (1 << 63) - 1, 0] {
                prop_assert_eq!(divide(t), t / units, "{} / {}", t, units);
            }
        }
    }
}
