//! The native side of `DeviceArray`: an array that lives where gathers run. `index.js` wraps it.

use super::describe::describe;
use super::failure::Failure;
use super::options::CreationOptions;
use super::task::{Reference, begin, caught, hold, taken};
use super::typed_array::{Class, Memory, Realm, View};
use crate::gather::{self, DeviceChoice, Input, Placement, Storage};
use napi::bindgen_prelude::{
    ClassInstance, FnArgs, FromNapiValue, Function, JavaScriptClassExt, ObjectFinalize, TypeTag,
    Unknown,
};
use napi::{Env, JsValue, ScopedTask, Task, ValueType, sys};
use napi_derive::napi;

/// What a resident array is, without the array.
#[derive(Clone, Copy)]
pub struct Kind {
    pub class: Class,
    /// Elements.
    pub length: usize,
    pub row_length: usize,
}

impl Kind {
    pub fn bytes(&self) -> usize {
        self.length * self.class.dtype().size()
    }
}

/// Not for users: `DeviceArray` in index.js holds one of these in a private field.
#[napi(custom_finalize)]
pub struct ResidentArray {
    /// `None` once it is disposed of. Gathers in flight have clones.
    storage: Option<Storage>,
    kind: Kind,
    device: String,
}

#[napi]
impl ResidentArray {
    #[napi(getter)]
    pub fn length(&self) -> f64 {
        self.kind.length as f64
    }

    #[napi(getter)]
    pub fn row_length(&self) -> f64 {
        self.kind.row_length as f64
    }

    /// numpy's name for the type of an element.
    #[napi(getter)]
    pub fn dtype(&self) -> &'static str {
        self.kind.class.dtype().name()
    }

    #[napi(getter)]
    pub fn byte_length(&self) -> f64 {
        self.kind.bytes() as f64
    }

    #[napi(getter)]
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Lets the memory go as soon as no gather uses it. A second call does nothing.
    #[napi]
    pub fn dispose(&mut self, env: &Env) -> napi::Result<()> {
        if let Some(storage) = self.release(env)? {
            env.spawn(ReleaseTask(Some(storage)))?;
        }
        Ok(())
    }
}

impl ResidentArray {
    /// As a JavaScript object. Its memory counts for the garbage collector, which could not see it
    /// otherwise and would let abandoned arrays pile up.
    pub fn into_value<'env>(
        env: &'env Env,
        storage: Storage,
        kind: Kind,
    ) -> napi::Result<Unknown<'env>> {
        let device = storage.home().name();
        let array = ResidentArray { storage: Some(storage), kind, device };
        let value = array.into_instance(env)?.to_unknown();
        env.adjust_external_memory(kind.bytes() as i64)?;
        Ok(value)
    }

    fn release(&mut self, env: &Env) -> napi::Result<Option<Storage>> {
        let storage = self.storage.take();
        if storage.is_some() {
            env.adjust_external_memory(-(self.kind.bytes() as i64))?;
        }
        Ok(storage)
    }

    /// The resident array in a value, or `None` where there is none; what `name` was disposed of is
    /// an error.
    pub fn of(value: Unknown, name: &'static str) -> Result<Option<(Storage, Kind)>, Failure> {
        if value.get_type()? != ValueType::Object {
            return Ok(None);
        }
        let env = value.value().env;
        let mut is_ours = false;
        // SAFETY: the environment is the value's own. The tag is on no object but ours, and asking
        // for it runs no code of the caller's; a status other than ok leaves `is_ours` false.
        unsafe {
            let tag = ResidentArray::type_tag();
            sys::napi_check_object_type_tag(env, value.raw(), &tag, &mut is_ours);
        }
        if !is_ours {
            return Ok(None);
        }
        // SAFETY: as above; the value is an instance of the class.
        let array = unsafe { ClassInstance::<ResidentArray>::from_napi_value(env, value.raw()) }?;
        match &array.storage {
            Some(storage) => Ok(Some((storage.clone(), array.kind))),
            None => Err(Failure::Disposed(name)),
        }
    }

    fn of_this(this: Unknown) -> Result<(Storage, Kind), Failure> {
        ResidentArray::of(this, "this DeviceArray")?
            .ok_or_else(|| Failure::invalid_type("this", "a DeviceArray", describe(this)))
    }
}

impl ObjectFinalize for ResidentArray {
    fn finalize(mut self, env: Env) -> napi::Result<()> {
        // What a device keeps of it beyond its limit goes with the next job there.
        self.release(&env).map(drop)
    }
}

/// Memory of the host that a task writes.
struct HostMemory(Memory);

// SAFETY: the view that it is of is held, and followed by one task.
unsafe impl Send for HostMemory {}

