//! ApiKeys for which the container's memory is enough.

use std::fs;

/// Memory limit of this process' control group, in bytes: cgroup_namespaces(7) shows it at the root. `max`: no limit.
const LIMIT: &str = "/sys/fs/cgroup/memory.max";
/// Peak memory of an operator without ApiKeys.
const WITHOUT: u64 = 21 << 20;
/// Memory of each ApiKey with its Secret besides: measured with 100 and 10 000, all created, rotated and deleted
/// (`cargo dev bench operator`: 22 and 140 MiB).
const EACH: u64 = 12_500;

/// Number of ApiKeys that the limit carries, if there is one.
pub fn api_keys() -> Option<u64> {
    of_limit(&fs::read_to_string(LIMIT).ok()?)
}

fn of_limit(limit: &str) -> Option<u64> {
    let limit: u64 = limit.trim().parse().ok()?;
    Some(limit.saturating_sub(WITHOUT) / EACH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_limit_carries_so_many_apikeys() {
        assert_eq!(
            of_limit("201326592\n"),
            Some(14_344),
            "192 MiB, the chart's"
        );
        assert_eq!(of_limit("1048576\n"), Some(0));
        assert_eq!(of_limit("max\n"), None);
    }
}
