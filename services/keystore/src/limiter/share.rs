//! One account's part of its limits while Redis cannot be asked: what this gate alone may admit, so
//! that all gates together admit no more than the account's limits, and what it owes for it.

use std::collections::VecDeque;
use std::mem::take;
use std::time::Duration;

use tokio::time::Instant;
use water_domain::{Limits, Timestamp};

use super::decision::{Decision, Window};
use super::latest::Known;

const WINDOW: Duration = Duration::from_secs(60);
const DAY_MILLIS: i64 = 86_400_000;
/// Requests that come this close together count as one moment, the last of them: so an account
/// takes at most 240 moments, about 6 KB, whatever its limit.
const GRAIN: Duration = Duration::from_millis(250);

/// A moment on both clocks: windows slide on this machine's monotonic one, days begin on Redis'.
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
struct Moment {
    /// The first of them.
    since: Instant,
    /// The last of them: none is forgotten before its time.
    at: Instant,
    requests: u32,
    /// Whether they stand for what Redis had counted before.
    seed: bool,
}

impl Moment {
    fn one(at: Instant, seed: bool) -> Self {
        Self {
            since: at,
            at,
            requests: 1,
            seed,
        }
    }
}

/// What one account has used of this gate's share.
#[derive(Debug, Default)]
pub(super) struct Share {
    /// Of the last minute, oldest first: admitted here, or by the gate's part of what Redis had
    /// counted.
    used: VecDeque<Moment>,
    /// The decision from which that part was taken.
    seeded: Option<Instant>,
    day: i64,
    /// Of `day`: the gate's part of what Redis had counted, and what may be charged already.
    used_before: u32,
    /// Admitted here in `day` and not charged to Redis yet.
    owed_of_day: u32,
    /// Admitted here and not charged to Redis yet, oldest first.
    owed: VecDeque<Moment>,
}

/// What is to be charged to Redis for requests that were admitted without it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Debt {
    pub(super) day: i64,
    pub(super) of_day: u32,
    moments: Vec<Moment>,
}

impl Debt {
    /// The age in µs and number of the requests of each moment.
    pub(super) fn moments(&self, now: Instant) -> impl Iterator<Item = (u64, u32)> {
        let age = move |at| now.saturating_duration_since(at).as_micros() as u64;
        let moments = self.moments.iter();
        moments.map(move |moment| (age(moment.at), moment.requests))
    }
}

impl Share {
    /// Takes this gate's part of what Redis counted when it last decided: of the minute spread
    /// evenly from the oldest request to the decision, which is how a steady client sends.
    pub(super) fn seed(&mut self, known: &Known, gates: u32, now: Now) {
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
        let seeds = (0..part).map(|number| Moment::one(newest - step * number, true));
        let mut all: Vec<Moment> = own.filter(|moment| !moment.seed).chain(seeds).collect();
        all.sort_by_key(|moment| moment.at);
        all.into_iter()
            .for_each(|moment| push(&mut self.used, moment));
    }

    /// Admits one request if both parts have room. `owed`: it is to be charged to Redis later; it
    /// is not where a charge may be on its way already.
    pub(super) fn charge(&mut self, limits: Limits, gates: u32, now: Now, owed: bool) -> Decision {
        self.turn_to(now.day());
        forget_old(&mut self.used, now.here);
        let minute_part = part(limits.requests_per_minute.get(), gates);
        let day_part = part(limits.requests_per_day.get(), gates);
        let accepted = total(&self.used) < minute_part && self.used_of_day() < day_part;
        if accepted {
            let moment = Moment::one(now.here, false);
            push(&mut self.used, moment);
            if owed {
                push(&mut self.owed, moment);
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
        }
    }

    /// Takes what is owed, to charge it. The share stays used until it is a window old.
    pub(super) fn settle(&mut self, now: Instant) -> Option<Debt> {
        forget_old(&mut self.owed, now);
        let debt = Debt {
            day: self.day,
            of_day: take(&mut self.owed_of_day),
            moments: take(&mut self.owed).into(),
        };
        (debt.of_day > 0 || !debt.moments.is_empty()).then_some(debt)
    }

    /// Redis did not take it: it is owed as before.
    pub(super) fn owe(&mut self, debt: Debt) {
        if debt.day == self.day {
            self.owed_of_day += debt.of_day;
        }
        let since = take(&mut self.owed);
        self.owed = debt.moments.into_iter().chain(since).collect();
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

    /// Until the request leaves the window that blocks the next one, or will.
    fn opens_in(&self, part: u32, now: Instant) -> Duration {
        let mut blocking = total(&self.used).saturating_sub(part) + 1;
        let leaves = self.used.iter().find(|moment| {
            blocking = blocking.saturating_sub(moment.requests);
            blocking == 0
        });
        leaves.map_or(Duration::ZERO, |moment| {
            (moment.at + WINDOW).saturating_duration_since(now)
        })
    }
}

/// This gate's part of a limit. Every account may do something at every gate.
fn part(limit: u32, gates: u32) -> u32 {
    (limit / gates).max(1)
}

fn used(window: Window) -> u32 {
    window.limit.saturating_sub(window.remaining)
}

fn total(moments: &VecDeque<Moment>) -> u32 {
    moments.iter().map(|moment| moment.requests).sum()
}

/// Adds what is not older than the last.
fn push(moments: &mut VecDeque<Moment>, moment: Moment) {
    match moments.back_mut() {
        Some(last) if last.seed == moment.seed && moment.at < last.since + GRAIN => {
            last.at = moment.at;
            last.requests += moment.requests;
        }
        _ => moments.push_back(moment),
    }
}

fn forget_old(moments: &mut VecDeque<Moment>, now: Instant) {
    while moments
        .front()
        .is_some_and(|moment| now.saturating_duration_since(moment.at) >= WINDOW)
    {
        moments.pop_front();
    }
}

#[cfg(test)]
mod tests;
