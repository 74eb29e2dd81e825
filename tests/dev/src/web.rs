//! `cargo dev web`: the portal's pages, checked and built where their sources have changed. The
//! portal's binary holds the result, `services/portal/web/dist`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::marks::{Mark, hash};
use crate::node_js::{self, NodeJs};
use crate::process::run_reporting;
use crate::progress::{Progress, Step};
use crate::project::project;

/// Folders that are made of the sources.
const NO_SOURCES: [&str; 2] = ["node_modules", "dist"];

/// Builds the pages, and says how long it took.
pub fn run() -> Result<()> {
    Progress::new().step("Pages of the portal", build)
}

/// Builds the pages if their sources have changed since the last time.
pub fn build(step: &Step) -> Result<()> {
    let sources = hash(&sources(&folder())?)?;
    let built = Mark::new("pages");
    if built.is(&sources) && folder().join("dist/index.html").exists() {
        return Ok(());
    }
    let node_js = install_packages(step)?;
    built.remove()?;
    for script in ["check", "build"] {
        let mut npm = node_js.npm(&folder(), &["run", script]);
        run_reporting(&mut npm, &mut |line| step.say(line))?;
    }
    built.set(&sources)
}

/// Installs the packages with which pages are built and tested, if they have changed since the last time.
pub fn install_packages(step: &Step) -> Result<NodeJs> {
    node_js::install_packages(&folder(), "packages", step)
}

/// Returns the folder of the pages.
pub fn folder() -> PathBuf {
    project().join("services/portal/web")
}

fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if NO_SOURCES.iter().any(|name| path.ends_with(name)) {
            continue;
        } else if path.is_dir() {
            found.extend(sources(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
