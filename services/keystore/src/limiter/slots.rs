//! Slots of the minute that refused requests of one account wait for: each is told the next one.

use std::time::Duration;

use tokio::time::Instant;
use water_domain::Limits;

use super::decision::Decision;

/// Difference between the moments that two replies give for the same slot: their ways take different times, and slots
/// are in whole milliseconds.
const TOLERANCE: Duration = Duration::from_millis(25);

/// Reply of the limiter's script.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) decision: Decision,
    pub(super) slots: Slots,
}

/// Slots that a refusal knows, and the one that was told last.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// Milliseconds from the question until each slot opens, in ascending order. None of an accepted request.
    waits: Box<[u16]>,
    /// Index of the slot for the next refusal.
    next: usize,
    /// Moment of the slot that was told last, by this reply or an earlier one.
    last: Option<Instant>,
}

impl Reply {
    pub(super) fn read(text: &str, limits: Limits) -> Option<Self> {
        let decision = Decision::read(text, limits)?;
        let slots = if decision.accepted {
            Slots::default()
        } else {
            Slots::read(text)?
        };
        Some(Self { decision, slots })
    }
}

impl Slots {
    /// Reads what follows the six numbers of a decision.
    fn read(text: &str) -> Option<Self> {
        let numbers = text.split_ascii_whitespace().skip(6);
        Some(Self {
            waits: numbers.map(wait).collect::<Option<_>>()?,
            ..Self::default()
        })
    }

    /// Continues after the slot that an earlier reply's refusals were told last. A slot that is over is not in this
    /// reply, which was asked for at `asked`.
    pub(super) fn follow(&mut self, earlier: &Self, asked: Instant) {
        self.last = earlier.last;
        let end = earlier.last.map(|last| last + TOLERANCE);
        let until_end = end.and_then(|end| end.checked_duration_since(asked));
        self.next = until_end.map_or(0, |until_end| {
            let is_earlier = |wait: &u16| millis(*wait) <= until_end;
            self.waits.partition_point(is_earlier)
        });
    }

    /// The decision as it is told at `now`: a refusal with its own slot. After the last slot it begins again with the
    /// first, so that nobody waits longer than a window.
    pub(super) fn assign(
        &mut self,
        mut decision: Decision,
        asked: Instant,
        now: Instant,
    ) -> Decision {
        let index = if self.next < self.waits.len() {
            self.next
        } else {
            0
        };
        if let Some(wait) = self.waits.get(index) {
            let slot = asked + millis(*wait);
            self.next = index + 1;
            self.last = Some(slot);
            // Where a clock was set back, the first slot may be farther than the slots can tell.
            let opens_in = slot.saturating_duration_since(now);
            decision.slot_opens_in = opens_in.max(decision.minute.opens_in);
        }
        decision
    }
}

fn wait(number: &str) -> Option<u16> {
    let millis: u32 = number.parse().ok()?;
    // More than a window only where a clock was set back.
    Some(millis.try_into().unwrap_or(u16::MAX))
}

fn millis(wait: u16) -> Duration {
    Duration::from_millis(wait.into())
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn limits() -> Limits {
        let three = NonZeroU32::new(3).unwrap();
        Limits {
            requests_per_minute: three,
            requests_per_day: three,
        }
    }

    fn waits(text: &str) -> Option<Vec<u16>> {
        let reply = Reply::read(text, limits())?;
        Some(reply.slots.waits.into_vec())
    }

    #[test]
    fn only_a_refusal_has_slots_and_each_is_a_number() {
        let refusal = |slots| format!("0 0 3 30000000 1 1{slots}");
        assert_eq!(waits("1 0 3 30000000 1 1"), Some(vec![]));
        assert_eq!(waits(&refusal("")), Some(vec![]));
        assert_eq!(waits(&refusal(" 30000 60000")), Some(vec![30_000, 60_000]));
        assert_eq!(waits(&refusal(" 30000 x")), None);
        assert_eq!(waits(&refusal(" -1")), None);
    }

    #[test]
    fn a_clock_that_was_set_back_lets_nobody_wait_less_than_until_the_first_slot() {
        let text = "0 0 3 110000000 1 1 110000 120000";
        let Reply {
            decision,
            mut slots,
        } = Reply::read(text, limits()).unwrap();
        let asked = Instant::now();
        for _ in 0..3 {
            let told = slots.assign(decision, asked, asked);
            assert_eq!(told.retry_after_seconds(), Some(110));
        }
    }
}
