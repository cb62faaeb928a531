//! Copies to and from a `DeviceArray`: `from`, `toHost` and `update`.

use super::failure::Failure;
use super::options::CreationOptions;
use super::resident_array::{Kind, ResidentArray};
use super::task::{Held, Task, begin, taken, undefined};
use super::typed_array::{Memory, Realm, View};
use crate::checkpoint::Checkpoint;
use crate::gather::{self, DeviceChoice, Input, Placement, Storage};
use napi::Env;
use napi::bindgen_prelude::{FnArgs, Function, Unknown};
use napi_derive::napi;

/// Memory of the host that a task writes.
struct HostMemory(Memory);

// SAFETY: the view that it is of is held, and followed by one task.
unsafe impl Send for HostMemory {}

/// Memory of the host that a task reads: the caller's own, which is held, or a copy taken at the
/// call.
struct HostInput {
    input: Input,
    bytes: usize,
    held: Vec<Held>,
}

// SAFETY: as above.
unsafe impl Send for HostInput {}

impl HostInput {
    fn of(view: &View) -> Result<HostInput, Failure> {
        let (memory, mut held) = (view.memory()?, Vec::new());
        let input = taken(view, memory, 1, &mut held)?;
        Ok(HostInput { input, bytes: memory.bytes, held })
    }

    fn address(&self) -> *const u8 {
        self.input.host_address().expect("made of a view of the host")
    }

    /// A failure where the caller has moved the memory away since.
    fn check(&self, env: &Env) -> Result<(), Failure> {
        self.held.iter().try_for_each(|held| held.check(env))
    }

    fn release(self, env: &Env) {
        self.held.into_iter().for_each(|held| held.release(env));
    }
}

/// `DeviceArray.from`
#[napi(skip_typescript)]
pub fn create_resident<'env>(
    env: &'env Env,
    source: Unknown<'env>,
    options: Unknown<'env>,
    default_device: Unknown<'env>,
    create: Function<'env, FnArgs<(u32, f64)>, Unknown<'env>>,
    buffer_kind: Function<'env, Unknown<'env>, u32>,
) -> napi::Result<Unknown<'env>> {
    let realm = Realm { create, buffer_kind };
    let prepare = || {
        let options = CreationOptions::read(options, default_device)?;
        let view = View::of(source, "source", "a typed array", |_| true, &realm)?;
        let CreationOptions { row_length, device, placement } = options;
        gather::rows_of(view.length, row_length)?;
        let kind = Kind { class: view.class, length: view.length, row_length };
        Ok(CreateTask { from: HostInput::of(&view)?, kind, device, placement })
    };
    begin(env, prepare())
}

struct CreateTask {
    from: HostInput,
    kind: Kind,
    device: DeviceChoice,
    placement: Placement,
}

impl Task for CreateTask {
    type Output = Storage;

    fn compute(&mut self, checkpoint: Checkpoint) -> Result<Storage, Failure> {
        let HostInput { bytes, .. } = self.from;
        // SAFETY: the memory is our own copy, or that of a view that is held.
        let storage = unsafe {
            let from = self.from.address();
            Storage::copy_of(from, bytes, self.device, self.placement, checkpoint)?
        };
        Ok(storage)
    }

    fn resolve<'env>(
        &mut self,
        env: &'env Env,
        storage: Storage,
    ) -> Result<Unknown<'env>, Failure> {
        self.from.check(env)?;
        Ok(ResidentArray::into_value(env, storage, self.kind)?)
    }

    fn finish(self, env: &Env) {
        self.from.release(env);
    }
}

/// `DeviceArray.prototype.toHost`
#[napi(skip_typescript)]
pub fn read_resident<'env>(
    env: &'env Env,
    this: Unknown<'env>,
    create: Function<'env, FnArgs<(u32, f64)>, Unknown<'env>>,
    buffer_kind: Function<'env, Unknown<'env>, u32>,
) -> napi::Result<Unknown<'env>> {
    let realm = Realm { create, buffer_kind };
    let prepare = || {
        let (storage, kind) = ResidentArray::of_this(this)?;
        let result = realm.create(kind.class, kind.length)?;
        let to = HostMemory(result.memory()?);
        Ok(ReadTask { storage, to, result: Held::of(&result)? })
    };
    begin(env, prepare())
}

struct ReadTask {
    storage: Storage,
    to: HostMemory,
    result: Held,
}

impl Task for ReadTask {
    type Output = ();

    fn compute(&mut self, checkpoint: Checkpoint) -> Result<(), Failure> {
        let Memory { address, bytes } = self.to.0;
        // SAFETY: the view is held, was made for this, and is as long as the storage.
        unsafe { self.storage.read(address, bytes, checkpoint)? };
        Ok(())
    }

    fn resolve<'env>(&mut self, env: &'env Env, (): ()) -> Result<Unknown<'env>, Failure> {
        self.result.value(env)
    }

    fn new_bytes(&self) -> usize {
        self.to.0.bytes
    }

    fn finish(self, env: &Env) {
        self.result.release(env);
    }
}

/// `DeviceArray.prototype.update`
#[napi(skip_typescript)]
pub fn write_resident<'env>(
    env: &'env Env,
    this: Unknown<'env>,
    offset: Unknown<'env>,
    values: Unknown<'env>,
    create: Function<'env, FnArgs<(u32, f64)>, Unknown<'env>>,
    buffer_kind: Function<'env, Unknown<'env>, u32>,
) -> napi::Result<Unknown<'env>> {
    let realm = Realm { create, buffer_kind };
    let prepare = || {
        let (storage, kind) = ResidentArray::of_this(this)?;
        let expected = kind.class.with_article();
        let values = View::of(values, "values", &expected, |class| class == kind.class, &realm)?;
        let offset = super::options::read_offset(offset, kind.length)?;
        if values.length > kind.length - offset {
            return Err(Failure::OutOfRange(format!(
                "Expected at most {} values from offset {offset} of a DeviceArray of length {} but \
                 received {}",
                kind.length - offset,
                kind.length,
                values.length,
            )));
        }
        let offset = offset * kind.class.dtype().size();
        Ok(WriteTask { storage, offset, from: HostInput::of(&values)? })
    };
    begin(env, prepare())
}

struct WriteTask {
    storage: Storage,
    /// In bytes.
    offset: usize,
    from: HostInput,
}

impl Task for WriteTask {
    type Output = ();

    fn compute(&mut self, checkpoint: Checkpoint) -> Result<(), Failure> {
        let HostInput { bytes, .. } = self.from;
        // SAFETY: the memory is our own copy, or that of a view that is held; that it fits in was
        // checked at the call.
        unsafe { self.storage.write(self.offset, self.from.address(), bytes, checkpoint)? };
        Ok(())
    }

    fn resolve<'env>(&mut self, env: &'env Env, (): ()) -> Result<Unknown<'env>, Failure> {
        self.from.check(env)?;
        undefined(env)
    }

    fn finish(self, env: &Env) {
        self.from.release(env);
    }
}
