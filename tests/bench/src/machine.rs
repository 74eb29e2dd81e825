//! Where and with what a result was measured.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

use anyhow::{Context, Result, ensure};
use chrono::{SecondsFormat, Utc};
use serde::Serialize;

/// The machine.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Cores that all programs share: what is measured, what is behind it, and the load.
    pub cores: usize,
    /// The kernel's release.
    pub kernel: String,
}

impl Machine {
    /// This one.
    pub fn this() -> Result<Self> {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
        Ok(Self {
            cores: available_parallelism()?.get(),
            kernel: kernel.trim().to_owned(),
        })
    }
}

/// The day and time, UTC.
#[expect(
    clippy::disallowed_methods,
    reason = "says when a result was measured, no decision depends on it"
)]
pub fn date() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The versions of what is compared.
pub fn versions() -> Result<BTreeMap<&'static str, String>> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut git = Command::new("git");
    git.args(["describe", "--always", "--dirty"])
        .current_dir(sources);
    let nginx = first_line(Command::new("nginx").arg("-v"))?;
    let redis = first_line(Command::new("redis-server").arg("--version"))?;
    // An unpacked archive has no commits.
    let water = first_line(&mut git).unwrap_or_else(|_| env!("CARGO_PKG_VERSION").to_owned());
    Ok(BTreeMap::from([
        ("nginx", word_after("nginx/", &nginx)),
        ("redis", word_after("v=", &redis)),
        ("water", water),
    ]))
}

/// The versions of these libraries that this program was built with; of several the latest.
pub fn locked(libraries: &[&'static str]) -> BTreeMap<&'static str, String> {
    let packages = || include_str!("../../../Cargo.lock").split("[[package]]");
    let version = |library: &&'static str| {
        let name = format!("name = \"{library}\"");
        let of_it = packages().filter(|package| package.lines().any(|line| line == name));
        let version = |package: &'static str| package.lines().find_map(quoted_version);
        // The file is sorted by name and version.
        Some((*library, of_it.filter_map(version).last()?.to_owned()))
    };
    libraries.iter().filter_map(version).collect()
}

fn quoted_version(line: &str) -> Option<&str> {
    line.strip_prefix("version = \"")?.strip_suffix('"')
}

/// The rest of the word that `mark` begins; all of the text without one.
fn word_after(mark: &str, text: &str) -> String {
    let rest = text.split_once(mark).map_or(text, |(_, rest)| rest);
    let word = rest.split_ascii_whitespace().next();
    word.unwrap_or(text).to_owned()
}

fn first_line(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("{name} cannot be started: is it installed?"))?;
    ensure!(
        output.status.success(),
        "{name} ended with {}",
        output.status
    );
    // nginx says its version on standard error.
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().next();
    Ok(line.context("it says nothing")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_told_without_what_is_around_it() {
        assert_eq!(
            word_after("nginx/", "nginx version: nginx/1.22.1"),
            "1.22.1"
        );
        assert_eq!(
            word_after("v=", "Redis server v=7.0.15 sha=00000000:0"),
            "7.0.15"
        );
        assert_eq!(word_after("v=", "8.0"), "8.0");
    }

    #[test]
    fn a_librarys_version_is_read_from_the_lock_file() {
        let locked = locked(&["tokio", "no such library"]);
        assert_eq!(locked.keys().collect::<Vec<_>>(), [&"tokio"]);
        assert!(locked["tokio"].starts_with("1."), "{locked:?}");
    }
}
