//! Test programs as cargo compiles them, to be started by their paths: `cargo test` would wait for whatever else
//! cargo compiles meanwhile, and does not say which of its programs ended without a result.

use std::io::{self, BufRead, BufReader};
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

/// One test program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TestProgram {
    /// The folder of the package that it tests, such as `gate` of `water-gate`.
    package: String,
    /// The kind of target, such as `lib` or `test`.
    kind: String,
    /// The target's name, such as `it`.
    target: String,
    path: PathBuf,
    /// Where cargo starts it: the package's folder.
    folder: PathBuf,
}

/// What cargo says of something that it has compiled (<https://doc.rust-lang.org/cargo/reference/external-tools.html>).
#[derive(Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

impl TestProgram {
    /// The programs that `cargo` compiles, in an order that is always the same. The arguments of `cargo` say which,
    /// `--no-run` and `--message-format=json-render-diagnostics` among them; `report` is given the lines that it shows.
    pub fn compile(cargo: &mut Command, report: &mut dyn FnMut(&str)) -> Result<Vec<Self>> {
        let mut child = cargo
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start cargo")?;
        let messages = child.stdout.take().context("standard output is piped")?;
        let shown = child.stderr.take().context("standard error is piped")?;
        // Both are read as they come, so that neither fills its pipe.
        let messages = thread::spawn(move || io::read_to_string(messages));
        let mut last = Vec::new();
        for line in BufReader::new(shown).lines() {
            let line = line.context("cannot read what cargo shows")?;
            report(&line);
            last.push(line);
        }
        let status = child.wait().context("cannot wait for cargo")?;
        let messages = messages.join().unwrap_or_else(|panic| resume_unwind(panic));
        if !status.success() {
            bail!("the tests do not compile:\n{}", last.join("\n"));
        }
        Self::among(&messages.context("cannot read what cargo has compiled")?)
    }

    /// The test programs among cargo's messages.
    fn among(messages: &str) -> Result<Vec<Self>> {
        let mut programs = Vec::new();
        for line in messages.lines() {
            // Messages of other kinds have other fields.
            let Ok(artifact) = serde_json::from_str::<Artifact>(line) else {
                continue;
            };
            if let (true, Some(path)) = (artifact.profile.test, artifact.executable) {
                programs.push(Self::of(artifact.manifest_path, artifact.target, path)?);
            }
        }
        ensure!(!programs.is_empty(), "cargo has compiled no test program");
        programs.sort();
        Ok(programs)
    }

    fn of(manifest: PathBuf, target: Target, path: PathBuf) -> Result<Self> {
        let folder = manifest.parent().context("a package is in a folder")?;
        let package = folder.file_name().unwrap_or_default().display().to_string();
        Ok(Self {
            package,
            kind: target.kind.join(" "),
            target: target.name,
            path,
            folder: folder.to_owned(),
        })
    }

    /// What it is called in a summary: package and target.
    pub fn name(&self) -> String {
        format!("{} {}", self.package, self.target)
    }

    /// The program, to be started as cargo would.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn only_test_programs_are_taken_from_cargos_messages_and_in_one_order() {
        let artifact = |kind: &str, name: &str, test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/water/services/gate/Cargo.toml",
                "target":{{"kind":["{kind}"],"name":"{name}"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
            .replace('\n', "")
        };
        let messages = [
            artifact("test", "it", true, "\"/target/it\""),
            artifact("bin", "water-gate", false, "\"/target/water-gate\""),
            artifact("lib", "water_gate", false, "null"),
            artifact("lib", "water_gate", true, "\"/target/water_gate\""),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let programs = TestProgram::among(&messages.join("\n")).unwrap();
        let names: Vec<_> = programs.iter().map(TestProgram::name).collect();
        assert_eq!(names, ["gate water_gate", "gate it"]);
        assert_eq!(programs[1].path, Path::new("/target/it"));
        assert_eq!(programs[1].folder, Path::new("/water/services/gate"));
        assert!(TestProgram::among(&messages[1]).is_err());
    }
}
