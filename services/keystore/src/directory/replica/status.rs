//! How a gate's copy stands, and what it has come through.

use std::time::Duration;

use tokio::time::Instant;

use crate::directory::feed::Setback;
use crate::directory::snapshot::Snapshot;
use crate::failure::Reason;

/// A feed that is silent for this long no longer vouches for the copy, and ends the renewals of the
/// lease.
const CURRENT_FOR: Duration = Duration::from_secs(5);

/// How the copy stands, for readiness, metrics and the choice between 401 and 503.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplicaStatus {
    /// Whether there is a copy at all. Without one every request is answered 503.
    pub complete: bool,
    /// Whether the copy is known to be up to date: the feed replied within 5 s and no reload is due
    /// or under way. Otherwise an unknown key may be newer than the copy, and is answered 503, not 401.
    pub current: bool,
    /// The copy's generation; 0 without one.
    pub generation: u64,
    /// The last change in it.
    pub seq: u64,
    /// Keys in it.
    pub keys: usize,
    /// Keys whose records this build cannot decode; they answer like unknown ones.
    pub undecodable: usize,
    /// Complete loads so far.
    pub loads: u64,
    /// Times that the feed could not be continued or a load was refused.
    pub setbacks: u64,
    /// Since the feed's last reply; `None` before the first.
    pub since_reply: Option<Duration>,
    /// Since the lease was last renewed, by the monotonic clock; `None` before the first time.
    pub since_renewal: Option<Duration>,
    /// Why Redis did not answer the last time; `None` when it did.
    pub failure: Option<Reason>,
}

/// What the task that keeps the copy up has come through; written by it only.
#[derive(Debug, Default)]
pub(super) struct Progress {
    last_reply: Option<Instant>,
    last_renewal: Option<Instant>,
    last_load: Option<Instant>,
    /// Everything is being loaded anew: what happens meanwhile is not seen.
    reloading: bool,
    /// A reload is needed and has not succeeded.
    doubtful: bool,
    loads: u64,
    setbacks: u64,
    failure: Option<Reason>,
}

impl Progress {
    /// Everything was loaded at `now`.
    pub(super) fn loaded(&mut self, now: Instant) {
        self.loads += 1;
        self.last_load = Some(now);
        self.reloading = false;
        self.doubtful = false;
        self.replied(now);
    }

    /// Everything is about to be loaded; until [`Progress::loaded`].
    pub(super) fn reloading(&mut self) {
        self.reloading = true;
    }

    /// Whether the last load is less than `period` ago.
    pub(super) fn is_younger_than(&self, period: Duration) -> bool {
        self.last_load
            .is_some_and(|moment| moment.elapsed() < period)
    }

    /// Whether the feed has replied lately.
    pub(super) fn is_heard(&self) -> bool {
        self.last_reply
            .is_some_and(|moment| moment.elapsed() < CURRENT_FOR)
    }

    /// The feed replied at `now`. Answers whether Redis had failed before.
    pub(super) fn replied(&mut self, now: Instant) -> bool {
        self.last_reply = Some(now);
        self.failure.take().is_some()
    }

    /// The lease was renewed by a command sent at `sent`: the server may count from then.
    pub(super) fn renewed(&mut self, sent: Instant) {
        self.last_renewal = Some(sent);
    }

    /// The copy could not be kept up. Answers whether that is news.
    pub(super) fn set_back(&mut self, setback: &Setback) -> bool {
        let news = self.failure.is_none() && !self.doubtful;
        self.setbacks += 1;
        match setback {
            Setback::Store(error) => self.failure = Some(error.reason()),
            _ => self.doubtful = true,
        }
        news
    }

    pub(super) fn since_renewal(&self) -> Option<Duration> {
        self.last_renewal.map(|moment| moment.elapsed())
    }

    pub(super) fn status(&self, snapshot: Option<&Snapshot>) -> ReplicaStatus {
        ReplicaStatus {
            complete: snapshot.is_some(),
            current: snapshot.is_some() && !self.doubtful && !self.reloading && self.is_heard(),
            generation: snapshot.map_or(0, |snapshot| snapshot.generation),
            seq: snapshot.map_or(0, |snapshot| snapshot.seq),
            keys: snapshot.map_or(0, Snapshot::keys),
            undecodable: snapshot.map_or(0, Snapshot::undecodable),
            loads: self.loads,
            setbacks: self.setbacks,
            since_reply: self.last_reply.map(|moment| moment.elapsed()),
            since_renewal: self.since_renewal(),
            failure: self.failure,
        }
    }
}
