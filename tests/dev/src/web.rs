//! `cargo dev web`: the portal's pages, checked and built where their sources have changed. The
//! portal's binary holds the result, `services/portal/web/dist`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::node_js::NodeJs;
use crate::process::run_reporting;
use crate::progress::{Progress, Step};
use crate::project::project;

/// What is made of the sources.
const NO_SOURCES: [&str; 2] = ["node_modules", "dist"];

/// What decides which packages npm installs.
const PACKAGES: [&str; 2] = ["package.json", "package-lock.json"];

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
    for script in ["check", "build"] {
        let mut npm = node_js.npm(&folder(), &["run", script]);
        run_reporting(&mut npm, &mut |line| step.say(line))?;
    }
    built.set(&sources)
}

/// Installs the packages with which pages are built and tested, if they have changed since the last time.
pub fn install_packages(step: &Step) -> Result<NodeJs> {
    let node_js = NodeJs::find_or_fetch(step)?;
    let pins = hash(&PACKAGES.map(|name| folder().join(name)))?;
    let installed = Mark::new("packages");
    if !(installed.is(&pins) && folder().join("node_modules").exists()) {
        let mut npm = node_js.npm(&folder(), &["ci", "--ignore-scripts"]);
        run_reporting(&mut npm, &mut |line| step.say(line))?;
        installed.set(&pins)?;
    }
    Ok(node_js)
}

/// Where the pages are.
pub fn folder() -> PathBuf {
    project().join("services/portal/web")
}

/// A file that says of which inputs something was made the last time.
struct Mark(PathBuf);

impl Mark {
    fn new(name: &str) -> Self {
        Self(project().join("target/web").join(name))
    }

    fn is(&self, hash: &str) -> bool {
        fs::read_to_string(&self.0).is_ok_and(|found| found == hash)
    }

    fn set(&self, hash: &str) -> Result<()> {
        let folder = self.0.parent().context("the mark has a folder")?;
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&self.0, hash))
            .with_context(|| format!("cannot write {}", self.0.display()))
    }
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

fn hash(files: &[PathBuf]) -> Result<String> {
    let mut hash = Sha256::new();
    for file in files {
        hash.update(file.as_os_str().as_encoded_bytes());
        hash.update(fs::read(file).with_context(|| format!("cannot read {}", file.display()))?);
    }
    Ok(hex::encode(hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_of_the_sources_is_none_of_them() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["src/map.tsx", "dist/index.html", "node_modules/a/b.js"] {
            let file = folder.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        let found = sources(folder.path()).unwrap();
        assert_eq!(found, [folder.path().join("src/map.tsx")]);
    }
}
