//! Check that the disk has room for what a command builds.

use anyhow::{Context, Result, bail};
use nix::sys::statvfs::statvfs;

use crate::project::project;

/// Checks that so many GiB are free in the checkout. An error before the first step says more than tests that
/// fail on a full disk.
pub fn has_room(needed: u32) -> Result<()> {
    let found = statvfs(&project()).context("cannot ask how much of the disk is free")?;
    let free = found.blocks_available() * found.fragment_size();
    enough(free as f64 / f64::from(1 << 30), needed)
}

fn enough(free: f64, needed: u32) -> Result<()> {
    if free < f64::from(needed) {
        bail!(
            "{free:.1} GiB of the disk are free, and {needed} are needed: free some, for example by `cargo clean` in \
             other checkouts"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_room_is_told_in_numbers_with_a_remedy() {
        assert!(enough(12.0, 12).is_ok());
        let error = enough(6.04, 12).unwrap_err().to_string();
        for words in ["6.0 GiB", "12 are needed", "cargo clean"] {
            assert!(error.contains(words), "{error}");
        }
    }
}
