//! What a cluster could leave on the machine: processes, mounts, links, routes, packet rules and control groups.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cluster::Cluster;
use crate::process::run;

/// The lists at one moment; each entry says of what kind it is.
#[derive(Debug)]
pub struct Lists(BTreeSet<String>);

impl Lists {
    /// What there is on the machine, without what belongs to other clusters: they come and go by themselves.
    pub fn now(cluster: &Cluster) -> Result<Self> {
        let mut entries = BTreeSet::new();
        processes(cluster, &mut entries)?;
        let mounts =
            fs::read_to_string("/proc/self/mounts").context("cannot read the list of mounts")?;
        entries.extend(mounts.lines().map(|line| format!("mount: {line}")));
        for link in fs::read_dir("/sys/class/net").context("cannot read the list of links")? {
            entries.insert(format!("link: {}", link?.file_name().display()));
        }
        let routes = run(Command::new("ip").args(["route", "show", "table", "all"]))?;
        entries.extend(routes.lines().map(|line| format!("route: {}", line.trim())));
        let rules = run(Command::new("nft").args(["--stateless", "list", "ruleset"]))?;
        entries.extend(
            rules
                .lines()
                .map(|line| format!("packet rule: {}", line.trim())),
        );
        control_groups(Path::new("/sys/fs/cgroup"), &mut entries)?;
        entries.retain(|entry| !names_another(entry, cluster.number));
        Ok(Self(entries))
    }

    /// What is in one list and not in the other: `left` behind or `removed`, though it was there before.
    pub fn differences(before: &Self, after: &Self) -> Vec<String> {
        let left = after
            .0
            .difference(&before.0)
            .map(|entry| format!("left: {entry}"));
        let removed = before
            .0
            .difference(&after.0)
            .map(|entry| format!("removed: {entry}"));
        left.chain(removed).collect()
    }
}

/// Other work goes on beside a test, so only the cluster's own processes are listed: by its folder in the command line,
/// or by its control group.
fn processes(cluster: &Cluster, entries: &mut BTreeSet<String>) -> Result<()> {
    let (folder, group) = (
        format!("{}/", cluster.folder.display()),
        format!("/{}/", cluster.cgroup()),
    );
    for entry in fs::read_dir("/proc").context("cannot read /proc")? {
        let path = entry?.path();
        // A process may end while it is looked at; a zombie has no command line, but keeps its control group.
        let command_line = fs::read(path.join("cmdline")).unwrap_or_default();
        let command_line = String::from_utf8_lossy(&command_line).replace('\0', " ");
        let groups = fs::read_to_string(path.join("cgroup")).unwrap_or_default();
        if command_line.contains(&folder) || groups.contains(&group) {
            entries.insert(format!("process: {} {command_line}", path.display()));
        }
    }
    Ok(())
}

/// Those of systemd come and go with sessions and timers that have nothing to do with a cluster.
fn control_groups(folder: &Path, entries: &mut BTreeSet<String>) -> Result<()> {
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let path = entry?.path();
        let is_systemds = [".scope", ".service", ".slice"]
            .iter()
            .any(|end| path.display().to_string().ends_with(end));
        if path.is_dir() && !path.is_symlink() && !is_systemds {
            entries.insert(format!("control group: {}", path.display()));
            control_groups(&path, entries)?;
        }
    }
    Ok(())
}

/// Whether `entry` holds the name of another cluster's link or control group.
fn names_another(entry: &str, number: u8) -> bool {
    entry.split(Cluster::NAME).skip(1).any(|rest| {
        let digits = rest
            .find(|character: char| !character.is_ascii_digit())
            .unwrap_or(rest.len());
        rest[..digits]
            .parse::<u8>()
            .is_ok_and(|other| other != number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(entries: &[&str]) -> Lists {
        Lists(entries.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn what_was_left_and_what_was_removed_are_both_reported() {
        let (before, after) = (
            lists(&["link: eth0", "link: lo"]),
            lists(&["link: lo", "link: water-data3"]),
        );
        assert_eq!(
            Lists::differences(&before, &after),
            ["left: link: water-data3", "removed: link: eth0"]
        );
    }

    #[test]
    fn another_clusters_names_are_told_from_ones_own() {
        assert!(names_another(
            "route: 10.96.12.0/24 via 10.199.12.2 dev water-data12",
            1
        ));
        assert!(!names_another(
            "control group: /sys/fs/cgroup/memory/water-data1/kubepods",
            1
        ));
        assert!(!names_another(
            "mount: tmpfs /var/lib/water-data tmpfs rw",
            1
        ));
    }
}