/// Memory of the host that a task reads: the caller's own, or a copy taken at the call.
struct HostInput(Input, usize);

// SAFETY: as above.
unsafe impl Send for HostInput {}

impl HostInput {
    fn of(view: &View, held: &mut Vec<Reference>) -> Result<HostInput, Failure> {
        let memory = view.memory()?;
        Ok(HostInput(taken(view, memory, 1, held)?, memory.bytes))
    }

    fn address(&self) -> *const u8 {
        self.0.host_address().expect("made of a view of the host")
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
        let row_length = options.row_length;
        gather::rows_of(view.length, row_length)?;
        let mut held = Vec::new();
        Ok(CreateTask {
            from: HostInput::of(&view, &mut held)?,
            kind: Kind { class: view.class, length: view.length, row_length },
            device: options.device,
            placement: options.placement,
            held,
        })
    };
    begin(env, prepare())
}

struct CreateTask {
    from: HostInput,
    kind: Kind,
    device: DeviceChoice,
    placement: Placement,
    held: Vec<Reference>,
}

impl<'env> ScopedTask<'env> for CreateTask {
    type Output = Result<Storage, Failure>;
    type JsValue = Unknown<'env>;

    fn compute(&mut self) -> napi::Result<Self::Output> {
        Ok(caught(|| {
            let (address, bytes) = (self.from.address(), self.from.1);
            // SAFETY: the memory is our own copy, or that of a view that is held.
            unsafe { Storage::copy_of(address, bytes, self.device, self.placement, &|| true) }
                .map_err(Failure::Gather)
        }))
    }

    fn resolve(&mut self, env: &'env Env, output: Self::Output) -> napi::Result<Unknown<'env>> {
        match output {
            Ok(storage) => ResidentArray::into_value(env, storage, self.kind),
            Err(failure) => Err(failure.into_rejection(env, false)),
        }
    }

    fn finally(self, env: Env) -> napi::Result<()> {
        self.held.into_iter().try_for_each(|value| value.unref(&env))
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
        Ok(ReadTask { storage, to: HostMemory(result.memory()?), held: hold(result.value)? })
    };
    begin(env, prepare())
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
        let mut held = Vec::new();
        Ok(WriteTask { storage, offset, from: HostInput::of(&values, &mut held)?, held })
    };
    begin(env, prepare())
}

struct ReadTask {
    storage: Storage,
    to: HostMemory,
    held: Reference,
}

impl<'env> ScopedTask<'env> for ReadTask {
    type Output = Result<(), Failure>;
    type JsValue = Unknown<'env>;

    fn compute(&mut self) -> napi::Result<Self::Output> {
        Ok(caught(|| {
            let Memory { address, bytes } = self.to.0;
            // SAFETY: the view is held, was made for this, and is as long as the storage.
            unsafe { self.storage.read(address, bytes, &|| true) }.map_err(Failure::Gather)
        }))
    }

    fn resolve(&mut self, env: &'env Env, output: Self::Output) -> napi::Result<Unknown<'env>> {
        match output {
            Ok(()) => self.held.get_value(env),
            Err(failure) => Err(failure.into_rejection(env, false)),
        }
    }

    fn finally(self, env: Env) -> napi::Result<()> {
        self.held.unref(&env)
    }
}

struct WriteTask {
    storage: Storage,
    /// In bytes.
    offset: usize,
    from: HostInput,
    held: Vec<Reference>,
}

impl Task for WriteTask {
    type Output = Result<(), Failure>;
    type JsValue = ();

    fn compute(&mut self) -> napi::Result<Self::Output> {
        Ok(caught(|| {
            let (address, bytes) = (self.from.address(), self.from.1);
            // SAFETY: the memory is our own copy, or that of a view that is held; that it fits in
            // was checked at the call.
            unsafe { self.storage.write(self.offset, address, bytes, &|| true) }
                .map_err(Failure::Gather)
        }))
    }

    fn resolve(&mut self, env: Env, output: Self::Output) -> napi::Result<()> {
        output.map_err(|failure| failure.into_rejection(&env, false))
    }

    fn finally(self, env: Env) -> napi::Result<()> {
        self.held.into_iter().try_for_each(|value| value.unref(&env))
    }
}

/// Lets memory go where that may wait for a device: not on the event loop.
struct ReleaseTask(Option<Storage>);

impl Task for ReleaseTask {
    type Output = ();
    type JsValue = ();

    fn compute(&mut self) -> napi::Result<()> {
        if let Some(storage) = self.0.take() {
            storage.release();
        }
        Ok(())
    }

    fn resolve(&mut self, _env: Env, (): ()) -> napi::Result<()> {
        Ok(())
    }
}
