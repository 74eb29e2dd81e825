//! The browser tests: Playwright clicks through the portal of a cluster in Debian's Chromium.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::cluster::Cluster;
use crate::process::under;
use crate::progress::Progress;
use crate::searched::run_searched;
use crate::{confidential, environment, web};

/// Runs all of them; what they print, and what they leave behind, is searched for API keys.
pub fn run(cluster: &Cluster) -> Result<()> {
    let node_js = Progress::new().step("Packages of the browser tests", web::install_packages)?;
    let folder = cluster.file("browser");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot remove what earlier browser tests left")?;
    }
    fs::create_dir(&folder).context("cannot make the folder of the browser tests")?;
    // Chromium, as root, raises its own priority above all that it is tested with, unless it must not.
    let weak = ["setpriv", "--bounding-set=-sys_nice"];
    let mut npm = under(&weak, &node_js.npm(&web::folder(), &["test"]));
    npm.envs(environment::variables(cluster)?);
    let status = run_searched(&mut npm, |_| {}).context("the browser tests' output")?;
    if !status.success() {
        bail!("the browser tests ended with {status}");
    }
    confidential::check(cluster)
}
