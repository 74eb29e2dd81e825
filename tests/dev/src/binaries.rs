//! The product's static binaries, and the version that their sources give their images.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::process::{cargo_command, run_reporting};
use crate::progress::Step;
use crate::project::project;

/// The packages of which the product consists: a binary and an image each.
pub const PACKAGES: [&str; 6] = [
    "water-operator",
    "water-gate",
    "water-departements",
    "water-history",
    "water-ingest",
    "water-portal",
];

/// Files that the images are made of.
const SOURCES: [&str; 5] = ["Cargo.lock", "Cargo.toml", "crds", "operator", "services"];

/// Returns `0.1.0-dev.<12 hex digits over the sources>`: the same sources are the same version, and roll
/// nothing.
pub fn version() -> Result<String> {
    let mut files = Vec::new();
    for source in SOURCES {
        collect(&project().join(source), &mut files)?;
    }
    files.sort();
    let mut hash = Sha256::new();
    for file in &files {
        hash.update(
            file.strip_prefix(project())
                .unwrap_or(file)
                .as_os_str()
                .as_encoded_bytes(),
        );
        hash.update(fs::read(file).with_context(|| format!("cannot read {}", file.display()))?);
    }
    Ok(format!(
        "{}-dev.{}",
        env!("CARGO_PKG_VERSION"),
        hex::encode(&hash.finalize()[..6])
    ))
}

/// Returns the version to roll to from `version`, made of the same sources; and from that one back.
pub fn after(version: &str) -> String {
    version
        .strip_suffix("-next")
        .map_or_else(|| format!("{version}-next"), str::to_owned)
}

/// Returns the folder in which [`build`] leaves the binaries, from the checkout's root.
pub fn folder() -> PathBuf {
    Path::new("target").join(target()).join("debug")
}

/// Returns this machine's kind. glibc can be linked in statically: an image then needs nothing but the
/// binary.
fn target() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// Returns a command of one of the binaries, which runs on this machine as well.
pub fn binary(package: &str) -> Command {
    Command::new(project().join(folder()).join(package))
}

/// Builds all binaries. Their version is given to their images, so that it does not matter here. With all members
/// of the workspace selected, dependencies have the features that tests need, and are compiled once for both.
pub fn build(step: &Step) -> Result<()> {
    let mut cargo = cargo_command(&["build", "--workspace"], &[]);
    cargo
        .args(PACKAGES.iter().flat_map(|package| ["--bin", package]))
        .env_remove("CARGO_TARGET_DIR");
    run_reporting(&mut cargo, &mut |line| step.say(line.trim_start()))
}

/// Collects the files below `path`, without tests and npm's packages: they are in no image.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if path.ends_with("tests") || path.ends_with("node_modules") {
        return Ok(());
    }
    if !path.is_dir() {
        // Markdown changes no image.
        if path.extension().is_none_or(|extension| extension != "md") {
            files.push(path.to_owned());
        }
        return Ok(());
    }
    for entry in fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))? {
        collect(&entry?.path(), files)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_packages_are_no_part_of_the_version() {
        let folder = tempfile::tempdir().unwrap();
        for part in ["tests", "node_modules"] {
            fs::create_dir_all(folder.path().join("crate").join(part)).unwrap();
            fs::write(folder.path().join("crate").join(part).join("it.rs"), "").unwrap();
        }
        fs::write(folder.path().join("crate/lib.rs"), "").unwrap();
        let mut files = Vec::new();
        collect(folder.path(), &mut files).unwrap();
        assert_eq!(files, [folder.path().join("crate/lib.rs")]);
    }
}
