//! What a cluster could leave on the machine: processes, mounts, links, routes, packet rules and
//! control groups.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cluster::Cluster;
use crate::process::run;

/// What a kubelet makes for its pods, wherever it was told to.
const KUBELETS_GROUP: &str = "kubepods";

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
        let groups = [&*cluster.cgroup(), KUBELETS_GROUP];
        control_groups(Path::new("/sys/fs/cgroup"), &groups, &mut entries)?;
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

/// Other work goes on beside a test, so only the cluster's own processes are listed: by its folder
/// in the command line, or by its control group.
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

/// Other work makes groups of its own beside a test, so only those below one of these names are listed.
fn control_groups(folder: &Path, names: &[&str], entries: &mut BTreeSet<String>) -> Result<()> {
    let Ok(folder) = fs::read_dir(folder) else {
        // One that another program made and has removed meanwhile.
        return Ok(());
    };
    for entry in folder {
        let path = entry?.path();
        if !path.is_dir() || path.is_symlink() {
            continue;
        }
        let is_named = |part: Component<'_>| names.iter().any(|name| part.as_os_str() == *name);
        if path.components().any(is_named) {
            entries.insert(format!("control group: {}", path.display()));
        }
        control_groups(&path, names, entries)?;
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
    fn only_groups_of_the_names_and_what_is_below_them_are_listed() {
        let root = tempfile::tempdir().unwrap();
        for group in ["memory/water-data1/pods", "memory/another/session"] {
            fs::create_dir_all(root.path().join(group)).unwrap();
        }
        let mut entries = BTreeSet::new();
        control_groups(root.path(), &["water-data1"], &mut entries).unwrap();
        let ends = ["water-data1", "water-data1/pods"];
        let listed =
            ends.map(|end| format!("control group: {}/memory/{end}", root.path().display()));
        assert_eq!(entries, BTreeSet::from(listed));
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
