//! What a value is, in a few words for an error message.

use super::typed_array::Class;
use napi::bindgen_prelude::{FromNapiValue, JsObjectValue, Object, Unknown};
use napi::{JsString, JsValue, ValueType, sys};

/// "undefined", "number 1.5", "an Array of length 2", "a Float32Array of length 4", "an instance
/// of Map", … Runs no code of the caller's but a `constructor` or `name` getter, whose throw it
/// drops.
pub fn describe(value: Unknown) -> String {
    let text = || {
        let text = value.coerce_to_string().and_then(JsString::into_utf8)?;
        text.as_str().map(str::to_owned)
    };
    match value.get_type() {
        Ok(ValueType::Undefined) => "undefined".to_owned(),
        Ok(ValueType::Null) => "null".to_owned(),
        Ok(ValueType::Boolean) => format!("boolean {}", text().unwrap_or_default()),
        Ok(ValueType::Number) => format!("number {}", text().unwrap_or_default()),
        Ok(ValueType::BigInt) => format!("bigint {}n", shortened(text().unwrap_or_default())),
        Ok(ValueType::String) => format!("string '{}'", shortened(text().unwrap_or_default())),
        Ok(ValueType::Symbol) => "a symbol".to_owned(),
        Ok(ValueType::Function) => "a function".to_owned(),
        _ => describe_object(value),
    }
}

fn describe_object(value: Unknown) -> String {
    if let Some((class, length)) = Class::of(value) {
        return format!("{} of length {length}", class.with_article());
    }
    // SAFETY: the value is an object, of whatever kind.
    let Ok(object) = (unsafe { Object::from_napi_value(value.value().env, value.raw()) }) else {
        return "an object".to_owned();
    };
    if let Ok(true) = object.is_array() {
        let length = object.get_array_length().unwrap_or_default();
        return format!("an Array of length {length}");
    }
    let name = object
        .get_named_property_unchecked::<Object>("constructor")
        .and_then(|constructor| constructor.get_named_property_unchecked::<String>("name"));
    match name {
        Ok(name) if name == "Object" => "an object".to_owned(),
        Ok(name) if !name.is_empty() => format!("an instance of {}", shortened(name)),
        Ok(_) => "an object".to_owned(),
        Err(_) => {
            let mut thrown = std::ptr::null_mut();
            // SAFETY: takes whatever the getter threw, if anything, so that our own error is seen.
            unsafe { sys::napi_get_and_clear_last_exception(value.value().env, &mut thrown) };
            "an object".to_owned()
        }
    }
}

fn shortened(text: String) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
