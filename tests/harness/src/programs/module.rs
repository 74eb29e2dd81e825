//! The Go modules that pin the programs, and the packages that are left out of them.
//!
//! Traefik links the clients of every cloud, store and orchestrator that can configure it, dex those of
//! every identity provider that it can work with: two thirds of their packages, for which there is no build
//! tag. Each is built from a copy in which a few files of ours replace theirs
//! (`tests/dev/cluster/_traefik`, `identity/_dex`): what they cut answers with an error.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

/// Most attempts at a download.
const ATTEMPTS: u32 = 3;
/// Pause between two of them: a proxy of modules that is away comes back within seconds.
const PAUSE: Duration = Duration::from_secs(5);

/// File of ours that alone is kept of a package.
const WHOLE_PACKAGE: &str = "cut.go";

/// A Go module of this repository: the programs that are built of it share one list of dependencies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Module {
    /// Kubernetes and its companions.
    Cluster,
    /// The identity provider.
    Identity,
}

impl Module {
    fn source(self) -> PathBuf {
        let cluster = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dev/cluster");
        match self {
            Self::Cluster => cluster,
            Self::Identity => cluster.join("identity"),
        }
    }

    /// Returns the dependency of which a part is left out, and the folder with our files.
    fn cut(self) -> (&'static str, &'static str) {
        match self {
            Self::Cluster => ("github.com/traefik/traefik/v3", "_traefik"),
            Self::Identity => ("github.com/dexidp/dex", "_dex"),
        }
    }

    /// Returns a command, of its program and arguments, in the module: `go`, or what starts it.
    pub fn command(self, words: &[&str]) -> Command {
        let mut command = Command::new(words[0]);
        // Without cgo the programs are static: they run in a pod that has no file system.
        command
            .args(&words[1..])
            .current_dir(self.source())
            .env("CGO_ENABLED", "0")
            // A compiler lives for seconds: collecting its garbage eight times more rarely saves a quarter
            // of all processor time, and no process grows beyond the limit for that.
            .env("GOGC", "800")
            .env("GOMEMLIMIT", "2GiB")
            .stdin(Stdio::null());
        command
    }

