//! State of one connection, seen from outside: its phase, the beginning and the deadline of it.

use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

use futures::task::AtomicWaker;
use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};
use tokio::time::Instant;

use super::ConnectionLimits;

/// Reason for which a connection keeps its place although no request is under way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Slowness {
    /// No reason: it is idle.
    Idle,
    /// A request's head that is not complete.
    Head,
    /// An answer that its peer does not take.
    Reader,
}

/// Phase of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Wait for a request's first byte.
    Idle,
    /// Our side is closed; what the peer still sends is thrown away.
    Closing,
    /// A request's head has begun.
    Head,
    /// The service has the request.
    Busy,
    /// The service has answered and the answer is being written.
    Answering,
}

const PHASES: [Phase; 5] = [
    Phase::Idle,
    Phase::Closing,
    Phase::Head,
    Phase::Busy,
    Phase::Answering,
];

/// State of one connection as the accept loop sees it. Written by the connection's own task, read and
/// commanded by the accept loop; a stale reading costs one comparison more.
#[derive(Debug)]
pub(super) struct Watch {
    epoch: Instant,
    /// `milliseconds since epoch * 8 + phase`, changed together.
    phase: AtomicU64,
    /// Flag: the last bytes that came in were not the end of a head, so the next one has begun behind the
    /// requests that came with them. hyper reads nothing while it answers.
    begun: AtomicBool,
    /// Milliseconds since epoch plus one of the first write that found the socket full; 0: none.
    blocked: AtomicU64,
    /// Flag: more of an answer follows the last write.
    more: AtomicBool,
    /// Set with the first answer.
    answered: AtomicBool,
    close: AtomicBool,
    drain: AtomicBool,
    pub(super) task: AtomicWaker,
}

impl Watch {
    pub(super) fn new(epoch: Instant) -> Self {
        let watch = Self {
            epoch,
            phase: AtomicU64::new(0),
            begun: AtomicBool::new(false),
            blocked: AtomicU64::new(0),
            more: AtomicBool::new(false),
            answered: AtomicBool::new(false),
            close: AtomicBool::new(false),
            drain: AtomicBool::new(false),
            task: AtomicWaker::new(),
        };
        watch.enter(Phase::Idle);
        watch
    }

    /// Begins a phase that has a deadline.
    pub(super) fn enter(&self, phase: Phase) {
        self.phase.store(self.now() * 8 + phase as u64, Relaxed);
    }

    /// Begins a phase that has none, so that nobody asks for its beginning: reads no clock.
    pub(super) fn work(&self, phase: Phase) {
        let (_, since) = self.phase();
        self.phase.store(since * 8 + phase as u64, Relaxed);
    }

    /// Returns the phase, and its beginning in milliseconds since the epoch, or that of the last one with a
    /// deadline.
    pub(super) fn phase(&self) -> (Phase, u64) {
        let packed = self.phase.load(Relaxed);
        (PHASES[(packed % 8) as usize], packed / 8)
    }

    /// Notes bytes that came in, the last of them at the end of a head or not.
    pub(super) fn read(&self, ends_a_head: bool) {
        if self.phase().0 == Phase::Idle {
            self.enter(Phase::Head);
        }
        if self.begun.load(Relaxed) == ends_a_head {
            self.begun.store(!ends_a_head, Relaxed);
        }
    }

    /// Notes bytes that went out; between the pieces of an answer its peer is waited for as after its end.
    pub(super) fn wrote(&self) {
        let phase = self.phase().0;
        if matches!(phase, Phase::Idle | Phase::Head) {
            self.enter(phase);
        }
    }

    /// Notes that the socket takes no more.
    pub(super) fn write_blocked(&self) {
        if self.blocked.load(Relaxed) == 0 {
            self.blocked.store(self.now() + 1, Relaxed);
        }
    }

    /// Notes whether more of an answer follows: until its end the peer has one deadline for all of it.
    pub(super) fn has_more(&self, more: bool) {
        if self.more.load(Relaxed) != more {
            self.more.store(more, Relaxed);
        }
    }

