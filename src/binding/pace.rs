//! How fast new results of many calls at once are handed to the event loop.
//!
//! Each is a new array for V8 to collect, on the event loop's thread: of 4 MiB each, 64 in flight, an
//! H200 makes 3,000 to 4,500 a second, which leaves the loop no time at all. Everything else that it
//! serves then waits for one of ours, turn after turn: `fs.readFile` took 10 to 17 times as long as when
//! idle. So, after a first few, they come no faster than JavaScript could use them. Results that are
//! written into arrays of the caller's leave nothing to collect, and don't wait.

use std::time::{Duration, Instant};

/// Twice what a loop in JavaScript reads that adds a Float32Array up.
const BYTES_PER_SECOND: u64 = 8_000_000_000;

/// As many come at once, where none came before: V8 begins to look at the whole heap after 64 MiB.
const BURST: Duration = Duration::from_millis(8);

/// A larger one costs V8 little more.
const MOST_COUNTED: u64 = 16 << 20;

/// Of one event loop.
#[derive(Debug, Default)]
pub struct Pace {
    /// When all that were handed over have had their time.
    due: Option<Instant>,
}

impl Pace {
    /// How long a result of so many bytes that is ready `now` is to wait. It counts as handed over.
    pub fn book(&mut self, bytes: usize, now: Instant) -> Duration {
        let due = self.due.map_or(now, |due| due.max(now));
        let counted = MOST_COUNTED.min(bytes as u64);
        self.due = Some(due + Duration::from_nanos(counted * 1_000_000_000 / BYTES_PER_SECOND));
        (due - now).saturating_sub(BURST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half a millisecond's.
    const BYTES: usize = 4_000_000;

    /// A pace after as many as may come at once.
    fn after_a_burst(start: Instant) -> Pace {
        let mut pace = Pace::default();
        assert!((0..17).all(|_| pace.book(BYTES, start).is_zero()));
        pace
    }

    #[test]
    fn after_a_burst_results_come_no_faster_than_they_can_be_used() {
        let mut now = Instant::now();
        let mut pace = after_a_burst(now);
        for _ in 0..100 {
            let wait = pace.book(BYTES, now);
            assert_eq!(wait, Duration::from_micros(500));
            now += wait;
        }
    }

    #[test]
    fn those_that_come_more_slowly_come_at_once() {
        let mut now = Instant::now();
        let mut pace = after_a_burst(now);
        for _ in 0..100 {
            now += Duration::from_micros(501);
            assert!(pace.book(BYTES, now).is_zero());
        }
    }

    #[test]
    fn a_while_without_any_allows_another_burst() {
        let start = Instant::now();
        let mut pace = after_a_burst(start);
        let later = start + Duration::from_secs(1);
        assert!((0..17).all(|_| pace.book(BYTES, later).is_zero()));
        assert!(!pace.book(BYTES, later).is_zero());
    }

    #[test]
    fn a_large_one_counts_for_no_more_than_it_costs_v8() {
        let start = Instant::now();
        let mut pace = after_a_burst(start);
        pace.book(usize::MAX, start);
        assert!(pace.book(1, start) < Duration::from_millis(3));
    }
}
