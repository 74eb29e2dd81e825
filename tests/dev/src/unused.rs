//! Dependencies that nothing uses and files that no module names, found by cargo-shear.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use water_harness::programs::cache;

use crate::process::cargo;
use crate::project::project;

const VERSION: &str = "1.13.1";

/// Shows what is unused, which is an error. The tool is installed into the cache once.
pub fn check() -> Result<()> {
    let folder = cache()?.join(format!("cargo-shear-{VERSION}"));
    let program = folder.join("bin/cargo-shear");
    if !program.exists() {
        let root = folder.display().to_string();
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
        ];
        cargo(&[&install[..], &["cargo-shear"]].concat(), &variables)?;
    }
    // Of files that no module names it only warns.
    let status = Command::new(&program)
        .arg("--deny-warnings")
        .current_dir(project())
        .status()
        .with_context(|| format!("cannot start {}", program.display()))?;
    ensure!(status.success(), "cargo-shear ended with {status}");
    Ok(())
}
