//! Remains of a cluster on the machine: processes, mounts, links, routes, packet rules and control groups.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cluster::{Cluster, NAME};
use crate::process::run;

/// The cluster's control group, and the one that a kubelet makes for its pods whatever its settings.
const GROUPS: [&str; 2] = [NAME, "kubepods"];

/// The lists at one moment; each entry says of what kind it is.
#[derive(Debug)]
pub struct Lists(BTreeSet<String>);

impl Lists {
    /// Reads the machine's lists at this moment.
    pub fn now(cluster: &Cluster) -> Result<Self> {
        let mut entries = BTreeSet::new();
        let mut add = |kind: &str, text: &str| {
            entries.extend(text.lines().map(|line| format!("{kind}: {}", line.trim())));
        };
        let mounts = fs::read_to_string("/proc/self/mounts");
        add("mount", &mounts.context("cannot read the list of mounts")?);
        let routes = run(Command::new("ip").args(["route", "show", "table", "all"]))?;
        add("route", &routes);
        let rules = run(Command::new("nft").args(["--stateless", "list", "ruleset"]))?;
        add("packet rule", &rules);
        for link in fs::read_dir("/sys/class/net").context("cannot read the list of links")? {
            add("link", &link?.file_name().display().to_string());
        }
        processes(cluster, &mut entries)?;
        control_groups(Path::new("/sys/fs/cgroup"), &mut entries)?;
        Ok(Self(entries))
    }

    /// Returns the differences of two lists: `left` behind or `removed`, though it was there before.
    pub fn differences(before: &Self, after: &Self) -> Vec<String> {
        let left = after.0.difference(&before.0);
        let left = left.map(|entry| format!("left: {entry}"));
        let removed = before.0.difference(&after.0);
        let removed = removed.map(|entry| format!("removed: {entry}"));
        left.chain(removed).collect()
    }
}

/// Lists the cluster's own processes only, by its folder in the command line, or by its control group: other
/// work goes on during a test.
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

/// Lists the groups below one of [`GROUPS`] only: other work makes its own groups during a test.
fn control_groups(folder: &Path, entries: &mut BTreeSet<String>) -> Result<()> {
    let Ok(folder) = fs::read_dir(folder) else {
        // Made by another program and removed meanwhile.
        return Ok(());
    };
    for entry in folder {
        let path = entry?.path();
        if !path.is_dir() || path.is_symlink() {
            continue;
        }
        let is_named = |part: Component<'_>| GROUPS.iter().any(|name| part.as_os_str() == *name);
        if path.components().any(is_named) {
            entries.insert(format!("control group: {}", path.display()));
        }
        control_groups(&path, entries)?;
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
    fn left_and_removed_entries_are_both_reported() {
        let before = lists(&["link: eth0", "link: lo"]);
        let after = lists(&["link: lo", "link: water-data"]);
        assert_eq!(
            Lists::differences(&before, &after),
            ["left: link: water-data", "removed: link: eth0"]
        );
    }

    #[test]
    fn groups_of_the_names_and_below_them_are_listed() {
        let root = tempfile::tempdir().unwrap();
        for group in ["memory/water-data/pods", "memory/another/session"] {
            fs::create_dir_all(root.path().join(group)).unwrap();
        }
        let mut entries = BTreeSet::new();
        control_groups(root.path(), &mut entries).unwrap();
        let ends = ["water-data", "water-data/pods"];
        let listed =
            ends.map(|end| format!("control group: {}/memory/{end}", root.path().display()));
        assert_eq!(entries, BTreeSet::from(listed));
    }
}
