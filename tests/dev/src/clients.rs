//! `cargo dev clients`: what the whole-system tests generate clients of the API with, and run them: packages
//! of PyPI in `tests/clients/python/.venv`, packages of npm in `tests/clients/typescript/node_modules`. Their
//! lock files pin each by its hash.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::marks::{Mark, hash};
use crate::node_js::{self, NodeJs};
use crate::packages;
use crate::process::{run as output_of, run_reporting};
use crate::progress::{Progress, Step};
use crate::project::project;

/// Test of a Python: it can make environments, and import what is generated, which needs 3.11.
const ABLE: &str = "import ensurepip, venv; from enum import StrEnum";

/// Installs the generators, and reports how long it took.
pub fn run() -> Result<()> {
    Progress::new().step("Generators of API clients", install)?;
    Ok(())
}

/// Installs the generators whose pins have changed since the last time. Returns the Node.js that runs one.
pub fn install(step: &Step) -> Result<NodeJs> {
    let folder = project().join("tests/clients");
    install_for_python(&folder.join("python"), step)?;
    node_js::install_packages(&folder.join("typescript"), "client-packages", step)
}

fn install_for_python(folder: &Path, step: &Step) -> Result<()> {
    let pins = hash(&[folder.join("requirements.txt")])?;
    let (environment, installed) = (folder.join(".venv"), Mark::new("client-environment"));
    if installed.is(&pins) && environment.exists() {
        return Ok(());
    }
    let python = find_or_install(step)?;
    installed.remove()?;
    let mut make = Command::new(python);
    make.args(["-m", "venv", "--clear"]).arg(&environment);
    output_of(&mut make)?;
    let mut pip = Command::new(environment.join("bin/pip"));
    pip.args(["install", "--disable-pip-version-check", "--require-hashes"])
        .args(["--only-binary", ":all:", "-r", "requirements.txt"])
        .current_dir(folder);
    run_reporting(&mut pip, &mut |line| step.say(line))?;
    installed.set(&pins)
}

/// Returns the machine's own Python where that is able, else Debian's.
fn find_or_install(step: &Step) -> Result<PathBuf> {
    let own = PathBuf::from("python3");
    if check(&own).is_ok() {
        return Ok(own);
    }
    packages::install_missing(&[packages::PYTHON], step)?;
    let debian = PathBuf::from("/usr/bin/python3");
    check(&debian).context(
        "Python 3.11 or later with venv is missing: install it, and run the command again",
    )?;
    Ok(debian)
}

fn check(python: &Path) -> Result<()> {
    output_of(Command::new(python).args(["-c", ABLE]))?;
    Ok(())
}