    /// Returns the standard output of `go` in the module, which may download modules for it.
    pub fn ask(self, arguments: &[&str]) -> Result<String> {
        let mut output = self.run(arguments)?;
        for _ in 1..ATTEMPTS {
            if output.status.success() {
                break;
            }
            thread::sleep(PAUSE);
            output = self.run(arguments)?;
        }
        if !output.status.success() {
            bail!(
                "`go {}` ended with {}:\n{}",
                arguments[0],
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn run(self, arguments: &[&str]) -> Result<Output> {
        let mut go = self.command(&[&["go"], arguments].concat());
        go.output().context(
            "cannot start `go`: install Go 1.26 or later (https://go.dev/dl) and have `go` on the PATH",
        )
    }

    /// Makes in `folder` the `go.mod` to build with, and the copy that it names instead of the dependency
    /// that is cut.
    pub fn prepare(self, folder: &Path) -> Result<PathBuf> {
        let (dependency, ours) = self.cut();
        let downloaded = self.ask(&["mod", "download", "-json", dependency])?;
        let downloaded: serde_json::Value = serde_json::from_str(&downloaded)
            .context("cannot understand what `go mod download` printed")?;
        let theirs = downloaded["Dir"].as_str();
        let theirs = Path::new(theirs.with_context(|| format!("{dependency} has no folder"))?);
        let copy = folder.join(ours);
        make_copy(theirs, &self.source().join(ours), &copy)
            .with_context(|| format!("cannot copy {} to {}", theirs.display(), copy.display()))?;
        let pins = self.source().join("go.mod");
        let file = folder.join("go.mod");
        let replaced = format!(
            "{}\nreplace {dependency} => {}\n",
            fs::read_to_string(&pins)?,
            copy.display()
        );
        fs::write(&file, replaced)
            .and_then(|()| fs::copy(pins.with_extension("sum"), file.with_extension("sum")))
            .with_context(|| format!("cannot write {}", file.display()))?;
        Ok(file)
    }

    /// Returns sixteen hex digits over the module's `go.mod`, `go.sum` and sources.
    pub fn hash(self) -> Result<String> {
        hash_sources(&self.source())
    }
}

/// Makes `copy` of `theirs`, with the files of `ours`.
fn make_copy(theirs: &Path, ours: &Path, copy: &Path) -> std::io::Result<()> {
    if copy.exists() {
        fs::remove_dir_all(copy)?;
    }
    copy_folder(theirs, copy, Some(ours))?;
    copy_folder(ours, copy, None)
}

/// Copies the files of `from` to `to`, but for those of packages that `ours` has as a whole.
fn copy_folder(from: &Path, to: &Path, ours: Option<&Path>) -> std::io::Result<()> {
    let is_ours = ours.is_some_and(|ours| ours.join(WHOLE_PACKAGE).exists());
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() {
            let ours = ours.map(|ours| ours.join(name));
            copy_folder(&path, &to.join(name), ours.as_deref())?;
        } else if !is_ours {
            // Without the permissions: Go's module cache can only be read.
            fs::write(to.join(name), fs::read(&path)?)?;
        }
    }
    Ok(())
}

fn hash_sources(module: &Path) -> Result<String> {
    let mut files = Vec::new();
    collect_sources(module, &mut files)
        .with_context(|| format!("cannot read {}", module.display()))?;
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        hash.update(
            file.strip_prefix(module)
                .unwrap_or(&file)
                .to_string_lossy()
                .as_bytes(),
        );
        hash.update(fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?);
    }
    Ok(hex::encode(&hash.finalize()[..8]))
}

fn collect_sources(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_source = ["go", "mod", "sum"]
            .iter()
            .any(|extension| path.extension().is_some_and(|is| is == *extension));
        if path.is_dir() {
            // A folder with separate pins is another module.
            if !path.join("go.mod").exists() {
                collect_sources(&path, files)?;
            }
        } else if is_source {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        for (file, text) in files {
            let file = folder.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
    }

    #[test]
    fn the_programs_place_in_the_cache_changes_with_their_pins_only() {
        let module = tempfile::tempdir().unwrap();
        write(module.path(), &[("go.sum", "one")]);
        let first = hash_sources(module.path()).unwrap();
        let others = [("notes.txt", ""), ("other/go.mod", ""), ("other/a.go", "")];
        write(module.path(), &others);
        assert_eq!(hash_sources(module.path()).unwrap(), first);
        write(module.path(), &[("go.sum", "two")]);
        assert_ne!(hash_sources(module.path()).unwrap(), first);
    }

    #[test]
    fn a_copy_has_our_packages_and_files_in_place_of_theirs() {
        let folder = tempfile::tempdir().unwrap();
        let [theirs, ours, copy] = ["theirs", "ours", "copy"].map(|name| folder.path().join(name));
        let files = [
            "go.mod",
            "ecs/ecs.go",
            "ecs/deep/a.go",
            "tls/a.go",
            "tls/b.go",
        ];
        write(&theirs, &files.map(|file| (file, "theirs")));
        write(&ours, &[("ecs/cut.go", "ours"), ("tls/b.go", "ours")]);
        // Twice: an interrupted copy is made again.
        for _ in 0..2 {
            make_copy(&theirs, &ours, &copy).unwrap();
            let read = |file: &str| fs::read_to_string(copy.join(file)).ok();
            let texts = [
                "go.mod",
                "ecs/ecs.go",
                "ecs/cut.go",
                "ecs/deep/a.go",
                "tls/a.go",
                "tls/b.go",
            ];
            let [theirs, ours] = ["theirs", "ours"].map(|text| Some(text.to_owned()));
            assert_eq!(
                texts.map(read),
                [&theirs, &None, &ours, &theirs, &theirs, &ours].map(Clone::clone)
            );
        }
    }
}
