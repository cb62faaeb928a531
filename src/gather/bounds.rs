//! The index rule: which row an index names.
//!
//! For n rows ([numpy.take](https://numpy.org/doc/stable/reference/generated/numpy.take.html) along
//! axis 0; `fill` is [jax.numpy.take](https://docs.jax.dev/en/latest/_autosummary/jax.numpy.take.html)'s):
//!
//! | mode  | -n … -1            | outside -n … n-1    | n = 0      |
//! | ----- | ------------------ | ------------------- | ---------- |
//! | raise | i + n              | outside             | outside    |
//! | wrap  | i modulo n         | i modulo n          | outside    |
//! | clip  | 0                  | 0 or n-1            | outside    |
//! | fill  | i + n              | the fill value      | fill value |
//!
//! `wrap_negative: false` makes every negative index outside (raise, fill). `place` in
//! `kernels/gather.cu` is the same rule on the device; the vectors in `__test__` hold the two
//! together.

use super::index::Index;
use crate::cpu::Place;

/// What becomes of an index that names no row. The numbers are the kernels'.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    Raise = 0,
    Wrap = 1,
    Clip = 2,
    Fill = 3,
}

/// The index rule for one source.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub rows: u64,
    pub mode: Mode,
    /// Whether -1 is the last row (numpy's way) or no row at all (the way of a join).
    pub wrap_negative: bool,
}

impl Bounds {
    /// Where the row that `index` names stands.
    #[inline(always)]
    pub fn place<I: Index>(self, index: I) -> Place<I> {
        let (negative, m, n) = (index.is_negative(), index.magnitude(), self.rows);
        match self.mode {
            Mode::Wrap | Mode::Clip if n == 0 => Place::Outside(index),
            Mode::Wrap if negative && m % n != 0 => Place::Row(n - m % n),
            Mode::Wrap => Place::Row(m % n),
            Mode::Clip if negative => Place::Row(0),
            Mode::Clip => Place::Row(m.min(n - 1)),
            _ if !negative && m < n => Place::Row(m),
            _ if negative && m <= n && self.wrap_negative => Place::Row(n - m),
            Mode::Raise => Place::Outside(index),
            Mode::Fill => Place::Fill,
        }
    }

    /// Whether some index could be outside, so that the gather can fail.
    pub fn can_fail(self) -> bool {
        match self.mode {
            Mode::Raise => true,
            Mode::Wrap | Mode::Clip => self.rows == 0,
            Mode::Fill => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Mode::*;
    use proptest::prelude::*;

    fn places<I: Index>(rows: u64, mode: Mode, indices: &[I]) -> Vec<Option<u64>> {
        let bounds = Bounds { rows, mode, wrap_negative: true };
        let row = |&i: &I| match bounds.place(i) {
            Place::Row(row) => Some(row),
            Place::Fill | Place::Outside(_) => None,
        };
        indices.iter().map(row).collect()
    }

    #[test]
    fn raise_counts_negatives_from_the_end_once() {
        let found = places(3, Raise, &[0, 2, -1, -3, 3, -4, i32::MIN]);
        assert_eq!(found, [Some(0), Some(2), Some(2), Some(0), None, None, None]);
    }

    #[test]
    fn wrap_is_the_mathematical_modulo() {
        let found = places(7, Wrap, &[-8, -7, -1, 7, 14, i32::MAX, i32::MIN]);
        assert_eq!(found, [6, 0, 6, 0, 0, 1, 5].map(Some));
    }

    #[test]
    fn clip_does_not_count_from_the_end() {
        let found = places(5, Clip, &[-1, -2, -5, i32::MIN, 5, i32::MAX]);
        assert_eq!(found, [0, 0, 0, 0, 4, 4].map(Some));
    }

    #[test]
    fn an_unsigned_maximum_is_not_minus_one() {
        assert_eq!(places(3, Raise, &[u32::MAX]), [None]);
        assert_eq!(places(3, Wrap, &[u64::MAX]), [Some(u64::MAX % 3)]);
        assert_eq!(places(3, Raise, &[1i64 << 32]), [None]);
    }

    #[test]
    fn no_rows_hold_no_index_in_any_mode() {
        for mode in [Raise, Wrap, Clip] {
            assert_eq!(places(0, mode, &[0, -1]), [None, None]);
            assert!(Bounds { rows: 0, mode, wrap_negative: true }.can_fail());
        }
        let fill = Bounds { rows: 0, mode: Fill, wrap_negative: true };
        assert!(matches!(fill.place(0), Place::Fill) && !fill.can_fail());
    }

    #[test]
    fn a_join_index_of_minus_one_is_outside() {
        let bounds = Bounds { rows: 4, mode: Raise, wrap_negative: false };
        assert!(matches!(bounds.place(-1), Place::Outside(-1)));
        assert!(matches!(Bounds { mode: Fill, ..bounds }.place(-4), Place::Fill));
    }

    proptest! {
        /// The rule in sign and magnitude, against the table worked in plain 128-bit arithmetic.
        #[test]
        fn agrees_with_the_table(
            index: i64,
            rows in prop_oneof![0u64..9, any::<u64>()],
            near in any::<bool>(),
            mode in prop_oneof![Just(Raise), Just(Wrap), Just(Clip), Just(Fill)],
            wrap_negative: bool,
        ) {
            let index = if near { index % 20 } else { index };
            let (i, n) = (i128::from(index), i128::from(rows));
            let in_range = (0..n).contains(&i) || (wrap_negative && (-n..0).contains(&i));
            let expected = match mode {
                Wrap | Clip if n == 0 => None,
                Wrap => Some(i.rem_euclid(n)),
                Clip => Some(i.clamp(0, n - 1)),
                Raise | Fill => in_range.then(|| if i < 0 { i + n } else { i }),
            };
            let found = match (Bounds { rows, mode, wrap_negative }).place(index) {
                Place::Row(row) => Some(i128::from(row)),
                Place::Fill => { prop_assert_eq!(mode, Fill); None }
                Place::Outside(value) => {
                    prop_assert_eq!(value, index);
                    prop_assert!(mode != Fill);
                    None
                }
            };
            prop_assert_eq!(found, expected);
        }
    }
}
