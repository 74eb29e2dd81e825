//! Largest number of client connections of this process.

use std::num::NonZeroUsize;

use ipnet::IpNet;
use tracing::warn;
use water_runtime::ConnectionLimits;

/// Descriptors of the process: half of them the admin port's connections, the others logs, the key
/// directory's connections and event queues.
const OWN: u64 = 64;
/// Descriptors of each worker: its listener, its limiter's connection, its event queue.
const PER_WORKER: u64 = 16;
/// Descriptors of a client's connection: itself, one to the service that answers it, and one to the other service that
/// may wait in the pool. No accepted client is refused for lack of a descriptor.
const PER_CONNECTION: u64 = 3;

/// Returns the usual deadlines and bounds of connections, within the available descriptors.
pub fn connection_limits(
    descriptors: u64,
    workers: NonZeroUsize,
    trusted: Vec<IpNet>,
) -> ConnectionLimits {
    let wanted = ConnectionLimits::default();
    let total = wanted.total.min(places(descriptors, workers));
    if total < wanted.total {
        warn!(
            connections = total,
            descriptors, "the limit of file descriptors allows fewer connections than 4096"
        );
    }
    ConnectionLimits {
        total,
        trusted,
        bodies: false,
        ..wanted
    }
}

/// Returns at least one, so that a gate whose limit is too low for anything shows it by failing.
fn places(descriptors: u64, workers: NonZeroUsize) -> usize {
    let taken = OWN + PER_WORKER * workers.get() as u64;
    let left = descriptors.saturating_sub(taken) / PER_CONNECTION;
    usize::try_from(left).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn limits(descriptors: u64) -> ConnectionLimits {
        connection_limits(descriptors, NonZeroUsize::MIN, Vec::new())
    }

    #[test]
    fn the_deadlines_and_bounds_are_those_of_the_design() {
        let limits = limits(1 << 20);
        assert_eq!(limits.head, Duration::from_secs(10));
        assert_eq!(limits.idle, Duration::from_secs(95));
        assert_eq!(limits.write, Duration::from_secs(30));
        assert_eq!((limits.total, limits.per_peer), (4096, 256));
    }

    #[test]
    fn few_descriptors_carry_few_connections() {
        assert_eq!(limits(1 << 14).total, 4096);
        assert_eq!(limits(1024).total, 314);
        assert_eq!(limits(83).total, 1);
        assert_eq!(limits(0).total, 1);
        assert_eq!(places(1024, NonZeroUsize::MIN.saturating_add(3)), 298);
    }
}
