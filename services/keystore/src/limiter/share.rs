//! Part of one account's limits while Redis cannot be asked: what this gate alone may admit, so that all gates together
//! admit no more than the account's limits, and what it owes for it.

use std::collections::VecDeque;
use std::mem::take;
use std::time::Duration;

use tokio::time::Instant;
use water_domain::{Limits, Timestamp};

use super::decision::{Decision, Window};
use super::latest::CachedDecision;

const WINDOW: Duration = Duration::from_secs(60);
const DAY_MILLIS: i64 = 86_400_000;
/// Requests that come this close together share a slot, at the time of the last of them: so an account
/// takes at most 240 slots, about 6 KB, whatever its limit.
const GRAIN: Duration = Duration::from_millis(250);

/// A time on both clocks: windows slide on this machine's monotonic one, days begin on Redis'.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) here: Instant,
    pub(super) redis: Timestamp,
}

impl Now {
    /// The UTC day since the epoch.
    fn day(self) -> i64 {
        self.redis.as_millis().div_euclid(DAY_MILLIS)
    }

    fn until_midnight(self) -> Duration {
        let passed = self.redis.as_millis().rem_euclid(DAY_MILLIS);
        Duration::from_millis((DAY_MILLIS - passed) as u64)
    }
}

/// Requests that came within a [`GRAIN`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Slot {
    /// The first of them.
    since: Instant,
    /// The last of them: none is forgotten before its time.
    at: Instant,
    requests: u32,
    /// Whether they represent what Redis had counted before.
    seed: bool,
}

impl Slot {
    fn one(at: Instant, seed: bool) -> Self {
        Self {
            since: at,
            at,
            requests: 1,
            seed,
        }
    }
}

/// Use that one account has made of this gate's share.
#[derive(Debug, Default)]
pub(super) struct Share {
    /// Requests of the last minute, oldest first: admitted here, or the gate's part of what Redis had counted.
    used: VecDeque<Slot>,
    /// The decision from which that part was taken.
    seeded: Option<Instant>,
    day: i64,
    /// Requests of `day` that are the gate's part of what Redis had counted, or may be charged already.
    used_before: u32,
    /// Requests admitted here in `day` and not charged to Redis yet.
    owed_of_day: u32,
    /// Requests admitted here and not charged to Redis yet, oldest first.
    owed: VecDeque<Slot>,
}

/// Requests that were admitted without Redis and have to be charged to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct UnchargedRequests {
    pub(super) day: i64,
    pub(super) of_day: u32,
    slots: Vec<Slot>,
}

impl UnchargedRequests {
    /// The age in µs and number of the requests of each slot.
    pub(super) fn slots(&self, now: Instant) -> impl Iterator<Item = (u64, u32)> {
        let age = move |at| now.saturating_duration_since(at).as_micros() as u64;
        let slots = self.slots.iter();
        slots.map(move |slot| (age(slot.at), slot.requests))
    }
}

impl Share {
    /// Takes this gate's part of what Redis counted when it last decided: of the minute spread
    /// evenly from the oldest request to the decision, which is how a steady client sends.
    pub(super) fn seed(&mut self, known: &CachedDecision, gates: u32, now: Now) {
        if self.seeded >= Some(known.asked) {
            return;
        }
        self.seeded = Some(known.asked);
        let Decision {
            at, minute, day, ..
        } = known.decision;
        self.turn_to(now.day());
        if at.as_millis().div_euclid(DAY_MILLIS) == self.day {
            self.used_before = used(day).div_ceil(gates);
        }
        let part = used(minute).div_ceil(gates);
        let newest = known.asked;
        let oldest = (newest + minute.opens_in)
            .checked_sub(WINDOW)
            .unwrap_or(newest)
            .min(newest);
        let step = (newest - oldest) / part.max(1);
        let own = take(&mut self.used).into_iter();
        let seeds = (0..part).map(|number| Slot::one(newest - step * number, true));
        let mut all: Vec<Slot> = own.filter(|slot| !slot.seed).chain(seeds).collect();
        all.sort_by_key(|slot| slot.at);
        all.into_iter().for_each(|slot| push(&mut self.used, slot));
    }

