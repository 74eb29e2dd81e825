//! The Go programs of the development cluster: Kubernetes, etcd, CoreDNS, Helm, a registry, an
//! ingress controller and an identity provider.
//!
//! They are built once, from the pinned modules in `tests/dev/cluster`, into a cache outside the
//! tree:
//! `${XDG_CACHE_HOME:-$HOME/.cache}/water-data/programs/<hash of go.mod, go.sum and sources>/`. A
//! changed pin changes the hash, so a cached program is never stale and two checkouts share what
//! they have in common.

mod module;

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use module::Module;

/// Names of the multi-call binary [`Program::Node`]: it chooses by the name that it is started by.
pub const NODE_NAMES: [&str; 10] = [
    "coredns",
    "etcd",
    "fileserver",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
    "netpol",
];

/// Flags without debugging data: nobody debugs the programs, and what the linker leaves out (`-s -w`) is an
/// eighth of the compiler's work, and a quarter of what Go caches of it.
const COMPILER_FLAGS: &str = "-gcflags=all=-dwarf=false";

/// Flags with versions: Kubernetes compares versions between its parts, so they have to know theirs.
const LINKER_FLAGS: &str = concat!(
    "-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=v1.35.4",
    " -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=35",
    " -X k8s.io/client-go/pkg/version.gitVersion=v1.35.4"
);

/// File in a module's folder that is locked while its programs are built.
const LOCK: &str = "lock";

/// Folders in it that only a build needs: the compiler's, and that of programs that are not linked yet.
const TEMPORARY: [&str; 2] = ["work", "unfinished"];

/// A program of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The programs of a Kubernetes node and its control plane, under [`NODE_NAMES`].
    Node,
    /// The Helm client.
    Helm,
    /// An image registry, and the client that writes to it.
    Crane,
    /// A pod's pause container.
    Pause,
    /// The ingress controller.
    Traefik,
    /// The identity provider, whose libraries are of other versions than Kubernetes': a separate module.
    Identity,
}

/// State of a build.
pub struct Progress<'a> {
    /// Packages compiled so far.
    pub compiled: usize,
    /// Packages of the programs; those that Go has in its own cache are never reported as compiled.
    pub packages: usize,
    /// Last word of the compiler: a package's path, or a module that is being downloaded.
    pub message: &'a str,
}

/// Returns a program under one of its names: a link in the folder of the multi-call binary.
pub fn named(node: &Path, name: &str) -> PathBuf {
    node.with_file_name(name)
}

/// Builds all programs that the cache lacks.
pub fn build_missing(report: &mut dyn FnMut(Progress<'_>)) -> Result<()> {
    Module::Cluster.build_missing(&Program::ALL[..5], report)?;
    Module::Identity.build_missing(&Program::ALL[5..], report)
}

impl Program {
    /// The programs.
    pub const ALL: [Self; 6] = [
        Self::Node,
        Self::Helm,
        Self::Crane,
        Self::Pause,
        Self::Traefik,
        Self::Identity,
    ];

    /// Returns the file's name, which is also the last word of its package.
    pub fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Helm => "helm",
            Self::Crane => "crane",
            Self::Pause => "pause",
            Self::Traefik => "traefik",
            Self::Identity => "identity",
        }
    }

    fn module(self) -> Module {
        match self {
            Self::Identity => Module::Identity,
            _ => Module::Cluster,
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Node | Self::Identity => ".",
            Self::Helm => "helm.sh/helm/v4/cmd/helm",
            Self::Crane => "github.com/google/go-containerregistry/cmd/crane",
            Self::Pause => "./pause",
            Self::Traefik => "github.com/traefik/traefik/v3/cmd/traefik",
        }
    }

    /// Returns the program's file in the cache, whether it has been built or not.
    pub fn path(self) -> Result<PathBuf> {
        Ok(self.module().folder()?.join(self.name()))
    }

    /// Returns the program's file, built first if the cache does not have it.
    pub fn find_or_build(self, report: &mut dyn FnMut(Progress<'_>)) -> Result<PathBuf> {
        self.module().build_missing(&[self], report)?;
        self.path()
    }
}

impl Module {
    /// Returns the module's folder in the cache.
    fn folder(self) -> Result<PathBuf> {
        Ok(cache()?.join(self.hash()?))
    }