    /// Notes that the socket has taken all written bytes.
    pub(super) fn flushed(&self) {
        if self.more.load(Relaxed) {
            return;
        }
        if self.blocked.load(Relaxed) != 0 {
            self.blocked.store(0, Relaxed);
        }
        if self.phase().0 == Phase::Answering {
            self.answered.store(true, Relaxed);
            // The deadline of a head that has begun is from here on: until here it was us who
            // took the time.
            self.enter(if self.begun.load(Relaxed) {
                Phase::Head
            } else {
                Phase::Idle
            });
        }
    }

    /// Returns the time at which the connection is closed unless something changes before; none while the
    /// service works, whose own deadlines hold then, and while our side is closed.
    pub(super) fn deadline(&self, limits: &ConnectionLimits) -> Option<(Instant, Reason)> {
        let blocked = self.blocked.load(Relaxed);
        if blocked != 0 {
            return Some((self.at(blocked - 1, limits.write), Reason::Write));
        }
        let (phase, since) = self.phase();
        let (allowed, reason) = match phase {
            Phase::Idle if self.draining() && !self.has_answered() => {
                (limits.first_request, Reason::Idle)
            }
            Phase::Idle => (limits.idle, Reason::Idle),
            Phase::Head => (limits.head, Reason::Head),
            Phase::Closing | Phase::Busy | Phase::Answering => return None,
        };
        Some((self.at(since, allowed), reason))
    }

    /// Returns the eviction order at the connection cap: idle, then slow senders, then slow readers; the
    /// oldest first. `None`: a request is under way.
    pub(super) fn gives_way(&self) -> Option<(Slowness, u64)> {
        let blocked = self.blocked.load(Relaxed);
        if blocked != 0 {
            return Some((Slowness::Reader, blocked - 1));
        }
        match self.phase() {
            (Phase::Idle | Phase::Closing, since) => Some((Slowness::Idle, since)),
            (Phase::Head, since) => Some((Slowness::Head, since)),
            (Phase::Busy | Phase::Answering, _) => None,
        }
    }

    /// Whether a request was answered on it before.
    pub(super) fn has_answered(&self) -> bool {
        self.answered.load(Relaxed)
    }

    /// Asks the connection to close at once.
    pub(super) fn ask_close(&self) {
        self.close.store(true, Relaxed);
        self.task.wake();
    }

    /// Asks the connection to end after the request under way.
    pub(super) fn ask_drain(&self) {
        self.drain.store(true, Relaxed);
        self.task.wake();
    }

    /// Waits until the connection is asked to close at once.
    pub(super) async fn asked_to_close(&self) {
        poll_fn(|context| {
            self.task.register(context.waker());
            if self.closing() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    pub(super) fn closing(&self) -> bool {
        self.close.load(Relaxed)
    }

    pub(super) fn draining(&self) -> bool {
        self.drain.load(Relaxed)
    }

    fn now(&self) -> u64 {
        self.epoch.elapsed().as_millis() as u64
    }

    fn at(&self, since: u64, allowed: Duration) -> Instant {
        self.epoch + Duration::from_millis(since) + allowed
    }
}

/// Reason for which we closed a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Reason {
    /// No request came.
    Idle,
    /// A request's head took too long.
    Head,
    /// The peer did not take the answer.
    Write,
    /// The peer did not close its side after we had closed ours.
    Linger,
    /// The peer sent no head of HTTP/1, or too large a one.
    Unreadable,
    /// Others needed the place.
    Evicted,
    /// The peer has too many.
    PeerLimit,
    /// Connections at work hold all places.
    Full,
}

impl EncodeLabelValue for Reason {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        let text = match self {
            Self::Idle => "idle",
            Self::Head => "head",
            Self::Write => "write",
            Self::Linger => "linger",
            Self::Unreadable => "unreadable",
            Self::Evicted => "evicted",
            Self::PeerLimit => "peer_limit",
            Self::Full => "full",
        };
        EncodeLabelValue::encode(&text, encoder)
    }
}