    /// Admits one request if both parts have room. `owed`: it has to be charged to Redis later; it is not where a
    /// charge may be on its way already.
    pub(super) fn charge(&mut self, limits: Limits, gates: u32, now: Now, owed: bool) -> Decision {
        self.turn_to(now.day());
        forget_old(&mut self.used, now.here);
        let minute_part = part(limits.requests_per_minute.get(), gates);
        let day_part = part(limits.requests_per_day.get(), gates);
        let accepted = total(&self.used) < minute_part && self.used_of_day() < day_part;
        if accepted {
            let slot = Slot::one(now.here, false);
            push(&mut self.used, slot);
            if owed {
                push(&mut self.owed, slot);
                self.owed_of_day += 1;
            } else {
                self.used_before += 1;
            }
        }
        let minute = Window {
            limit: limits.requests_per_minute.get(),
            remaining: minute_part.saturating_sub(total(&self.used)),
            opens_in: self.opens_in(minute_part, now.here),
        };
        let day = Window {
            limit: limits.requests_per_day.get(),
            remaining: day_part.saturating_sub(self.used_of_day()),
            opens_in: now.until_midnight(),
        };
        Decision {
            accepted,
            at: now.redis,
            minute,
            day,
            slot_opens_in: minute.opens_in,
        }
    }

    /// Takes what is owed, to charge it. The share stays used until it is a window old.
    pub(super) fn settle(&mut self, now: Instant) -> Option<UnchargedRequests> {
        forget_old(&mut self.owed, now);
        let uncharged = UnchargedRequests {
            day: self.day,
            of_day: take(&mut self.owed_of_day),
            slots: take(&mut self.owed).into(),
        };
        (uncharged.of_day > 0 || !uncharged.slots.is_empty()).then_some(uncharged)
    }

    /// Puts back what Redis did not take: it is owed as before, even where the share was forgotten meanwhile.
    pub(super) fn owe(&mut self, uncharged: UnchargedRequests) {
        self.turn_to(uncharged.day);
        if uncharged.day == self.day {
            self.owed_of_day += uncharged.of_day;
        }
        let since = take(&mut self.owed);
        self.owed = uncharged.slots.into_iter().chain(since).collect();
    }

    /// Whether forgetting it would change nothing that lasts: nothing is owed nor in the window.
    pub(super) fn is_over(&mut self, now: Instant) -> bool {
        forget_old(&mut self.used, now);
        self.used.is_empty() && self.owed_of_day == 0 && self.owed.is_empty()
    }

    fn used_of_day(&self) -> u32 {
        self.used_before.saturating_add(self.owed_of_day)
    }

    fn turn_to(&mut self, day: i64) {
        if day > self.day {
            (self.day, self.used_before, self.owed_of_day) = (day, 0, 0);
        }
    }

    /// Time until the request leaves the window that blocks the next one, or will.
    fn opens_in(&self, part: u32, now: Instant) -> Duration {
        let mut blocking = total(&self.used).saturating_sub(part) + 1;
        let leaves = self.used.iter().find(|slot| {
            blocking = blocking.saturating_sub(slot.requests);
            blocking == 0
        });
        leaves.map_or(Duration::ZERO, |slot| {
            (slot.at + WINDOW).saturating_duration_since(now)
        })
    }
}

/// Part of a limit at this gate. Every account may do something at every gate.
fn part(limit: u32, gates: u32) -> u32 {
    (limit / gates).max(1)
}

fn used(window: Window) -> u32 {
    window.limit.saturating_sub(window.remaining)
}

fn total(slots: &VecDeque<Slot>) -> u32 {
    slots.iter().map(|slot| slot.requests).sum()
}

/// Adds what is not older than the last.
fn push(slots: &mut VecDeque<Slot>, slot: Slot) {
    match slots.back_mut() {
        Some(last) if last.seed == slot.seed && slot.at < last.since + GRAIN => {
            last.at = slot.at;
            last.requests += slot.requests;
        }
        _ => slots.push_back(slot),
    }
}

fn forget_old(slots: &mut VecDeque<Slot>, now: Instant) {
    while slots
        .front()
        .is_some_and(|slot| now.saturating_duration_since(slot.at) >= WINDOW)
    {
        slots.pop_front();
    }
}

#[cfg(test)]
mod tests;
