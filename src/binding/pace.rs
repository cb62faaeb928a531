//! How fast large results are handed to an event loop that can't keep up.
//!
//! What takes the loop's time is what V8 collects behind results of some MiB, new for each call: on an
//! H200 they come faster than it gets rid of them. The loop then has no turn in which it is free, and
//! everything else that it serves waits for one of ours, turn after turn: `fs.readFile` took 10 to 17
//! times as long as when idle. So where a result is settled late, the next ones come further apart,
//! and where it is settled at once, closer together.

use std::time::{Duration, Instant};

/// A result that waited longer for its turn has met a loop that was busy. A loop that sleeps takes less
/// than half of that to wake up.
const LATE: Duration = Duration::from_micros(200);
/// Twice as much longer for a late one as shorter for one that is not: in the end a third is late.
const LONGER: Duration = Duration::from_micros(20);
const SHORTER: Duration = Duration::from_micros(10);
/// Enough for a loop that needs as much time for each. One that needs more is busy with something else,
/// which is not ours to slow down for.
const LONGEST: Duration = Duration::from_micros(500);

/// Whether a result that waited so long for its turn has met a busy loop.
pub fn is_late(waited: Duration) -> bool {
    waited > LATE
}

/// Of one event loop.
#[derive(Debug, Default)]
pub struct Pace {
    interval: Duration,
    next: Option<Instant>,
}

impl Pace {
    /// When a result that is ready `now` is to be handed over. It counts as handed over then.
    pub fn book(&mut self, now: Instant) -> Instant {
        let at = self.next.map_or(now, |next| next.max(now));
        self.next = Some(at + self.interval);
        at
    }

    /// A result was settled, so long after it was handed over.
    pub fn learn(&mut self, waited: Duration) {
        self.interval = if is_late(waited) {
            (self.interval + LONGER).min(LONGEST)
        } else {
            self.interval.saturating_sub(SHORTER)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much of its time a loop is free, where it needs `turn` for each result and one is always
    /// ready.
    fn free_share(turn: Duration) -> f64 {
        let mut pace = Pace::default();
        let mut now = Instant::now();
        let mut loop_is_free_at = now;
        let (mut free, mut busy) = (Duration::ZERO, Duration::ZERO);
        for count in 0..2000 {
            let handed_over = pace.book(now);
            let begins = handed_over.max(loop_is_free_at);
            pace.learn(begins - handed_over);
            if count >= 1000 {
                free += begins - loop_is_free_at;
                busy += turn;
            }
            loop_is_free_at = begins + turn;
            now = handed_over;
        }
        free.as_secs_f64() / (free + busy).as_secs_f64()
    }

    #[test]
    fn a_loop_that_keeps_up_waits_for_nothing() {
        let now = Instant::now();
        let mut pace = Pace::default();
        for _ in 0..100 {
            assert_eq!(pace.book(now), now);
            pace.learn(LATE);
        }
    }

    #[test]
    fn a_loop_that_does_not_keep_up_is_left_free_at_times() {
        // Of 0.3 ms a result, every second or third comes while the loop is busy, and none waits long.
        let share = free_share(Duration::from_micros(300));
        assert!((0.05..0.5).contains(&share), "{share}");
    }

    #[test]
    fn a_loop_that_is_busy_with_something_else_is_not_slowed_down() {
        assert_eq!(free_share(Duration::from_millis(2)), 0.0);
    }

    #[test]
    fn results_come_at_once_again_when_the_loop_keeps_up_again() {
        let now = Instant::now();
        let mut pace = Pace::default();
        for _ in 0..1000 {
            pace.learn(LATE * 2);
        }
        let first = pace.book(now);
        assert_eq!(pace.book(now) - first, LONGEST);
        for _ in 0..LONGEST.as_micros() / SHORTER.as_micros() {
            pace.learn(Duration::ZERO);
        }
        // The one after those that were booked.
        let booked = pace.book(now);
        assert_eq!(pace.book(now), booked);
    }
}
