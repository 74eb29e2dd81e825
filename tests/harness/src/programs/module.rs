//! The Go modules that pin the programs, and what of them is left out when they are built.
//!
//! Traefik can obtain certificates: its library for that, lego, links the clients of all DNS
//! providers there are, a third of Traefik's packages. No build tag leaves them out, so Traefik is
//! built with a copy of lego whose list of providers is empty.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

const LEGO: &str = "github.com/go-acme/lego/v4";

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

    /// `go` in the module.
    pub fn go(self, arguments: &[&str]) -> Command {
        let mut go = Command::new("go");
        // Without cgo the programs are static: they run in a pod that has no file system of its own.
        go.args(arguments)
            .current_dir(self.source())
            .env("CGO_ENABLED", "0")
            .stdin(Stdio::null());
        go
    }

    /// What `go` prints in the module.
    pub fn ask(self, arguments: &[&str]) -> Result<String> {
        let output = self.go(arguments).output().context(
            "cannot start `go`: install Go 1.26 or later (https://go.dev/dl) and have `go` on the PATH",
        )?;
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

    /// The `go.mod` to build with: of the module of Traefik one in `folder`, which puts a copy of
    /// lego in lego's place.
    pub fn prepare(self, folder: &Path) -> Result<PathBuf> {
        let pins = self.source().join("go.mod");
        match self {
            Self::Cluster => self.replace_lego(&pins, folder),
            Self::Identity => Ok(pins),
        }
    }

    fn replace_lego(self, pins: &Path, folder: &Path) -> Result<PathBuf> {
        let downloaded = self.ask(&["mod", "download", "-json", LEGO])?;
        let downloaded: serde_json::Value = serde_json::from_str(&downloaded)
            .context("cannot understand what `go mod download` printed")?;
        let lego = Path::new(downloaded["Dir"].as_str().context("lego has no folder")?);
        let copy = folder.join("lego");
        copy_without_providers(&self.source().join("lego"), lego, &copy)
            .with_context(|| format!("cannot copy {} to {}", lego.display(), copy.display()))?;
        let file = folder.join("go.mod");
        fs::write(&file, replaced(&fs::read_to_string(pins)?, &copy))
            .and_then(|()| fs::copy(pins.with_extension("sum"), file.with_extension("sum")))
            .with_context(|| format!("cannot write {}", file.display()))?;
        Ok(file)
    }

    /// Sixteen hex digits over the module's `go.mod`, `go.sum` and sources.
    pub fn hash(self) -> Result<String> {
        hash_of(&self.source())
    }
}

fn replaced(pins: &str, copy: &Path) -> String {
    format!("{pins}\nreplace {LEGO} => {}\n", copy.display())
}

fn copy_without_providers(ours: &Path, lego: &Path, copy: &Path) -> std::io::Result<()> {
    if copy.exists() {
        fs::remove_dir_all(copy)?;
    }
    let providers = Path::new("providers/dns");
    copy_folder(lego, copy, &lego.join(providers))?;
    fs::create_dir_all(copy.join(providers))?;
    let list = "providers.go";
    fs::copy(ours.join(list), copy.join(providers).join(list)).map(drop)
}

/// Copies what is in `from`, but for what is in `left_out`.
fn copy_folder(from: &Path, to: &Path, left_out: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let copy = to.join(path.file_name().unwrap_or_default());
        if path == left_out {
            continue;
        } else if path.is_dir() {
            copy_folder(&path, &copy, left_out)?;
        } else {
            // Without the permissions: Go's module cache can only be read.
            fs::write(copy, fs::read(&path)?)?;
        }
    }
    Ok(())
}

fn hash_of(module: &Path) -> Result<String> {
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
            // What has pins of its own is another module.
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

    #[test]
    fn the_programs_place_in_the_cache_changes_with_their_pins_only() {
        let module = tempfile::tempdir().unwrap();
        fs::write(module.path().join("go.sum"), "one").unwrap();
        let first = hash_of(module.path()).unwrap();
        fs::write(module.path().join("notes.txt"), "not a source").unwrap();
        let other_module = module.path().join("other");
        fs::create_dir(&other_module).unwrap();
        fs::write(other_module.join("go.mod"), "").unwrap();
        fs::write(other_module.join("main.go"), "").unwrap();
        assert_eq!(hash_of(module.path()).unwrap(), first);
        fs::write(module.path().join("go.sum"), "two").unwrap();
        assert_ne!(hash_of(module.path()).unwrap(), first);
    }

    #[test]
    fn a_copy_of_lego_has_our_list_of_providers_and_no_provider() {
        let folder = tempfile::tempdir().unwrap();
        let (lego, copy) = (folder.path().join("lego"), folder.path().join("copy"));
        let ours = Module::Cluster.source().join("lego");
        for file in [
            "go.mod",
            "lego/client.go",
            "providers/http/memory.go",
            "providers/dns/gandi/gandi.go",
        ] {
            let file = lego.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        // Twice: an interrupted copy is made anew.
        for _ in 0..2 {
            copy_without_providers(&ours, &lego, &copy).unwrap();
            assert!(copy.join("go.mod").exists() && copy.join("lego/client.go").exists());
            assert!(copy.join("providers/http/memory.go").exists());
            let providers: Vec<_> = fs::read_dir(copy.join("providers/dns")).unwrap().collect();
            assert_eq!(providers.len(), 1);
            assert_eq!(providers[0].as_ref().unwrap().file_name(), "providers.go");
        }
    }
}
