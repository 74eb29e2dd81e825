//! Faults by their numbers. Each of their tests carries the number in its name, or several:
//! `fault_07_an_api_server_that_is_restarted_…`, `fault_02_03_…`.

use std::process::Command;

use anyhow::Result;

use crate::process::run;
use crate::project::project;

/// Names of the faults, the first one's first.
pub const FAULTS: [&str; 51] = [
    "the operator is killed at every request of a creation",
    "the operator is killed at every request of a rotation, a reissue, a suspension",
    "the operator is killed at every request of a deletion",
    "the operator is asked to stop",
    "the leader is stopped past its lease and continued",
    "the Lease is deleted or taken by hand",
    "the API server is restarted",
    "the API server is a black hole for 120 s",
    "the API server answers 429 and 503 with Retry-After: 600",
    "a watch ends with 410 in its stream",
    "a watch is refused with 410",
    "a watch is cut off within an event, a list in its midst; etcd is restored from an older snapshot",
    "etcd is out of space",
    "rights are taken away and given back",
    "the definition of ApiKeys is deleted and made again",
    "an object is stored that no operator can read",
    "finalizers are stripped while no operator runs",
    "a namespace with 200 keys is deleted",
    "a key's Secret is deleted or edited",
    "another's Secret has the name",
    "two ApiKeys name one Secret or one hash",
    "Redis is flushed",
    "Redis is killed and comes back empty or with an old dump",
    "a replica of Redis is promoted",
    "Redis is out of memory, or evicts a record",
    "Redis is slow, a black hole, half open",
    "Redis has another password after a rotation",
    "PostgreSQL is restarted, out of connections, slow, out of disk",
    "a migration fails; two race",
    "a service hangs",
    "a rolling upgrade under load three times, and back",
    "a new image is broken",
    "a node is drained under disruption budgets",
    "autoscaling is turned on and off while scaled",
    "children are edited and deleted",
    "a clock is an hour ahead or behind",
    "10 000 keys: a cold start, created, rotated and deleted at once",
    "a gate is cut from Redis; the operator is",
    "the operator of the version before and this one follow each other",
    "helm upgrade dies midway; rollback, uninstall, reinstall",
    "the log is not read; no file descriptors, no disk",
    "the portal is killed at every request of a creation, rotation, revocation",
    "Redis is away from the portal",
    "the identity provider is away, or has other keys",
    "the API server is away from the portal",
    "the portal's next version is rolled out under signed-in readers, and back",
    "one Redis of several is silent",
    "other people's labels and annotations fill ApiKeys and Secrets",
    "a webhook undoes the operator's writes",
    "a gate never completes a load",
    "the API server refuses the writes of one ApiKey",
];

/// Parts of faults that no test shows. Such a fault is not held, whatever has passed.
pub const LACKING: [(usize, &str); 6] = [
    (31, "one upgrade is rolled under load, and none back"),
    (32, "no test rolls out an image that does not start"),
    (33, "pods are deleted in turn, not evicted"),
    (34, "no test scales"),
    (39, "there is no version before"),
    (40, "no test interrupts Helm"),
];

/// The fault that is measured: `cargo dev bench operator` records a row for each bound.
pub const MEASURED: (usize, &str) = (37, "tests/bench/results/operator.json");

/// Folders in which the paths of tests begin.
const ROOTS: [&str; 3] = ["/tests/it/", "tests/e2e/", "/src/"];

/// Returns the numbers in the name of a test.
pub fn numbers(test: &str) -> impl Iterator<Item = usize> {
    let name = test.rsplit("::").next().unwrap_or_default();
    let digits = name.strip_prefix("fault_").unwrap_or_default();
    let digits = digits.split('_').take_while(|part| part.len() == 2);
    digits.map_while(|part| part.parse().ok())
}

/// Returns the paths of all tests of faults in the sources.
pub fn tests() -> Result<Vec<String>> {
    let mut grep = Command::new("grep");
    grep.args(["-roE", "--include=*.rs", "fn fault_[0-9a-z_]+"]);
    grep.args(["operator", "services", "tests"])
        .current_dir(project());
    let found = run(&mut grep)?;
    let tests = found.lines().filter_map(|line| line.split_once(":fn "));
    Ok(tests.map(|(file, name)| path(file, name)).collect())
}

/// Returns the path of a test, such as `faults::kills::fault_01_…`. In a file of the product's own it is in the module
/// `tests`.
fn path(file: &str, name: &str) -> String {
    let inner = ROOTS.iter().find_map(|root| Some(file.split_once(root)?.1));
    let modules = inner.unwrap_or(file).trim_end_matches(".rs");
    let within = file.contains("/src/") && !modules.split('/').any(|module| module == "tests");
    let tests = if within { "::tests" } else { "" };
    format!("{modules}{tests}::{name}").replace('/', "::")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_fault_has_a_test_or_says_what_is_lacking_and_no_test_has_an_unknown_number()
    -> Result<()> {
        let tests = tests()?;
        let all: BTreeSet<usize> = (1..=FAULTS.len()).collect();
        let tested: BTreeSet<usize> = tests.iter().flat_map(|test| numbers(test)).collect();
        let lacking = LACKING.iter().map(|(number, _)| *number);
        let excused: BTreeSet<usize> = lacking.chain([MEASURED.0]).collect();
        assert_eq!(&tested | &excused, all);
        assert!(tests.iter().all(|test| numbers(test).next().is_some()));
        let paths: BTreeSet<&String> = tests.iter().collect();
        assert_eq!(paths.len(), tests.len(), "two tests have one path");
        Ok(())
    }

    #[test]
    fn a_path_has_the_modules_of_its_file() {
        let paths = [
            "operator/tests/it/faults/kills.rs",
            "services/portal/src/keys/tests/kills.rs",
            "services/runtime/src/telemetry/lines.rs",
            "tests/e2e/long/disruption.rs",
        ]
        .map(|file| path(file, "fault_01_a"));
        let expected = [
            "faults::kills::fault_01_a",
            "keys::tests::kills::fault_01_a",
            "telemetry::lines::tests::fault_01_a",
            "long::disruption::fault_01_a",
        ];
        assert_eq!(paths, expected);
    }
}
