//! `pinned`: typed arrays in page-locked memory.

use super::failure::Failure;
use super::options::read_length;
use super::task::{Reference, Task, begin, hold};
use super::typed_array::{Class, Realm};
use crate::checkpoint::Checkpoint;
use crate::cuda::{Lent, driver};
use crate::gather;
use napi::bindgen_prelude::{FnArgs, Function, Unknown};
use napi::{Env, sys};
use napi_derive::napi;
use std::ffi::c_void;
use std::sync::Arc;

/// Promises the `ArrayBuffer` for `length` elements of a class, in page-locked memory; where there is
/// none to be had for want of CUDA, or where this runtime takes no memory of others, the ordinary
/// typed array. index.js makes the one into the other, since only there are the caller's classes.
#[napi(skip_typescript)]
pub fn pinned<'env>(
    env: &'env Env,
    class: Unknown<'env>,
    number: i32,
    length: Unknown<'env>,
    create: Function<'env, FnArgs<(u32, f64)>, Unknown<'env>>,
    buffer_kind: Function<'env, Unknown<'env>, u32>,
) -> napi::Result<Unknown<'env>> {
    let realm = Realm { create, buffer_kind };
    let prepare = || {
        let class = Class::numbered(number, class)?;
        let length = read_length(length)?;
        // Made first of all, so that a length too large for an array ends here.
        let ordinary = realm.create(class, length)?;
        let bytes = length * class.dtype().size();
        Ok(PinnedTask { bytes, ordinary: hold(ordinary.value)? })
    };
    begin(env, prepare())
}

struct PinnedTask {
    bytes: usize,
    ordinary: Reference,
}

impl Task for PinnedTask {
    type Output = Option<Arc<Lent>>;

    fn compute(&mut self, _checkpoint: Checkpoint) -> Result<Self::Output, Failure> {
        // Page-locked memory serves every device; device 0 decides, as for a gather.
        let device = driver().and_then(|driver| driver.device(0));
        match device.ok().filter(|_| self.bytes > 0) {
            Some(device) => Ok(Some(Lent::new(&device, self.bytes).map_err(gather::Error::from)?)),
            None => Ok(None),
        }
    }

    fn resolve<'env>(
        &mut self,
        env: &'env Env,
        lent: Self::Output,
    ) -> Result<Unknown<'env>, Failure> {
        let buffer = lent.map(|lent| buffer_over(env, lent, self.bytes)).transpose()?.flatten();
        buffer.map_or_else(|| Ok(self.ordinary.get_value(env)?), Ok)
    }

    fn finish(self, env: &Env) {
        let _ = self.ordinary.unref(env);
    }
}

/// An `ArrayBuffer` over lent memory, which goes back when it is collected; `None` where the runtime
/// refuses memory that is not its own, as Electron does.
fn buffer_over<'env>(
    env: &'env Env,
    lent: Arc<Lent>,
    bytes: usize,
) -> napi::Result<Option<Unknown<'env>>> {
    unsafe extern "C" fn give_back(_env: sys::napi_env, _data: *mut c_void, lent: *mut c_void) {
        // SAFETY: the hint is what `into_raw` gave below, and this is called once.
        drop(unsafe { Arc::from_raw(lent.cast::<Lent>().cast_const()) });
    }
    let address = lent.address().cast();
    let hint = Arc::into_raw(lent).cast_mut().cast();
    let mut buffer = std::ptr::null_mut();
    // SAFETY: the memory is as long and lives until `give_back` is called.
    let status = unsafe {
        sys::napi_create_external_arraybuffer(
            env.raw(),
            address,
            bytes,
            Some(give_back),
            hint,
            &mut buffer,
        )
    };
    if status != sys::Status::napi_ok {
        // SAFETY: no buffer was made that would call it.
        unsafe { give_back(env.raw(), address, hint) };
        if status == sys::Status::napi_no_external_buffers_allowed {
            return Ok(None);
        }
        napi::check_status!(status)?;
    }
    // SAFETY: the buffer was just made in this environment.
    Ok(Some(unsafe { Unknown::from_raw_unchecked(env.raw(), buffer) }))
}
