//! The native side of `DeviceArray`: an array that lives where gathers run. `index.js` wraps it.

use super::describe::describe;
use super::failure::Failure;
use super::tag;
use super::task::{Task, begin, undefined};
use super::typed_array::Class;
use crate::checkpoint::Checkpoint;
use crate::gather::Storage;
use napi::bindgen_prelude::{
    ClassInstance, FromNapiValue, JavaScriptClassExt, ObjectFinalize, TypeTag, Unknown,
};
use napi::{Env, JsValue};
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

/// Whether a value is a resident array, of whichever copy of index.js: each has a class of its own.
#[napi(skip_typescript)]
pub fn is_resident(value: Unknown) -> bool {
    tag::is_on(value, &ResidentArray::type_tag())
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

    #[napi(getter)]
    pub fn disposed(&self) -> bool {
        self.storage.is_none()
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
        match self.release(env)? {
            // The promise is nobody's: letting go can't fail.
            Some(storage) => begin(env, Ok(ReleaseTask(Some(storage)))).map(drop),
            None => Ok(()),
        }
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
        if !is_resident(value) {
            return Ok(None);
        }
        let env = value.value().env;
        // SAFETY: the environment is the value's own; the value is an instance of the class.
        let array = unsafe { ClassInstance::<ResidentArray>::from_napi_value(env, value.raw()) }?;
        match &array.storage {
            Some(storage) => Ok(Some((storage.clone(), array.kind))),
            None => Err(Failure::Disposed(name)),
        }
    }

    pub fn of_this(this: Unknown) -> Result<(Storage, Kind), Failure> {
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

/// Lets memory go where that may wait for a device: not on the event loop.
struct ReleaseTask(Option<Storage>);

impl Task for ReleaseTask {
    type Output = ();

    fn compute(&mut self, _checkpoint: Checkpoint) -> Result<(), Failure> {
        if let Some(storage) = self.0.take() {
            storage.release();
        }
        Ok(())
    }

    fn resolve<'env>(&mut self, env: &'env Env, (): ()) -> Result<Unknown<'env>, Failure> {
        undefined(env)
    }
}
