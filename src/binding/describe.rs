//! What a value is, in a few words for an error message.

use super::typed_array::Class;
use napi::bindgen_prelude::{BigInt, FromNapiValue, JsObjectValue, Object, Unknown};
use napi::{JsValue, ValueType, sys};
use std::fmt;

/// The beginning of a string: enough to know it by, however long it is.
pub struct Text {
    beginning: String,
    is_whole: bool,
}

impl Text {
    const MOST: usize = 40;

    /// Of a value that is a string.
    pub fn of(value: Unknown) -> napi::Result<Text> {
        // Room for one more than is kept, which tells whether there is more, and for the NUL.
        let mut units = [0u16; Text::MOST + 2];
        let mut length = 0;
        // SAFETY: the environment is the value's own, and `units` is as long as said.
        let status = unsafe {
            let (env, room) = (value.value().env, units.len());
            sys::napi_get_value_string_utf16(
                env,
                value.raw(),
                units.as_mut_ptr(),
                room,
                &mut length,
            )
        };
        napi::check_status!(status)?;
        let beginning = String::from_utf16_lossy(&units[..length.min(Text::MOST)]);
        Ok(Text { beginning, is_whole: length <= Text::MOST })
    }

    /// The string, where it is short enough to be one that is known.
    pub fn whole(&self) -> Option<&str> {
        self.is_whole.then_some(self.beginning.as_str())
    }

    pub fn is(&self, known: &str) -> bool {
        self.whole() == Some(known)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.beginning, if self.is_whole { "" } else { "…" })
    }
}

/// "undefined", "number 1.5", "an Array of length 2", "a Float32Array of length 4", "an instance
/// of Map", … Runs no code of the caller's but a `constructor` or `name` getter, whose throw it
/// drops.
pub fn describe(value: Unknown) -> String {
    let simple = || -> napi::Result<String> {
        // SAFETY: each cast is to the type that the value has.
        Ok(match value.get_type()? {
            ValueType::Undefined => "undefined".to_owned(),
            ValueType::Null => "null".to_owned(),
            ValueType::Boolean => format!("boolean {}", unsafe { value.cast::<bool>() }?),
            ValueType::Number => {
                // As JavaScript writes it.
                format!("number {}", Text::of(value.coerce_to_string()?.to_unknown())?)
            }
            ValueType::BigInt => describe_bigint(unsafe { value.cast::<BigInt>() }?),
            ValueType::String => format!("string '{}'", Text::of(value)?),
            ValueType::Symbol => "a symbol".to_owned(),
            ValueType::Function => "a function".to_owned(),
            _ => describe_object(value),
        })
    };
    simple().unwrap_or_else(|_| "a value that could not be looked at".to_owned())
}

fn describe_bigint(value: BigInt) -> String {
    let sign = if value.sign_bit { "-" } else { "" };
    match value.words[..] {
        [] => "bigint 0n".to_owned(),
        [low] => format!("bigint {sign}{low}n"),
        [low, high] => format!("bigint {sign}{}n", u128::from(high) << 64 | u128::from(low)),
        _ => format!("a bigint of {} bits", value.words.len() * 64),
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
        .and_then(|constructor| constructor.get_named_property_unchecked::<Unknown>("name"))
        .and_then(Text::of);
    match name {
        Ok(name) if name.is("Object") || name.is("") => "an object".to_owned(),
        Ok(name) => format!("an instance of {name}"),
        Err(_) => {
            let mut thrown = std::ptr::null_mut();
            // SAFETY: takes whatever the getter threw, if anything, so that our own error is seen.
            unsafe { sys::napi_get_and_clear_last_exception(value.value().env, &mut thrown) };
            "an object".to_owned()
        }
    }
}
