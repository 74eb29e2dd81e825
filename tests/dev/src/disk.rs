//! Whether the disk has room for what a command builds.

use anyhow::{Context, Result, bail};
use nix::sys::statvfs::statvfs;

use crate::project::project;
use crate::test::LINTS_FOLDER;

const GIB: u64 = 1 << 30;
/// What a run of all tests adds to a checkout in which none ran.
const FIRST_RUN: u64 = 12 * GIB;
/// What it adds to one in which one did.
const LATER_RUN: u64 = 3 * GIB;

/// An error before the first step says more than tests that fail on a full disk.
pub fn has_room_for_tests() -> Result<()> {
    let project = project();
    let found = statvfs(&project).context("cannot ask how much of the disk is free")?;
    let free = found.blocks_available() * found.fragment_size();
    // A run compiles it last.
    let ran = project.join(LINTS_FOLDER).exists();
    enough(free, if ran { LATER_RUN } else { FIRST_RUN })
}

fn enough(free: u64, needed: u64) -> Result<()> {
    if free < needed {
        let gib = |bytes: u64| bytes as f64 / GIB as f64;
        bail!(
            "{:.1} GiB of the disk are free, and the tests fill {:.0} GiB: free some, for example by `cargo clean` in \
             other checkouts",
            gib(free),
            gib(needed)
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_room_is_told_in_numbers_with_a_remedy() {
        assert!(enough(LATER_RUN, LATER_RUN).is_ok());
        let error = enough(FIRST_RUN / 2, FIRST_RUN).unwrap_err().to_string();
        for words in ["6.0 GiB", "12 GiB", "cargo clean"] {
            assert!(error.contains(words), "{error}");
        }
    }
}
