//! Status of a gate's copy, and its history.

use std::time::Duration;

use tokio::time::Instant;

use crate::directory::feed::FeedFailure;
use crate::directory::snapshot::Snapshot;
use crate::failure::Reason;

/// Silence after which the feed no longer vouches for the copy, and which ends the renewals of the lease.
const CURRENT_FOR: Duration = Duration::from_secs(5);

/// Status of the copy, for readiness, metrics and the choice between 401 and 503.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplicaStatus {
    /// Whether there is a copy at all. Without one every request is answered 503.
    pub complete: bool,
    /// Whether the copy is known to be up to date: the feed replied within 5 s, and nothing has happened that only a
    /// reload repairs. Otherwise an unknown key may be newer than the copy, and is answered 503, not 401. A reload
    /// whose time has come is no such thing: the key of a change that it has not read yet is not known to anybody
    /// before this gate has acknowledged it.
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
    /// Time since the feed's last reply; `None` before the first.
    pub since_reply: Option<Duration>,
    /// See [`super::Replica::since_renewal`].
    pub since_renewal: Option<Duration>,
    /// Reason for which Redis did not answer the last time; `None` when it did.
    pub failure: Option<Reason>,
}

/// History of the task that keeps the copy up; written by it only.
#[derive(Debug, Default)]
pub(super) struct Progress {
    last_reply: Option<Instant>,
    /// Time of the last renewal up to which the lease has never run out since the copy was read.
    last_renewal: Option<Instant>,
    /// Time of a renewal that was too late: the copy may lack changes whose writer did not wait for this gate.
    late_renewal: Option<Instant>,
    last_load: Option<Instant>,
    /// Whether a reload is needed and has not succeeded.
    doubtful: bool,
    loads: u64,
    setbacks: u64,
    failure: Option<Reason>,
}

impl Progress {
    /// Notes that everything was loaded at `now`.
    pub(super) fn loaded(&mut self, now: Instant) {
        self.loads += 1;
        self.last_load = Some(now);
        self.doubtful = false;
        self.replied(now);
        self.caught_up();
    }

    /// Notes that the copy holds everything up to a moment after the last renewal: any change from then on waits for
    /// this gate.
    pub(super) fn caught_up(&mut self) {
        if let Some(late) = self.late_renewal.take() {
            self.last_renewal = Some(late);
        }
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

    /// Notes that the feed replied at `now`. Returns whether Redis had failed before.
    pub(super) fn replied(&mut self, now: Instant) -> bool {
        self.last_reply = Some(now);
        self.failure.take().is_some()
    }

    /// Notes that the lease was renewed by a command sent at `sent`, from which the server may count, and answered at
    /// `received`. Once the grace is over the renewal alone vouches for nothing: see [`Progress::caught_up`].
    pub(super) fn renewed(&mut self, sent: Instant, received: Instant, grace: Duration) {
        let is_in_time = self
            .last_renewal
            .is_some_and(|last| received.saturating_duration_since(last) <= grace);
        if is_in_time {
            self.last_renewal = Some(sent);
        } else {
            self.late_renewal = Some(sent);
        }
    }

    /// Whether the next round may be held open: no writer waits for what it reports.
    pub(super) fn may_wait(&self) -> bool {
        self.is_heard() && self.late_renewal.is_none()
    }

    /// Notes that the copy could not be kept up; `needs_reload`: and only a reload helps. Returns whether that is news.
    pub(super) fn set_back(&mut self, failure: &FeedFailure, needs_reload: bool) -> bool {
        let news = self.failure.is_none() && !self.doubtful;
        self.setbacks += 1;
        if let FeedFailure::Store(error) = failure {
            self.failure = Some(error.reason());
        }
        self.doubtful |= needs_reload;
        news
    }

    pub(super) fn since_renewal(&self) -> Option<Duration> {
        self.last_renewal.map(|moment| moment.elapsed())
    }

    pub(super) fn status(&self, snapshot: Option<&Snapshot>) -> ReplicaStatus {
        ReplicaStatus {
            complete: snapshot.is_some(),
            current: snapshot.is_some() && !self.doubtful && self.is_heard(),
            generation: snapshot.map_or(0, |snapshot| snapshot.generation),
            seq: snapshot.map_or(0, |snapshot| snapshot.seq),
            keys: snapshot.map_or(0, |snapshot| snapshot.keys),
            undecodable: snapshot.map_or(0, |snapshot| snapshot.undecodable),
            loads: self.loads,
            setbacks: self.setbacks,
            since_reply: self.last_reply.map(|moment| moment.elapsed()),
            since_renewal: self.since_renewal(),
            failure: self.failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(120);

    /// Gate that is renewed so many seconds after the beginning, each time in no time.
    struct Gate(Instant, Progress);

    impl Gate {
        fn loaded() -> Self {
            let mut gate = Self(Instant::now(), Progress::default());
            gate.renews_after(0);
            gate.1.loaded(gate.0);
            gate
        }

        fn renews_after(&mut self, seconds: u64) {
            let at = self.0 + Duration::from_secs(seconds);
            self.1.renewed(at, at, GRACE);
        }

        /// The renewal that it may serve by, in seconds after the beginning.
        fn serves_by(&self) -> Option<u64> {
            let renewal = self.1.last_renewal?;
            Some(renewal.duration_since(self.0).as_secs())
        }
    }

    #[test]
    fn a_renewal_in_time_counts_at_once() {
        let mut gate = Gate::loaded();
        for moment in [1, 2, 122] {
            gate.renews_after(moment);
            assert_eq!(gate.serves_by(), Some(moment));
        }
    }

    #[test]
    fn the_first_renewal_counts_once_everything_is_loaded() {
        let mut gate = Gate(Instant::now(), Progress::default());
        gate.renews_after(0);
        assert_eq!(gate.serves_by(), None);
        gate.1.loaded(gate.0);
        assert_eq!(gate.serves_by(), Some(0));
    }

    #[test]
    fn a_renewal_after_the_grace_counts_once_the_copy_has_caught_up_with_it() {
        let mut gate = Gate::loaded();
        gate.renews_after(121);
        assert_eq!(gate.serves_by(), Some(0));
        gate.renews_after(122);
        assert_eq!(gate.serves_by(), Some(0), "nothing was read between them");
        gate.1.caught_up();
        assert_eq!(gate.serves_by(), Some(122));
    }

    #[test]
    fn what_was_read_before_the_late_renewal_does_not_count() {
        let mut gate = Gate::loaded();
        gate.1.caught_up();
        gate.renews_after(121);
        assert_eq!(gate.serves_by(), Some(0));
    }

    #[test]
    fn a_renewal_whose_answer_came_after_the_grace_is_late() {
        let mut gate = Gate::loaded();
        let sent = gate.0 + Duration::from_secs(119);
        gate.1.renewed(sent, sent + Duration::from_secs(2), GRACE);
        assert_eq!(gate.serves_by(), Some(0));
    }

    #[test]
    fn a_round_is_held_open_only_while_nobody_waits_for_it() {
        let mut gate = Gate::loaded();
        assert!(gate.1.may_wait());
        gate.renews_after(121);
        assert!(!gate.1.may_wait());
        gate.1.caught_up();
        assert!(gate.1.may_wait());
    }
}
