//! Remains of a cluster on the machine: processes, mounts, links, routes, packet rules and control groups.
//!
//! Only what names the cluster, its folder or an address of its networks is listed: the machine may be shared with
//! other work, whose own comes and goes.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cluster::{Cluster, HOST_ADDRESS, NAME, POD_NETWORK, SERVICE_NETWORK};
use crate::namespace;
use crate::process::run;

/// The cluster's entries in the machine's lists at one moment; each says of what kind it is.
#[derive(Debug)]
pub struct Lists(BTreeSet<String>);

impl Lists {
    /// Reads the machine's lists at this moment.
    pub fn now(cluster: &Cluster) -> Result<Self> {
        let mut entries = BTreeSet::new();
        let mut add = |kind: &str, text: &str| {
            let own = text.lines().filter(|line| is_own(line));
            entries.extend(own.map(|line| format!("{kind}: {}", line.trim())));
        };
        // Unlike the list of `mounts`, it names the folder of which a mount shows a part.
        let mounts = fs::read_to_string("/proc/self/mountinfo");
        add("mount", &mounts.context("cannot read the list of mounts")?);
        let routes = run(Command::new("ip").args(["route", "show", "table", "all"]))?;
        add("route", &routes);
        let rules = run(Command::new("nft").args(["--stateless", "list", "ruleset"]))?;
        add("packet rule", &rules);
        for link in fs::read_dir("/sys/class/net").context("cannot read the list of links")? {
            add("link", &link?.file_name().display().to_string());
        }
        // Those of its pods are below.
        for group in namespace::cgroups()?.iter().filter(|group| group.exists()) {
            add("control group", &group.display().to_string());
        }
        processes(cluster, &mut entries)?;
        Ok(Self(entries))
    }

    /// Returns what is there after a cluster, and was not before it.
    pub fn differences(before: &Self, after: &Self) -> Vec<String> {
        let left = after.0.difference(&before.0);
        left.map(|entry| format!("left: {entry}")).collect()
    }
}

/// Whether a line of a list names the cluster, as its folder does, too, or an address of its networks.
fn is_own(line: &str) -> bool {
    let networks = [HOST_ADDRESS, POD_NETWORK, SERVICE_NETWORK].map(beginning);
    let mut words = line.split(|character: char| !is_of_a_word(character));
    words.any(|word| word == NAME || networks.iter().any(|network| word.starts_with(network)))
}

fn is_of_a_word(character: char) -> bool {
    character.is_alphanumeric() || "-_.".contains(character)
}

/// Returns what all addresses of a network begin with, up to the last dot.
fn beginning(network: &str) -> &str {
    network.trim_end_matches(|character: char| character != '.')
}

/// Lists the cluster's own processes only, by its folder in the command line, or by its control group.
fn processes(cluster: &Cluster, entries: &mut BTreeSet<String>) -> Result<()> {
    let folder = format!("{}/", cluster.folder.display());
    let group = format!("/{NAME}/");
    for entry in fs::read_dir("/proc").context("cannot read /proc")? {
        let path = entry?.path();
        // A process may end at any time; a zombie has no command line, but keeps its control group.
        let command_line = fs::read(path.join("cmdline")).unwrap_or_default();
        let command_line = String::from_utf8_lossy(&command_line).replace('\0', " ");
        let groups = fs::read_to_string(path.join("cgroup")).unwrap_or_default();
        if command_line.contains(&folder) || groups.contains(&group) {
            entries.insert(format!("process: {} {command_line}", path.display()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(entries: &[&str]) -> Lists {
        Lists(entries.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn only_entries_that_were_not_there_before_are_left() {
        // The second is of an earlier cluster, and is removed meanwhile.
        let before = lists(&["route: 10.96.0.0/24", "mount: water-data"]);
        let after = lists(&["route: 10.96.0.0/24", "link: water-data"]);
        assert_eq!(
            Lists::differences(&before, &after),
            ["left: link: water-data"]
        );
    }

    #[test]
    fn a_cluster_is_known_by_its_name_its_folder_and_its_networks() {
        for line in [
            "water-data",
            "/sys/fs/cgroup/memory/water-data",
            "63 29 254:0 /root/.local/state/water-data/test/var /var rw,relatime - ext4 /dev/vda rw",
            "64 29 254:0 /me/.local/state/water-data/test /run/data rw - ext4 /dev/vdb rw",
            "65 29 0:40 / /run rw,relatime - tmpfs water-data rw",
            "10.96.0.0/24 via 10.199.0.2 dev water-data",
            "local 10.199.0.1 dev another table local proto kernel",
            "\t\tip saddr {10.244.0.7} queue flags bypass to 100",
            "\telements = { 10.96.0.10 . udp . 53 : goto service }",
        ] {
            assert!(is_own(line), "{line}");
        }
    }

    #[test]
    fn other_work_on_the_machine_is_not_listed() {
        for line in [
            "eth0",
            "/sys/fs/cgroup/memory/kubepods",
            "66 29 0:41 / /run/user/0 rw,nosuid - tmpfs tmpfs rw,size=3200k",
            "67 29 254:0 /work/water-database /mnt rw - ext4 /dev/vda rw",
            "68 29 254:0 /work/my-water-data /mnt rw - ext4 /dev/vda rw",
            "default via 192.168.1.1 dev eth0 proto dhcp expires 100sec",
            "110.96.0.0/24 dev eth0",
            "10.96.1.0/24 dev eth0",
            "10.244.10.0/24 via 10.19.0.2 dev flannel",
        ] {
            assert!(!is_own(line), "{line}");
        }
    }
}
