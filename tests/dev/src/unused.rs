//! Dependencies that nothing uses and files that no module names, found by cargo-shear.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use water_harness::programs::cache;

use crate::process::{cargo_command, run_reporting};
use crate::progress::Step;
use crate::project::project;

const VERSION: &str = "1.13.1";

/// Whether the tool is in the cache.
pub fn is_installed() -> bool {
    program().is_ok_and(|program| program.exists())
}

/// Installs the tool into the cache.
pub fn install(step: &Step) -> Result<()> {
    let root = folder()?.display().to_string();
    let variables = [
        // Neither optimised nor with what a debugger needs: it runs for two seconds.
        ("CARGO_PROFILE_DEV_DEBUG", "0".to_owned()),
        // The registry may be away for a moment.
        ("CARGO_NET_RETRY", "10".to_owned()),
    ];
    let install = [
        "install",
        "--debug",
        "--locked",
        "--version",
        VERSION,
        "--root",
        &root,
        "cargo-shear",
    ];
    let mut cargo = cargo_command(&install, &variables);
    run_reporting(&mut cargo, &mut |line| step.say(line.trim_start()))
}

/// Shows what is unused, which is an error.
pub fn check() -> Result<()> {
    let program = program()?;
    // Of files that no module names it only warns.
    let status = Command::new(&program)
        .arg("--deny-warnings")
        .current_dir(project())
        .status()
        .with_context(|| format!("cannot start {}", program.display()))?;
    ensure!(status.success(), "cargo-shear ended with {status}");
    Ok(())
}

fn program() -> Result<PathBuf> {
    Ok(folder()?.join("bin/cargo-shear"))
}

fn folder() -> Result<PathBuf> {
    Ok(cache()?.join(format!("cargo-shear-{VERSION}")))
}
