//! Every error that JavaScript sees: its class, its `code` and its fields.

use super::tag;
use crate::cuda;
use crate::gather::{self, ShapeError};
use napi::bindgen_prelude::{BigInt, JsObjectValue, Object, Unknown};
use napi::{Env, JsValue, Property, PropertyAttributes, sys};
use napi_derive::napi;

impl From<ShapeError> for Failure {
    fn from(error: ShapeError) -> Failure {
        match error {
            ShapeError::RaggedSource { .. } => Failure::InvalidValue(error.to_string()),
            ShapeError::ResultTooLarge { .. } => Failure::OutOfRange(error.to_string()),
        }
    }
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// TypeError: a value of the wrong type.
    #[error("Expected {expected} for {name} but received {received}")]
    InvalidType { name: &'static str, expected: String, received: String },
    /// TypeError: the right type, but a value that can't be used.
    #[error("{0}")]
    InvalidValue(String),
    /// RangeError: a number out of its range.
    #[error("{0}")]
    OutOfRange(String),
    /// A DeviceArray that is used after it was disposed of.
    #[error("{0} was disposed of")]
    Disposed(&'static str),
    #[error(transparent)]
    Gather(#[from] gather::Error),
    /// A fault of ours: the task panicked.
    #[error("cugather failed unexpectedly ({0}); please report this")]
    Internal(String),
    /// What Node-API or the caller's own code threw.
    #[error(transparent)]
    Thrown(#[from] napi::Error),
}

impl Failure {
    pub fn invalid_type(
        name: &'static str,
        expected: impl Into<String>,
        received: String,
    ) -> Failure {
        Failure::InvalidType { name, expected: expected.into(), received }
    }

    /// As a value for `toError` in index.js, which makes the error: its class, its message and its
    /// fields. `index_is_bigint`: whether an index is a bigint to the caller, so that the error's
    /// `index` is what `index[position]` was.
    pub fn into_value<'env>(
        self,
        env: &'env Env,
        index_is_bigint: bool,
    ) -> napi::Result<Unknown<'env>> {
        if let Failure::Thrown(thrown) = self {
            return Err(thrown);
        }
        let (class, code) = self.class_and_code();
        let field = |name: &str| Property::new().with_utf8_name(name);
        let mut fields = vec![field("code")?.with_napi_value(env, code)?];
        match &self {
            Failure::Gather(gather::Error::OutOfRange { position, index, length }) => {
                let at = field("index")?;
                fields.push(field("position")?.with_napi_value(env, *position as f64)?);
                fields.push(if index_is_bigint {
                    let (sign_bit, words) = (*index < 0, vec![index.unsigned_abs() as u64]);
                    at.with_napi_value(env, BigInt { sign_bit, words })?
                } else {
                    at.with_napi_value(env, *index as f64)?
                });
                fields.push(field("length")?.with_napi_value(env, *length as f64)?);
            }
            Failure::Gather(gather::Error::Cuda(cuda::Error::Driver { name, code, .. })) => {
                fields.push(field("driverError")?.with_napi_value(env, name.as_str())?);
                fields.push(field("driverCode")?.with_napi_value(env, *code)?);
            }
            _ => {}
        }
        let fields = object(env, fields)?;
        let failure = object(
            env,
            vec![
                field("errorClass")?.with_napi_value(env, class)?,
                field("message")?.with_napi_value(env, self.to_string())?,
                field("fields")?.with_napi_value(env, fields)?,
            ],
        )?;
        // SAFETY: the object was just made in this environment.
        napi::check_status!(unsafe { sys::napi_type_tag_object(env.raw(), failure.raw(), &TAG) })?;
        Ok(failure.to_unknown())
    }

    fn class_and_code(&self) -> (&'static str, &'static str) {
        use gather::Error::{Apart, Cuda, OutOfHostMemory, OutOfRange, Stopped};
        match self {
            Failure::InvalidType { .. } => ("TypeError", "ERR_INVALID_ARG_TYPE"),
            Failure::InvalidValue(_) => ("TypeError", "ERR_INVALID_ARG_VALUE"),
            Failure::OutOfRange(_) => ("RangeError", "ERR_OUT_OF_RANGE"),
            Failure::Disposed(_) => ("Error", "ERR_DISPOSED"),
            Failure::Gather(Stopped) => ("AbortError", "ABORT_ERR"),
            Failure::Gather(Apart { .. }) => ("TypeError", "ERR_INVALID_ARG_VALUE"),
            Failure::Gather(OutOfHostMemory { .. }) => ("Error", "ERR_MEMORY_ALLOCATION_FAILED"),
            Failure::Gather(OutOfRange { .. }) => ("RangeError", "ERR_OUT_OF_RANGE"),
            Failure::Gather(Cuda(cuda::Error::Unavailable(_))) => ("Error", "ERR_CUDA_UNAVAILABLE"),
            Failure::Gather(Cuda(error)) if error.is_out_of_memory() => {
                ("Error", "ERR_CUDA_OUT_OF_MEMORY")
            }
            Failure::Gather(Cuda(_)) => ("Error", "ERR_CUDA"),
            Failure::Internal(_) | Failure::Thrown(_) => ("Error", "ERR_INTERNAL_ASSERTION"),
        }
    }
}

/// On every failure and nothing else: what the caller's own code throws may look like one.
const TAG: sys::napi_type_tag =
    sys::napi_type_tag { lower: 0x9d1f_6a3c_52be_4e07, upper: 0x8c47_20fb_e6d1_953a };

/// Whether a value is what `into_value` made.
#[napi(skip_typescript)]
pub fn is_failure(value: Unknown) -> bool {
    tag::is_on(value, &TAG)
}

/// An object with these properties for its own, whatever its prototype has by their names.
fn object(env: &Env, properties: Vec<Property>) -> napi::Result<Object<'_>> {
    let plain = |property: Property| {
        property.with_property_attributes(
            PropertyAttributes::Enumerable
                | PropertyAttributes::Writable
                | PropertyAttributes::Configurable,
        )
    };
    let properties: Vec<_> = properties.into_iter().map(plain).collect();
    let mut object = Object::new(env)?;
    object.define_properties(&properties)?;
    Ok(object)
}
