//! Tags on our own objects, which tell them from all that only look like them.

use napi::bindgen_prelude::Unknown;
use napi::{JsValue, ValueType, sys};

/// Whether a value is an object with this tag. Runs no code of the caller's.
pub fn is_on(value: Unknown, tag: &sys::napi_type_tag) -> bool {
    // Asked of what is no object, the runtime throws.
    if !matches!(value.get_type(), Ok(ValueType::Object)) {
        return false;
    }
    let mut is_on = false;
    // SAFETY: the environment is the value's own; a status other than ok leaves `is_on` false.
    unsafe { sys::napi_check_object_type_tag(value.value().env, value.raw(), tag, &mut is_on) };
    is_on
}
