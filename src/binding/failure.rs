//! Every error that JavaScript sees: its class, its `code` and its fields.

use crate::cuda;
use crate::gather;
use napi::bindgen_prelude::{BigInt, JsObjectValue, Object};
use napi::{Env, JsError, JsRangeError, JsTypeError, JsValue};

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
        let code = match &self {
            Failure::InvalidType { .. } => "ERR_INVALID_ARG_TYPE",
            Failure::InvalidValue(_) => "ERR_INVALID_ARG_VALUE",
            Failure::OutOfRange(_) => "ERR_OUT_OF_RANGE",
            Failure::Internal(_) => "ERR_INTERNAL_ASSERTION",
            Failure::Gather(gather::Error::OutOfRange { .. }) => "ERR_OUT_OF_RANGE",
            Failure::Gather(gather::Error::Cuda(error)) => match error {
                cuda::Error::Unavailable(_) => "ERR_CUDA_UNAVAILABLE",
                cuda::Error::OutOfMemory { .. } => "ERR_CUDA_OUT_OF_MEMORY",
                cuda::Error::Driver { .. } => "ERR_CUDA",
            },
            Failure::Thrown(_) => "",
        };
        let message = match &self {
            Failure::Gather(gather::Error::Cuda(cuda::Error::Unavailable(reason))) => {
                format!("CUDA is not usable: {reason}")
            }
            other => other.to_string(),
        };
        let plain = napi::Error::new(code, message);
        // SAFETY: `env` is the environment that this thread is in.
        let error = unsafe {
            let raw = match &self {
                Failure::InvalidType { .. } | Failure::InvalidValue(_) => {
                    JsTypeError::from(plain).into_value(env.raw())
                }
                Failure::OutOfRange(_) | Failure::Gather(gather::Error::OutOfRange { .. }) => {
                    JsRangeError::from(plain).into_value(env.raw())
                }
                Failure::Gather(_) | Failure::Internal(_) => {
                    JsError::from(plain).into_value(env.raw())
                }
                Failure::Thrown(_) => std::ptr::null_mut(),
            };
            Object::from_raw(env.raw(), raw)
        };
        match self {
            Failure::Thrown(thrown) => return thrown,
            Failure::Gather(gather::Error::OutOfRange { position, index, length }) => {
                if let Err(failed) = set_position(error, position, index, length, index_is_bigint) {
                    return failed;
                }
            }
            Failure::Gather(gather::Error::Cuda(cuda::Error::Driver { name, code, .. })) => {
                let mut error = error;
                let set = error
                    .set_named_property("driverError", name)
                    .and_then(|()| error.set_named_property("driverCode", code));
                if let Err(failed) = set {
                    return failed;
                }
            }
            _ => {}
        }
        napi::Error::from(error.to_unknown())
    }
}

fn set_position(
    mut error: Object,
    position: u64,
    index: i128,
    length: u64,
    index_is_bigint: bool,
) -> napi::Result<()> {
    error.set_named_property("position", position as f64)?;
    if index_is_bigint {
        let magnitude = index.unsigned_abs() as u64;
        error
            .set_named_property("index", BigInt { sign_bit: index < 0, words: vec![magnitude] })?;
    } else {
        error.set_named_property("index", index as f64)?;
    }
    error.set_named_property("length", length as f64)
}