    /// Builds those programs of the module that its folder lacks, all at once: a program is linked
    /// while packages of another are compiled.
    ///
    /// Concurrent callers build once: the others wait for the first one.
    fn build_missing(
        self,
        programs: &[Program],
        report: &mut dyn FnMut(Progress<'_>),
    ) -> Result<()> {
        let folder = self.folder()?;
        let missing = || -> Vec<Program> {
            let wanted = programs.iter().copied();
            wanted
                .filter(|program| !folder.join(program.name()).exists())
                .collect()
        };
        if missing().is_empty() {
            return Ok(());
        }
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the cache {}", folder.display()))?;
        let lock = File::create(folder.join(LOCK)).context("cannot make the cache's lock")?;
        lock.lock().context("cannot lock the cache of programs")?;
        let missing = missing();
        if missing.is_empty() {
            return Ok(());
        }
        self.build(&folder, &missing, report).with_context(|| {
            let names: Vec<_> = missing.iter().map(|program| program.name()).collect();
            format!("cannot build {}", names.join(", "))
        })
    }

    /// Builds programs. A finished file appears under its name by a rename: an interrupted build leaves no
    /// half program.
    fn build(
        self,
        folder: &Path,
        programs: &[Program],
        report: &mut dyn FnMut(Progress<'_>),
    ) -> Result<()> {
        let mut progress = Progress {
            compiled: 0,
            packages: 0,
            message: "resolving modules",
        };
        report(Progress { ..progress });
        let pins = format!("-modfile={}", self.prepare(folder)?.display());
        let packages: Vec<_> = programs.iter().map(|program| program.package()).collect();
        // It downloads every module of which the build needs a package, and no other: the build itself needs no network.
        let list = ["list", "-mod=readonly", &pins, "-deps"];
        let listed = self.ask(&[&list[..], &packages].concat())?;
        progress.packages = listed.lines().count();
        let [work, unfinished] = TEMPORARY.map(|name| folder.join(name));
        for folder in [&work, &unfinished] {
            empty(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
        }
        // It ends with this process: one that went on would write where the next build does.
        let go = ["setpriv", "--pdeathsig", "KILL", "go"];
        let build = ["build", "-v", "-mod=readonly", &pins, "-trimpath"];
        let mut go = self
            .command(&[&go[..], &build].concat())
            .args([COMPILER_FLAGS, LINKER_FLAGS, "-o"])
            .arg(&unfinished)
            .args(&packages)
            // A build that is killed leaves gigabytes: here, where the next one removes them.
            .env("GOTMPDIR", &work)
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start `go`")?;
        let output = go.stderr.take().context("the compiler's output is piped")?;
        let mut last_lines = VecDeque::new();
        for line in BufReader::new(output).lines() {
            let line = line.context("cannot read what `go build` reports")?;
            progress.compiled += usize::from(!line.starts_with("go: "));
            report(Progress {
                message: &line,
                ..progress
            });
            last_lines.push_back(line);
            if last_lines.len() > 20 {
                last_lines.pop_front();
            }
        }
        let status = go.wait().context("cannot wait for `go build`")?;
        if !status.success() {
            let lines = Vec::from(last_lines).join("\n");
            bail!("`go build` ended with {status}:\n{lines}");
        }
        for program in programs {
            let file = folder.join(program.name());
            if *program == Program::Node {
                link_names(&file)?;
            }
            fs::rename(unfinished.join(program.name()), &file)
                .with_context(|| format!("cannot put {} in its place", file.display()))?;
        }
        remove(&unfinished)
            .and_then(|()| remove(&work))
            .context("cannot remove the folders of unfinished programs")
    }
}

/// Removes what builds that were killed have left, in gigabytes: where somebody builds, the lock is held.
pub fn remove_unfinished() -> Result<()> {
    let cache = cache()?;
    remove_unfinished_in(&cache)
        .with_context(|| format!("cannot remove unfinished programs in {}", cache.display()))
}

fn remove_unfinished_in(cache: &Path) -> io::Result<()> {
    if !cache.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(cache)? {
        let folder = entry?.path();
        // The cache has other tools, too, which have no such lock.
        let Ok(lock) = File::open(folder.join(LOCK)) else {
            continue;
        };
        if lock.try_lock().is_err() {
            continue;
        }
        for name in TEMPORARY {
            remove(&folder.join(name))?;
        }
    }
    Ok(())
}

/// Makes an empty folder, in place of one that may be there.
fn empty(folder: &Path) -> io::Result<()> {
    remove(folder)?;
    fs::create_dir(folder)
}

/// Removes a folder, if it is there. The compilers of a build that was killed make a last file each until they end.
fn remove(folder: &Path) -> io::Result<()> {
    const ATTEMPTS: usize = 20;
    let mut removed = Ok(());
    for _ in 0..ATTEMPTS {
        removed = fs::remove_dir_all(folder);
        match &removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            _ => break,
        }
    }
    removed
}

fn link_names(node: &Path) -> Result<()> {
    for name in NODE_NAMES {
        let link = named(node, name);
        if link.symlink_metadata().is_err() {
            symlink(Program::Node.name(), &link)
                .with_context(|| format!("cannot link {}", link.display()))?;
        }
    }
    Ok(())
}

/// Returns the folder of everything that is built once for every checkout.
pub fn cache() -> Result<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME") {
        Some(folder) if !folder.is_empty() => PathBuf::from(folder),
        _ => PathBuf::from(
            std::env::var_os("HOME").context("neither XDG_CACHE_HOME nor HOME is set")?,
        )
        .join(".cache"),
    };
    Ok(base.join("water-data/programs"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn what_a_killed_build_left_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let work = parent.path().join("work");
        for _ in 0..2 {
            empty(&work).unwrap();
            assert_eq!(fs::read_dir(&work).unwrap().count(), 0);
            fs::create_dir_all(work.join("go-build1/b001")).unwrap();
        }
    }

    #[test]
    fn unfinished_programs_are_removed_where_nobody_builds() {
        let cache = tempfile::tempdir().unwrap();
        let [killed, running] = ["killed", "running"].map(|name| cache.path().join(name));
        let begin = |folder: &Path| {
            fs::create_dir_all(folder.join("work/go-build1")).unwrap();
            fs::create_dir_all(folder.join("unfinished")).unwrap();
            File::create(folder.join("node")).unwrap();
            File::create(folder.join(LOCK)).unwrap()
        };
        begin(&killed);
        let held = begin(&running);
        held.lock().unwrap();
        let left = |folder: &Path| {
            let names = fs::read_dir(folder).unwrap();
            names
                .map(|entry| entry.unwrap().file_name())
                .collect::<BTreeSet<_>>()
        };
        remove_unfinished_in(cache.path()).unwrap();
        assert_eq!(left(&killed), ["lock", "node"].map(Into::into).into());
        assert_eq!(left(&running).len(), 4);
        remove_unfinished_in(&cache.path().join("missing")).unwrap();
    }
}
