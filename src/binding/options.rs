//! The options of `cudaGather`, read and checked.

use super::describe::{Text, describe};
use super::failure::Failure;
use super::typed_array::{Class, Memory, Realm};
use crate::gather::{DeviceChoice, Dtype, Mode, Placement};
use napi::bindgen_prelude::{BigInt, FromNapiValue, JsObjectValue, Object, Unknown};
use napi::{Env, JsValue, KeyCollectionMode, KeyConversion, KeyFilter, ValueType, sys};

/// All of them; index.js sees to `signal`.
const NAMES: [&str; 8] =
    ["mode", "fillValue", "wrapNegative", "rowLength", "out", "device", "result", "signal"];
const CREATION_NAMES: [&str; 3] = ["rowLength", "device", "placement"];

const MODES: [(&str, Mode); 4] =
    [("raise", Mode::Raise), ("wrap", Mode::Wrap), ("clip", Mode::Clip), ("fill", Mode::Fill)];

/// The options as given; an absent one has its default. What depends on the source's class is
/// checked once that is known.
pub struct Options<'env> {
    pub mode: Mode,
    pub fill_value: Option<Unknown<'env>>,
    pub wrap_negative: bool,
    /// `None`: the source's own, or 1.
    pub row_length: Option<usize>,
    pub out: Option<Unknown<'env>>,
    /// What the caller named.
    pub device: Option<DeviceChoice>,
    default_device: Unknown<'env>,
    /// Whether the result is to stay where the gather runs.
    pub stays: bool,
}

/// The options of `DeviceArray.from`.
pub struct CreationOptions {
    pub row_length: usize,
    pub device: DeviceChoice,
    pub placement: Placement,
}

impl CreationOptions {
    pub fn read(options: Unknown, default_device: Unknown) -> Result<CreationOptions, Failure> {
        let given = Given::read(options, &CREATION_NAMES)?;
        Ok(CreationOptions {
            device: given.device()?.map_or_else(|| read_default(default_device), Ok)?,
            row_length: given.get("rowLength")?.map_or(Ok(1), read_row_length)?,
            placement: given.get("placement")?.map_or(Ok(Placement::Device), read_placement)?,
        })
    }
}

/// The limits of `setMemoryLimits`, in bytes; one that is not given stays as it is.
pub struct MemoryLimits {
    pub device_bytes: Option<usize>,
    pub pinned_bytes: Option<usize>,
}

impl MemoryLimits {
    pub fn read(limits: Unknown) -> Result<MemoryLimits, Failure> {
        if limits.get_type()? == ValueType::Undefined {
            return Err(Failure::invalid_type("limits", "an object", describe(limits)));
        }
        let given = Given::read(limits, &["deviceBytes", "pinnedBytes"])?;
        let limit = |name| -> Result<Option<usize>, Failure> {
            given.get(name)?.map(|value| read_integer(value, name, 0, (1 << 53) - 1)).transpose()
        };
        Ok(MemoryLimits {
            device_bytes: limit("deviceBytes")?,
            pinned_bytes: limit("pinnedBytes")?,
        })
    }
}

/// The object that a caller gave for the options, if any.
struct Given<'env>(Option<Object<'env>>);

impl<'env> Given<'env> {
    fn read(options: Unknown<'env>, names: &[&str]) -> Result<Given<'env>, Failure> {
        let given = match options.get_type()? {
            ValueType::Undefined => None,
            // SAFETY: the value is an object.
            ValueType::Object if !is_of_another_kind(&options)? => {
                Some(unsafe { options.cast::<Object>() }?)
            }
            _ => return Err(Failure::invalid_type("options", "an object", describe(options))),
        };
        if let Some(given) = &given
            && refuse_unknown(given, names)? == 0
            && is_tagged(given)?
        {
            return Err(Failure::invalid_type("options", "an object", describe(options)));
        }
        Ok(Given(given))
    }

    fn get(&self, name: &str) -> Result<Option<Unknown<'env>>, Failure> {
        let Some(given) = &self.0 else { return Ok(None) };
        let value = given.get_named_property_unchecked::<Unknown>(name)?;
        Ok((value.get_type()? != ValueType::Undefined).then_some(value))
    }

