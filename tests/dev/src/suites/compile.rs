//! Compiling the test programs: cargo prints, for each, a line of JSON with its file, and one for each error
//! and each lint of the workspace, since its compiler is clippy's.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::Suite;
use crate::process::cargo_in_background;
use crate::progress::Step;

/// Arguments for all members, as for the [binaries](crate::binaries::build): each dependency then has the
/// same features for both, and is compiled once.
const COMPILE: [&str; 5] = [
    "test",
    // Other tests print meanwhile.
    "--quiet",
    "--workspace",
    "--no-run",
    "--message-format=json",
];

#[derive(Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    executable: Option<PathBuf>,
    profile: Option<Profile>,
    message: Option<Diagnostic>,
}

#[derive(Deserialize)]
struct Diagnostic {
    level: String,
    /// The text for a terminal.
    rendered: String,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// A line of cargo's report.
enum Report {
    Finished(Suite),
    /// An error that ends the compilation.
    Error(String),
    Lint(String),
}

/// Compiles the test programs of the workspace, or those that `more` arguments of cargo's choose, and hands each on,
/// without tests, as soon as it is finished; returns clippy's findings. `timings` has cargo write a report of its time.
pub fn compile(
    timings: bool,
    step: &Step,
    more: &[&str],
    mut finished: impl FnMut(Suite),
) -> Result<BTreeSet<String>> {
    let timings = timings.then_some("--timings");
    let arguments = [&COMPILE, timings.as_slice(), more].concat();
    compile_by(&mut cargo_in_background(&arguments), |suite| {
        step.say(&suite.name);
        finished(suite);
    })
}

/// Compiles what the command of cargo's names, with messages in JSON.
pub fn compile_by(
    cargo: &mut Command,
    mut finished: impl FnMut(Suite),
) -> Result<BTreeSet<String>> {
    let mut running = cargo
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start cargo")?;
    let messages = running.stdout.take().context("standard output is piped")?;
    // A file that is compiled twice, as a library and with its tests, has each of its lints twice.
    let mut lints = BTreeSet::new();
    for line in BufReader::new(messages).lines() {
        match read(&line.context("cannot read what cargo reports")?)? {
            Some(Report::Finished(suite)) => finished(suite),
            Some(Report::Error(error)) => eprintln!("{error}"),
            Some(Report::Lint(lint)) => drop(lints.insert(lint)),
            None => {}
        }
    }
    let status = running.wait().context("cannot wait for cargo")?;
    ensure!(status.success(), "the tests do not compile, {status}");
    Ok(lints)
}

fn read(line: &str) -> Result<Option<Report>> {
    if !line.starts_with('{') {
        return Ok(None);
    }
    let message: Message =
        serde_json::from_str(line).with_context(|| format!("cargo printed {line}"))?;
    Ok(match message.message {
        Some(found) if found.level.starts_with("error") => Some(Report::Error(found.rendered)),
        Some(found) if found.level == "warning" => Some(Report::Lint(found.rendered)),
        Some(_) => None,
        None => suite(message).map(Report::Finished),
    })
}

/// Returns the test program that a message reports, if it reports one.
fn suite(message: Message) -> Option<Suite> {
    let is_test = message.reason == "compiler-artifact" && message.profile?.test;
    let folder = message.manifest_path?.parent()?.to_owned();
    let (program, target) = (message.executable?, message.target?);
    let package = folder.file_name()?.to_string_lossy().into_owned();
    let unit = target
        .kind
        .iter()
        .any(|kind| kind == "lib" || kind == "bin");
    let name = match (unit, target.name.as_str()) {
        (true, name) if target.kind[0] == "lib" => format!("{package} unit ({name})"),
        (true, name) => format!("{package} unit ({name}, binary)"),
        (false, name) => format!("{package} {name}"),
    };
    is_test.then_some(Suite {
        name,
        program,
        tests: Vec::new(),
        folder,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_program_is_named_by_its_folder_and_target() {
        let line = |kind: &str, name: &str, test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"p","manifest_path":"/w/gate/Cargo.toml",
                "target":{{"kind":["{kind}"],"crate_types":["bin"],"name":"{name}"}},
                "profile":{{"test":{test}}},"executable":"/w/target/{name}","fresh":true}}"#
            )
            .replace('\n', "")
        };
        let messages = [
            line("test", "it", true),
            line("lib", "water_gate", true),
            line("bin", "water-gate", false),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let suites = messages
            .iter()
            .filter_map(|line| match read(line).unwrap() {
                Some(Report::Finished(suite)) => Some(suite),
                _ => None,
            });
        let suites: Vec<_> = suites.collect();
        let named: Vec<_> = suites.iter().map(|suite| suite.name.as_str()).collect();
        assert_eq!(named, ["gate it", "gate unit (water_gate)"]);
        assert_eq!(suites[0].folder, PathBuf::from("/w/gate"));
    }

    #[test]
    fn a_lint_and_an_error_are_told_apart() {
        let line = |level: &str| {
            format!(
                r#"{{"reason":"compiler-message","message":{{"level":"{level}","rendered":"text"}}}}"#
            )
        };
        let lint = read(&line("warning")).unwrap();
        assert!(matches!(lint, Some(Report::Lint(text)) if text == "text"));
        let error = read(&line("error: internal compiler error")).unwrap();
        assert!(matches!(error, Some(Report::Error(text)) if text == "text"));
        assert!(read(&line("note")).unwrap().is_none());
    }
}
