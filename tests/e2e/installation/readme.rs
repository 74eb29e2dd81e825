//! The commands of README.md, as its reader pastes them into a shell.

use std::fs;

use anyhow::{Context, Result};
use water_e2e::project;

const SECTION: &str = "## Install it on your cluster";

/// Returns the shell block of the section on installing that has `command` in it.
pub fn block_with(command: &str) -> Result<String> {
    let readme = fs::read_to_string(project().join("README.md")).context("read README.md")?;
    let (_, section) = readme
        .split_once(SECTION)
        .with_context(|| format!("README.md has no section {SECTION:?}"))?;
    let section = section.split("\n## ").next().unwrap_or_default();
    section
        .split("```sh\n")
        .skip(1)
        .filter_map(|block| block.split("```").next())
        .find(|block| block.contains(command))
        .map(str::to_owned)
        .with_context(|| format!("README.md has no block with `{command}` in {SECTION:?}"))
}

/// Returns `script` with each placeholder replaced. One that does not occur is an error: the text has changed,
/// and the test's own value would be missing.
pub fn filled_in(script: &str, values: &[(&str, &str)]) -> Result<String> {
    values
        .iter()
        .try_fold(script.to_owned(), |script, (placeholder, value)| {
            let filled = script.replace(placeholder, value);
            (filled != script).then_some(filled).with_context(|| {
                format!("there is no {placeholder:?} in README.md's commands:\n{script}")
            })
        })
}