    fn device(&self) -> Result<Option<DeviceChoice>, Failure> {
        self.get("device")?.map(|value| read_device(value, "device")).transpose()
    }
}

/// What CUGATHER_DEVICE says, or undefined. Read only where it counts: elsewhere it may be wrong.
fn read_default(value: Unknown) -> Result<DeviceChoice, Failure> {
    match value.get_type()? {
        ValueType::Undefined => Ok(DeviceChoice::Default),
        _ => read_device(value, "the environment variable CUGATHER_DEVICE"),
    }
}

impl<'env> Options<'env> {
    /// Reads each option once. This may run getters of the caller's, so it comes before the memory
    /// of any array is looked at. `default_device` is what CUGATHER_DEVICE says, or undefined.
    pub fn read(
        options: Unknown<'env>,
        default_device: Unknown<'env>,
    ) -> Result<Options<'env>, Failure> {
        let given = Given::read(options, &NAMES)?;
        let options = Options {
            device: given.device()?,
            default_device,
            mode: given.get("mode")?.map_or(Ok(Mode::Raise), read_mode)?,
            fill_value: given.get("fillValue")?,
            wrap_negative: given.get("wrapNegative")?.map_or(Ok(true), read_wrap_negative)?,
            row_length: given.get("rowLength")?.map(read_row_length).transpose()?,
            out: given.get("out")?,
            stays: given.get("result")?.map_or(Ok(false), read_result)?,
        };
        if options.stays && options.out.is_some() {
            return Err(Failure::InvalidValue(
                "Expected no out with result 'device', which leaves the result on the device"
                    .to_owned(),
            ));
        }
        Ok(options)
    }

    /// Where a gather runs from arrays on the host.
    pub fn device_for_host(&self) -> Result<DeviceChoice, Failure> {
        self.device.map_or_else(|| read_default(self.default_device), Ok)
    }

    /// The fill value's bytes as the class would store it, repeated to 16. Zeros in other modes.
    pub fn fill(&self, class: Class, realm: &Realm<'env>) -> Result<[u8; 16], Failure> {
        if self.mode != Mode::Fill {
            return Ok([0; 16]);
        }
        let value = match self.fill_value {
            Some(value) => {
                check_fill_value(value, class)?;
                value
            }
            None => default_fill_value(class, realm)?,
        };
        // The class itself converts: exactly what storing the value in the source would do.
        let cell = realm.create(class, 1)?;
        let env = cell.value.value().env;
        // SAFETY: both values are of this environment.
        let status = unsafe { sys::napi_set_element(env, cell.value.raw(), 0, value.raw()) };
        napi::check_status!(status).map_err(Failure::Thrown)?;
        let Memory { address, bytes } = cell.memory()?;
        // SAFETY: the cell holds one element, of so many bytes.
        Ok(std::array::from_fn(|i| unsafe { *address.add(i % bytes) }))
    }
}

/// An array, a typed array and the like in the place of the options: another argument, misplaced,
/// whose elements need not be looked at one by one to know that.
fn is_of_another_kind(options: &Unknown) -> napi::Result<bool> {
    Ok(options.is_array()?
        || options.is_typedarray()?
        || options.is_arraybuffer()?
        || options.is_dataview()?
        || options.is_date()?
        || options.is_promise()?)
}

/// Whether an object's class has a name of its own (`Symbol.toStringTag`), as an AbortSignal, a Map or a
/// DeviceArray has: another argument, misplaced.
fn is_tagged(options: &Object) -> napi::Result<bool> {
    let env = Env::from_raw(options.value().env);
    let symbol = env.get_global()?.get_named_property_unchecked::<Object>("Symbol")?;
    let tag = symbol.get_named_property_unchecked::<Unknown>("toStringTag")?;
    Ok(options.get_property::<_, Unknown>(tag)?.get_type()? == ValueType::String)
}

