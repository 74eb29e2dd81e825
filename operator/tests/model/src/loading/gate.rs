//! A gate's process, its renewals, its copy, and the load that runs: `directory::replica` of `services/keystore`.

/// Ticks for which a gate serves after its last renewal.
pub const GRACE: u8 = 1;

/// A renewal, in the order of those of one pod.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Renewal {
    /// Time at which the process began; 0: it does not know yet.
    pub start: u8,
    pub count: u8,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub enum Load {
    #[default]
    None,
    /// The key has not been read yet.
    Begun,
    /// The key has been read as it was after this change.
    Read(u8),
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub struct Gate {
    pub runs: bool,
    /// Number of processes of the pod before this one.
    pub before: u8,
    /// The last renewal that it sent.
    pub renewal: Renewal,
    /// The last change in its copy.
    pub copy: Option<u8>,
    pub load: Load,
    /// Tick of the renewal by which it serves.
    pub last_renewal: Option<u8>,
    /// Tick of a renewal that was too late, or the first: it counts once the copy has caught up with it.
    pub late_renewal: Option<u8>,
}

impl Gate {
    /// A process that has just started after so many.
    pub fn started(before: u8) -> Self {
        Self {
            runs: true,
            before,
            ..Self::default()
        }
    }

    /// Learns when it began, which is after every process before it.
    pub fn begin(&mut self, exceed: u8) {
        let start = (self.before + 2).max(exceed + 1);
        self.renewal = Renewal { start, count: 0 };
    }

    /// Notes that the lease was renewed.
    pub fn renewed(&mut self, now: u8) {
        if self.is_in_time(now) {
            self.last_renewal = Some(now);
        } else {
            self.late_renewal = Some(now);
        }
    }

    /// Takes what the directory holds after this change for its copy.
    pub fn take(&mut self, seq: u8) {
        self.copy = Some(seq);
        self.last_renewal = self.late_renewal.take().or(self.last_renewal);
    }

    /// Whether the last renewal is within the grace.
    pub fn is_in_time(&self, now: u8) -> bool {
        self.last_renewal.is_some_and(|last| now - last <= GRACE)
    }
}
