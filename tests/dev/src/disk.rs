//! Check that the machine has room for what a command builds and runs.

use std::env::temp_dir;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use nix::sys::statvfs::statvfs;
use water_harness::programs::{Program, cache, remove_unfinished};
use water_harness::scratch_directory;

use crate::clusters::Clusters;
use crate::project::project;

/// GiB that a test run's cluster fills: images three times over, logs, and what browsers keep.
const CLUSTER: u32 = 3;
/// GiB that servers of tests have in the temporary folder at a time.
const TEMPORARY: u32 = 1;
/// GiB that a build of the Go programs fills beside the checkout: 1.1 of modules, 3.0 of compiled packages, and its own work.
const GO: u32 = 6;
/// GiB of memory: the kubelet ends pods where little of it is left, which looks like a fault of the product.
const MEMORY: u32 = 3;

/// A place with room in it, in GiB.
struct Room {
    place: String,
    free: f64,
    needed: u32,
}

/// Checks that so many GiB are free in the checkout, and enough wherever else a test run needs room; a place that
/// shares the checkout's disk is part of its figure. An error before the first step says more than tests that fail on a
/// full disk. What test programs and builds that were killed have left is removed first.
pub fn has_room(needed: u32) -> Result<()> {
    // Removes such folders without a lock, too: those of programs that were killed.
    scratch_directory("room").context("cannot make a folder in the temporary folder")?;
    remove_unfinished()?;
    let memory = fs::read_to_string("/proc/meminfo").context("cannot read /proc/meminfo")?;
    let mut rooms = vec![
        Room::on_disk(&project().join("target"), needed)?,
        Room::on_disk(Clusters::of_user()?.folder(), CLUSTER)?,
        Room::on_disk(&temp_dir(), TEMPORARY)?,
        Room {
            place: "memory".to_owned(),
            free: available(&memory).context("/proc/meminfo does not tell what is available")?,
            needed: MEMORY,
        },
    ];
    rooms.extend(of_go()?);
    enough(&rooms)
}

/// Returns the place of the Go programs, where some are to be built. Go's own caches are usually beside it.
fn of_go() -> Result<Option<Room>> {
    let is_built = |program: &Program| program.path().is_ok_and(|path| path.exists());
    if Program::ALL.iter().all(is_built) {
        return Ok(None);
    }
    Ok(Some(Room::on_disk(&cache()?, GO)?))
}

impl Room {
    /// Returns the room on the disk of a folder, which may still have to be made.
    fn on_disk(folder: &Path, needed: u32) -> Result<Self> {
        let made = folder.ancestors().find(|folder| folder.exists());
        let place = format!("the disk of {}", folder.display());
        let found = statvfs(made.unwrap_or(folder))
            .with_context(|| format!("cannot ask how much of {place} is free"))?;
        let free = found.blocks_available() * found.fragment_size();
        Ok(Self {
            place,
            free: free as f64 / f64::from(1 << 30),
            needed,
        })
    }
}

/// Returns the GiB of memory that are available, from the text of `/proc/meminfo`, which counts KiB.
fn available(memory: &str) -> Option<f64> {
    let mut lines = memory.lines();
    let available = lines.find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: f64 = available.split_whitespace().next()?.parse().ok()?;
    Some(kib / f64::from(1 << 20))
}

/// Fails with all places in which too little is free.
fn enough(rooms: &[Room]) -> Result<()> {
    let lacking = rooms
        .iter()
        .filter(|room| room.free < f64::from(room.needed));
    let lacking: Vec<_> = lacking
        .map(|room| {
            format!(
                "{}: {:.1} GiB are free, and {} are needed",
                room.place, room.free, room.needed
            )
        })
        .collect();
    if !lacking.is_empty() {
        bail!(
            "too little room; free some, on a disk for example by `cargo clean` in other checkouts, or name another \
             temporary folder by TMPDIR:\n{}",
            lacking.join("\n")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(place: &str, free: f64, needed: u32) -> Room {
        Room {
            place: place.to_owned(),
            free,
            needed,
        }
    }

    #[test]
    fn each_place_with_too_little_room_is_told_in_numbers_with_a_remedy() {
        assert!(enough(&[room("/work", 12.0, 12), room("/tmp", 1.5, 1)]).is_ok());
        let rooms = [
            room("/work", 6.04, 12),
            room("/tmp", 1.5, 1),
            room("memory", 2.0, 3),
        ];
        let error = enough(&rooms).unwrap_err().to_string();
        for words in [
            "/work: 6.0 GiB are free, and 12 are needed",
            "memory: 2.0 GiB are free, and 3 are needed",
            "cargo clean",
        ] {
            assert!(error.contains(words), "{error}");
        }
        assert!(!error.contains("/tmp"), "{error}");
    }

    #[test]
    fn a_folder_that_is_still_to_be_made_is_on_its_parents_disk() {
        let parent = tempfile::tempdir().unwrap();
        let room = Room::on_disk(&parent.path().join("target/debug"), 1).unwrap();
        assert!(room.free > 0.0 && room.place.ends_with("target/debug"));
    }

    #[test]
    fn available_memory_is_read_in_gib() {
        let text = "MemTotal:       4194304 kB\nMemFree: 10 kB\nMemAvailable:    1572864 kB\n";
        assert_eq!(available(text), Some(1.5));
        assert_eq!(available("MemTotal: 4194304 kB\n"), None);
    }
}
