//! Requests of an account on one day, as counted by one worker.

use water_keystore::UtcDay;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tally {
    pub day: UtcDay,
    pub accepted: u64,
    pub limited: u64,
}

impl Tally {
    pub fn of_one(accepted: bool, day: UtcDay) -> Self {
        Self {
            day,
            accepted: accepted.into(),
            limited: (!accepted).into(),
        }
    }

    /// Adds requests of the same day; returns those of another day as the error.
    pub fn add(&mut self, more: Self) -> Result<(), Self> {
        if more.day != self.day {
            return Err(more);
        }
        self.accepted += more.accepted;
        self.limited += more.limited;
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.accepted == 0 && self.limited == 0
    }
}