/// How many options there are, all of them known.
fn refuse_unknown(options: &Object, names: &[&str]) -> Result<u32, Failure> {
    let keys = options.get_all_property_names(
        KeyCollectionMode::OwnOnly,
        KeyFilter::SkipSymbols,
        KeyConversion::NumbersToStrings,
    )?;
    let count = keys.get_array_length()?;
    for i in 0..count {
        let name = Text::of(keys.get_element::<Unknown>(i)?)?;
        if !names.iter().any(|known| name.is(known)) {
            return Err(Failure::InvalidValue(format!(
                "Unknown option '{name}'; the options are {}",
                names.join(", "),
            )));
        }
    }
    Ok(count)
}

/// The string in `value`, or an error that says what was expected.
fn read_string(value: Unknown, name: &'static str, expected: &str) -> Result<Text, Failure> {
    match value.get_type()? {
        ValueType::String => Ok(Text::of(value)?),
        _ => Err(Failure::invalid_type(name, expected, describe(value))),
    }
}

fn read_mode(value: Unknown) -> Result<Mode, Failure> {
    read_one_of(value, "mode", "'raise', 'wrap', 'clip' or 'fill'", &MODES)
}

fn read_device(value: Unknown, name: &'static str) -> Result<DeviceChoice, Failure> {
    const EXPECTED: &str = "'cpu', 'cuda', 'cuda:N' (N a device number) or 'auto'";
    let given = read_string(value, name, EXPECTED)?;
    given.whole().and_then(parse_device).ok_or_else(|| {
        Failure::InvalidValue(format!(
            "Expected {EXPECTED} for {name} but received {}",
            describe(value)
        ))
    })
}

fn parse_device(name: &str) -> Option<DeviceChoice> {
    match name {
        "auto" => Some(DeviceChoice::Auto),
        "cpu" => Some(DeviceChoice::Cpu),
        "cuda" => Some(DeviceChoice::Cuda(0)),
        _ => {
            let digits = name.strip_prefix("cuda:")?;
            let ordinal: usize = digits.parse().ok()?;
            // One name for each device: no sign, no leading zero.
            (ordinal.to_string() == digits).then_some(DeviceChoice::Cuda(ordinal))
        }
    }
}

fn read_result(value: Unknown) -> Result<bool, Failure> {
    read_one_of(value, "result", "'host' or 'device'", &[("host", false), ("device", true)])
}

fn read_placement(value: Unknown) -> Result<Placement, Failure> {
    let known = [("device", Placement::Device), ("pinned", Placement::Pinned)];
    read_one_of(value, "placement", "'device' or 'pinned'", &known)
}

/// What the string in `value` stands for among those that are known.
fn read_one_of<T: Copy>(
    value: Unknown,
    name: &'static str,
    expected: &str,
    known: &[(&str, T)],
) -> Result<T, Failure> {
    let given = read_string(value, name, expected)?;
    let found = known.iter().find(|(name, _)| given.is(name));
    found.map(|&(_, meaning)| meaning).ok_or_else(|| {
        Failure::InvalidValue(format!(
            "Expected {expected} for {name} but received {}",
            describe(value)
        ))
    })
}

/// The length of an array that is to be made.
pub fn read_length(value: Unknown) -> Result<usize, Failure> {
    read_integer(value, "length", 0, (1 << 53) - 1)
}

/// An offset into an array of `length` elements.
pub fn read_offset(value: Unknown, length: usize) -> Result<usize, Failure> {
    read_integer(value, "offset", 0, length)
}

