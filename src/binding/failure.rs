//! Every error that JavaScript sees: its class, its `code` and its fields.

use crate::cuda;
use crate::gather::{self, ShapeError};
use napi::bindgen_prelude::{BigInt, JsObjectValue, Object};
use napi::{Env, JsError, JsRangeError, JsTypeError, JsValue};

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

    /// As an error to throw or to reject with. `index_is_bigint`: whether an index is a bigint to
    /// the caller, so that the error's `index` is what `index[position]` was.
    pub fn into_error(self, env: &Env, index_is_bigint: bool) -> napi::Error {
        if let Failure::Thrown(thrown) = self {
            return thrown;
        }
        match self.build(env, index_is_bigint) {
            Ok(error) => napi::Error::from(error.to_unknown()),
            Err(failed) => failed,
        }
    }

    fn class_and_code(&self) -> (ErrorClass, &'static str) {
        use gather::Error::{Cuda, OutOfRange};
        match self {
            Failure::InvalidType { .. } => (ErrorClass::TypeError, "ERR_INVALID_ARG_TYPE"),
            Failure::InvalidValue(_) => (ErrorClass::TypeError, "ERR_INVALID_ARG_VALUE"),
            Failure::OutOfRange(_) => (ErrorClass::RangeError, "ERR_OUT_OF_RANGE"),
            Failure::Gather(OutOfRange { .. }) => (ErrorClass::RangeError, "ERR_OUT_OF_RANGE"),
            Failure::Gather(Cuda(cuda::Error::Unavailable(_))) => {
                (ErrorClass::Error, "ERR_CUDA_UNAVAILABLE")
            }
            Failure::Gather(Cuda(error)) if error.is_out_of_memory() => {
                (ErrorClass::Error, "ERR_CUDA_OUT_OF_MEMORY")
            }
            Failure::Gather(Cuda(_)) => (ErrorClass::Error, "ERR_CUDA"),
            Failure::Internal(_) | Failure::Thrown(_) => {
                (ErrorClass::Error, "ERR_INTERNAL_ASSERTION")
            }
        }
    }

    fn build<'env>(&self, env: &'env Env, index_is_bigint: bool) -> napi::Result<Object<'env>> {
        let (class, code) = self.class_and_code();
        let plain = napi::Error::new(code, self.to_string());
        // SAFETY: `env` is the environment that this thread is in, and the value one of its own.
        let mut error = unsafe {
            let raw = match class {
                ErrorClass::TypeError => JsTypeError::from(plain).into_value(env.raw()),
                ErrorClass::RangeError => JsRangeError::from(plain).into_value(env.raw()),
                ErrorClass::Error => JsError::from(plain).into_value(env.raw()),
            };
            Object::from_raw(env.raw(), raw)
        };
        match self {
            Failure::Gather(gather::Error::OutOfRange { position, index, length }) => {
                error.set_named_property("position", *position as f64)?;
                if index_is_bigint {
                    let (sign_bit, words) = (*index < 0, vec![index.unsigned_abs() as u64]);
                    error.set_named_property("index", BigInt { sign_bit, words })?;
                } else {
                    error.set_named_property("index", *index as f64)?;
                }
                error.set_named_property("length", *length as f64)?;
            }
            Failure::Gather(gather::Error::Cuda(cuda::Error::Driver { name, code, .. })) => {
                error.set_named_property("driverError", name.as_str())?;
                error.set_named_property("driverCode", *code)?;
            }
            _ => {}
        }
        Ok(error)
    }
}

enum ErrorClass {
    TypeError,
    RangeError,
    Error,
}
