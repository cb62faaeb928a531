//! What an element is: its size, and the values that it can hold.

/// The type of an element, one for each typed-array class of JavaScript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    Int8,
    Uint8,
    Uint8Clamped,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Float16,
    Float32,
    Float64,
    BigInt64,
    BigUint64,
}

impl Dtype {
    /// numpy's name, with "bigint" for the 64-bit integers that are bigints to JavaScript.
    pub fn name(self) -> &'static str {
        match self {
            Dtype::Int8 => "int8",
            Dtype::Uint8 => "uint8",
            Dtype::Uint8Clamped => "uint8clamped",
            Dtype::Int16 => "int16",
            Dtype::Uint16 => "uint16",
            Dtype::Int32 => "int32",
            Dtype::Uint32 => "uint32",
            Dtype::Float16 => "float16",
            Dtype::Float32 => "float32",
            Dtype::Float64 => "float64",
            Dtype::BigInt64 => "bigint64",
            Dtype::BigUint64 => "biguint64",
        }
    }

    /// Bytes an element takes. A gather moves bits, so this is all it needs to know of them.
    pub fn size(self) -> usize {
        match self {
            Dtype::Int8 | Dtype::Uint8 | Dtype::Uint8Clamped => 1,
            Dtype::Int16 | Dtype::Uint16 | Dtype::Float16 => 2,
            Dtype::Int32 | Dtype::Uint32 | Dtype::Float32 => 4,
            Dtype::Float64 | Dtype::BigInt64 | Dtype::BigUint64 => 8,
        }
    }

    /// The least and the greatest value of an integer type; `None` for a floating-point one.
    pub fn integer_range(self) -> Option<(i128, i128)> {
        let signed = matches!(self, Dtype::Int8 | Dtype::Int16 | Dtype::Int32 | Dtype::BigInt64);
        let bits = self.size() as u32 * 8;
        match self {
            Dtype::Float16 | Dtype::Float32 | Dtype::Float64 => None,
            _ if signed => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
            _ => Some((0, (1 << bits) - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Dtype;

    #[test]
    fn integer_ranges_are_those_of_the_classes() {
        assert_eq!(Dtype::Int8.integer_range(), Some((-128, 127)));
        assert_eq!(Dtype::Uint8Clamped.integer_range(), Some((0, 255)));
        assert_eq!(Dtype::Uint32.integer_range(), Some((0, u32::MAX as i128)));
        assert_eq!(Dtype::BigInt64.integer_range(), Some((i64::MIN as i128, i64::MAX as i128)));
        assert_eq!(Dtype::BigUint64.integer_range(), Some((0, u64::MAX as i128)));
        assert_eq!(Dtype::Float16.integer_range(), None);
    }
}
