//! The gates' leases: the changes that each gate has applied, and its last renewal.

use std::time::Duration;

use serde_json::Value;
use water_domain::Timestamp;

use super::Directory;
use super::claimed_directory::Position;
use super::scripts::{LEASES, moment, number};
use crate::failure::StoreError;

/// A gate's report of the position of its copy of the directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GateLease {
    /// The pod's uid.
    pub uid: String,
    /// The generation of the copy that it serves from; 0 without one.
    pub generation: u64,
    /// The last change that it has applied.
    pub seq: u64,
    /// Time for which it may serve from memory after its last renewal.
    pub grace: Duration,
    /// Redis' time at its last renewal.
    pub renewed: Timestamp,
    /// Rises with each renewal of the pod.
    pub renewal: Renewal,
}

/// A renewal of a lease. A later one of the same pod is greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Renewal {
    /// Time at which the gate's process began, in ms by Redis' clock, or later than every process before it.
    pub start: u64,
    /// Renewals of that process so far.
    pub count: u64,
}

/// Leases of all gates, and what is needed to judge them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leases {
    /// Redis' time.
    pub now: Timestamp,
    /// The directory's generation; `None` when there is no directory, or when Redis has restarted or
    /// failed over since the directory was rebuilt, so that it may be an earlier one's.
    pub generation: Option<u64>,
    /// The last change in that generation; 0 with none.
    pub seq: u64,
    /// Leases, in no order.
    pub gates: Vec<GateLease>,
}

/// Time for which a silent gate is still waited for after its grace: clocks, pauses, a renewal under way.
pub const MARGIN: Duration = Duration::from_secs(10);

impl Directory {
    /// The gates' leases and the generation in which they count, read in one script. Leases that
    /// nobody renewed for an hour are dropped.
    pub async fn leases(&self) -> Result<Leases, StoreError> {
        let attempt = "read the gates' leases";
        let mut call = LEASES.key(self.instance.gates());
        call.key(self.instance.meta());
        let reply: Vec<Vec<u8>> = self.connection.run_script(attempt, &call).await?;
        Leases::read(&reply).ok_or_else(|| StoreError::unexpected(attempt))
    }
}

impl Leases {
    /// Whether the gate of `lease`, which is not outdated, can still act on what was there before
    /// `change`: it has not applied it, and was not silent for so long that it has stopped serving by
    /// itself. Leases must have been read after the change was written.
    pub fn awaits(&self, lease: &GateLease, change: &Position) -> bool {
        let silent = self.now.as_millis() - lease.renewed.as_millis();
        lease.seq < change.seq && silent < (lease.grace + MARGIN).as_millis() as i64
    }

    /// Whether a lease is of another generation than the directory, and so acknowledges nothing: after
    /// a rebuild, or a loss of data before it, the same `seq` may have meant another change. A rebuild
    /// starts above every earlier `seq`, so that a gate which has loaded it has every change before it.
    ///
    /// A Redis that went back in time shows leases older than the gates' last renewals, so that their age says nothing:
    /// such a gate is waited for like one without a lease.
    pub fn is_outdated(&self, lease: &GateLease) -> bool {
        Some(lease.generation) != self.generation
    }

    /// The lease of the pod with this uid.
    pub fn get(&self, uid: &str) -> Option<&GateLease> {
        self.gates.iter().find(|lease| lease.uid == uid)
    }

    /// Time at which the last rebuild began, by Redis' clock, or later: a generation's number is that time in ms,
    /// unless the one before was higher. `None` with no generation.
    pub fn rebuilt(&self) -> Option<Timestamp> {
        Timestamp::from_millis(i64::try_from(self.generation?).ok()?)
    }

    /// Reads the reply of `leases.lua`.
    fn read(reply: &[Vec<u8>]) -> Option<Self> {
        let (head, leases) = reply.split_at_checked(3)?;
        let seq = &head[2][..];
        let leases = leases.iter();
        Some(Self {
            now: moment(&head[0])?,
            generation: match &head[1][..] {
                b"" => None,
                generation => Some(number(generation)?),
            },
            seq: if seq.is_empty() { 0 } else { number(seq)? },
            gates: leases
                .filter_map(|lease| GateLease::decode(lease))
                .collect(),
        })
    }
}

impl GateLease {
    /// Reads the JSON that `lease.lua` writes; times in ms.
    fn decode(stored: &[u8]) -> Option<Self> {
        let lease: Value = serde_json::from_slice(stored).ok()?;
        Some(Self {
            uid: lease["uid"].as_str()?.into(),
            generation: lease["generation"].as_u64()?,
            seq: lease["seq"].as_u64()?,
            grace: Duration::from_millis(lease["grace"].as_u64()?),
            renewed: Timestamp::from_millis(lease["renewed"].as_i64()?)?,
            renewal: Renewal {
                start: lease["start"].as_u64().unwrap_or_default(),
                count: lease["count"].as_u64().unwrap_or_default(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leases(lease: &str) -> Leases {
        let reply = ["200000", "7", "10", lease].map(|text| text.as_bytes().to_vec());
        Leases::read(&reply).unwrap()
    }

    /// Whether this gate is waited for; `None`: its lease is outdated.
    fn awaited(generation: u64, seq: u64, renewed: i64) -> Option<bool> {
        let lease = format!(
            r#"{{"uid":"u","generation":{generation},"seq":{seq},"grace":120000,"renewed":{renewed},"mode":"serving"}}"#
        );
        let leases = leases(&lease);
        let lease = &leases.gates[0];
        let change = Position {
            generation: 7,
            seq: 10,
        };
        (!leases.is_outdated(lease)).then(|| leases.awaits(lease, &change))
    }

    #[test]
    fn a_gate_acknowledges_by_the_changes_seq_or_a_later_one() {
        assert_eq!(awaited(7, 9, 200_000), Some(true));
        assert_eq!(awaited(7, 10, 200_000), Some(false));
    }

    #[test]
    fn an_acknowledgement_of_another_generation_does_not_count() {
        assert_eq!(awaited(6, 99, 200_000), None);
        assert_eq!(awaited(8, 99, 200_000), None);
    }

    #[test]
    fn the_age_of_a_lease_of_another_generation_says_nothing() {
        assert_eq!(awaited(6, 9, 1), None);
    }

    #[test]
    fn a_silent_gate_is_waited_for_until_its_grace_and_ten_seconds_are_over() {
        assert_eq!(awaited(7, 9, 70_001), Some(true));
        assert_eq!(awaited(7, 9, 70_000), Some(false));
    }

    #[test]
    fn a_lease_that_cannot_be_read_hides_no_other() {
        let good =
            r#"{"uid":"good","generation":1,"seq":1,"grace":1,"renewed":1,"mode":"serving"}"#;
        let reply = ["200000", "7", "10", r#"{"renewed":1}"#, good];
        let leases = Leases::read(&reply.map(|text| text.as_bytes().to_vec())).unwrap();
        assert_eq!(leases.gates.len(), 1);
        assert_eq!(leases.gates[0].uid, "good");
    }

    #[test]
    fn a_lease_of_a_later_version_is_still_read() {
        let lease = r#"{"uid":"u","generation":1,"seq":1,"grace":1,"renewed":1,"mode":"dreaming","more":1}"#;
        assert_eq!(leases(lease).gates[0].seq, 1);
    }
}