fn read_wrap_negative(value: Unknown) -> Result<bool, Failure> {
    match value.get_type()? {
        // SAFETY: the value is a boolean.
        ValueType::Boolean => Ok(unsafe { value.cast::<bool>() }?),
        _ => Err(Failure::invalid_type("wrapNegative", "a boolean", describe(value))),
    }
}

fn read_row_length(value: Unknown) -> Result<usize, Failure> {
    read_integer(value, "rowLength", 1, (1 << 53) - 1)
}

fn read_integer(
    value: Unknown,
    name: &'static str,
    least: usize,
    most: usize,
) -> Result<usize, Failure> {
    let expected = match most < (1 << 53) - 1 {
        true => format!("an integer from {least} to {most}"),
        false => format!("an integer of {least} or more"),
    };
    if value.get_type()? != ValueType::Number {
        return Err(Failure::invalid_type(name, expected, describe(value)));
    }
    // SAFETY: the value is a number.
    let number = unsafe { value.cast::<f64>() }?;
    if number.fract() != 0.0 || !(least as f64..=most as f64).contains(&number) {
        return Err(Failure::OutOfRange(format!(
            "Expected {expected} for {name} but received {}",
            describe(value)
        )));
    }
    Ok(number as usize)
}

/// NaN for a floating-point class; an integer has no value that stands for "none".
fn default_fill_value<'env>(class: Class, realm: &Realm<'env>) -> Result<Unknown<'env>, Failure> {
    if class.dtype().integer_range().is_some() {
        return Err(Failure::InvalidValue(format!(
            "Expected a fillValue: mode 'fill' has no default for {} (for a floating-point source it \
             is NaN)",
            class.with_article(),
        )));
    }
    let env = realm.create.value().env;
    let mut nan = std::ptr::null_mut();
    // SAFETY: `env` is the current environment.
    let status = unsafe { sys::napi_create_double(env, f64::NAN, &mut nan) };
    napi::check_status!(status).map_err(Failure::Thrown)?;
    // SAFETY: the value was just made.
    Ok(unsafe { Unknown::from_raw_unchecked(env, nan) })
}

/// A floating-point class rounds; an integer class takes only what it can hold.
fn check_fill_value(value: Unknown, class: Class) -> Result<(), Failure> {
    let wanted = if class.is_bigint() { ValueType::BigInt } else { ValueType::Number };
    if value.get_type()? != wanted {
        let kind = if class.is_bigint() { "bigint" } else { "number" };
        let expected = format!("a {kind}, as {} holds,", class.with_article());
        return Err(Failure::invalid_type("fillValue", expected, describe(value)));
    }
    let Some((least, greatest)) = class.dtype().integer_range() else { return Ok(()) };
    let fits = match class.dtype() {
        // SAFETY: the value is a bigint.
        Dtype::BigInt64 => unsafe { value.cast::<BigInt>() }?.get_i64().1,
        // SAFETY: as above.
        Dtype::BigUint64 => {
            let (negative, _, lossless) = unsafe { value.cast::<BigInt>() }?.get_u64();
            lossless && !negative
        }
        // SAFETY: the value is a number.
        _ => {
            let number = unsafe { f64::from_napi_value(value.value().env, value.raw()) }?;
            number.fract() == 0.0 && (least as f64..=greatest as f64).contains(&number)
        }
    };
    if fits {
        return Ok(());
    }
    Err(Failure::OutOfRange(format!(
        "Expected an integer from {least} to {greatest} for fillValue, as {} holds, but received {}",
        class.with_article(),
        describe(value),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_names() {
        assert_eq!(parse_device("cuda"), Some(DeviceChoice::Cuda(0)));
        assert_eq!(parse_device("cuda:12"), Some(DeviceChoice::Cuda(12)));
        for bad in ["cuda:", "cuda:-1", "cuda:+1", "cuda:1.5", "cuda:00", "CUDA", "gpu", ""] {
            assert_eq!(parse_device(bad), None, "{bad}");
        }
    }
}
