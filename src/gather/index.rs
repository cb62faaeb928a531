//! What an index is: an integer of 8 to 64 bits, signed or not, read by value.

use super::dtype::Dtype;

/// The integer type of an index array. The numbers are the kernels' (`kernels/gather.cu`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum IndexType {
    I8 = 0,
    U8 = 1,
    I16 = 2,
    U16 = 3,
    I32 = 4,
    U32 = 5,
    I64 = 6,
    U64 = 7,
}

impl IndexType {
    /// The index type of an array of `dtype`, or `None` where its elements are not integers.
    pub fn of(dtype: Dtype) -> Option<IndexType> {
        match dtype {
            Dtype::Int8 => Some(IndexType::I8),
            Dtype::Uint8 | Dtype::Uint8Clamped => Some(IndexType::U8),
            Dtype::Int16 => Some(IndexType::I16),
            Dtype::Uint16 => Some(IndexType::U16),
            Dtype::Int32 => Some(IndexType::I32),
            Dtype::Uint32 => Some(IndexType::U32),
            Dtype::BigInt64 => Some(IndexType::I64),
            Dtype::BigUint64 => Some(IndexType::U64),
            Dtype::Float16 | Dtype::Float32 | Dtype::Float64 => None,
        }
    }

    /// Bytes an index takes.
    pub fn size(self) -> usize {
        match self {
            IndexType::I8 | IndexType::U8 => 1,
            IndexType::I16 | IndexType::U16 => 2,
            IndexType::I32 | IndexType::U32 => 4,
            IndexType::I64 | IndexType::U64 => 8,
        }
    }

    /// The index that `bytes` begin with, in the byte order of this machine.
    pub fn decode(self, bytes: [u8; 8]) -> i128 {
        /// The first bytes of an array, as an array: every width here is at most 8.
        fn head<const N: usize>(bytes: [u8; 8]) -> [u8; N] {
            std::array::from_fn(|i| bytes[i])
        }
        match self {
            IndexType::I8 => i8::from_ne_bytes(head(bytes)).into(),
            IndexType::U8 => u8::from_ne_bytes(head(bytes)).into(),
            IndexType::I16 => i16::from_ne_bytes(head(bytes)).into(),
            IndexType::U16 => u16::from_ne_bytes(head(bytes)).into(),
            IndexType::I32 => i32::from_ne_bytes(head(bytes)).into(),
            IndexType::U32 => u32::from_ne_bytes(head(bytes)).into(),
            IndexType::I64 => i64::from_ne_bytes(head(bytes)).into(),
            IndexType::U64 => u64::from_ne_bytes(head(bytes)).into(),
        }
    }
}

/// An integer that can name a row, as a sign and a magnitude: so one rule serves all eight types,
/// and neither the least signed value nor the greatest unsigned one overflows.
pub trait Index: Copy + Send + Sync + Into<i128> {
    fn is_negative(self) -> bool;
    fn magnitude(self) -> u64;
}

macro_rules! signed_index {
    ($($int:ty)*) => {$(
        impl Index for $int {
            fn is_negative(self) -> bool {
                self < 0
            }
            fn magnitude(self) -> u64 {
                self.unsigned_abs().into()
            }
        }
    )*};
}

macro_rules! unsigned_index {
    ($($int:ty)*) => {$(
        impl Index for $int {
            fn is_negative(self) -> bool {
                false
            }
            fn magnitude(self) -> u64 {
                self.into()
            }
        }
    )*};
}

signed_index!(i8 i16 i32 i64);
unsigned_index!(u8 u16 u32 u64);

/// Evaluates an expression with `$int` standing for the Rust integer of an [`IndexType`].
macro_rules! with_index_type {
    ($index_type:expr, $int:ident => $body:expr) => {{
        use $crate::gather::index::IndexType;
        match $index_type {
            IndexType::I8 => {
                type $int = i8;
                $body
            }
            IndexType::U8 => {
                type $int = u8;
                $body
            }
            IndexType::I16 => {
                type $int = i16;
                $body
            }
            IndexType::U16 => {
                type $int = u16;
                $body
            }
            IndexType::I32 => {
                type $int = i32;
                $body
            }
            IndexType::U32 => {
                type $int = u32;
                $body
            }
            IndexType::I64 => {
                type $int = i64;
                $body
            }
            IndexType::U64 => {
                type $int = u64;
                $body
            }
        }
    }};
}
pub(crate) use with_index_type;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extremes_keep_their_magnitude() {
        assert_eq!(i8::MIN.magnitude(), 128);
        assert_eq!(i64::MIN.magnitude(), 1 << 63);
        assert_eq!(u64::MAX.magnitude(), u64::MAX);
        assert!(i32::MIN.is_negative() && !u32::MAX.is_negative());
    }

    #[test]
    fn decode_reads_by_value() {
        let all_ones = [0xff; 8];
        assert_eq!(IndexType::I32.decode(all_ones), -1);
        assert_eq!(IndexType::U32.decode(all_ones), u32::MAX.into());
        assert_eq!(IndexType::U64.decode(all_ones), u64::MAX.into());
        assert_eq!(IndexType::U8.decode([150, 1, 1, 1, 1, 1, 1, 1]), 150);
    }
}
