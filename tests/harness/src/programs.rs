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
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use module::Module;

/// What the multi-call binary [`Program::Node`] can be called: it looks at the name that it is started by.
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

/// Nobody debugs the programs: what the linker leaves out (`-s -w`) is an eighth of the compiler's
/// work, and a quarter of what Go caches of it.
const COMPILER_FLAGS: &str = "-gcflags=all=-dwarf=false";

/// One program of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Everything a Kubernetes node and its control plane run, under [`NODE_NAMES`].
    Node,
    /// The Helm client.
    Helm,
    /// An image registry, and the client that writes to it.
    Crane,
    /// What a pod's pause container runs.
    Pause,
    /// The ingress controller.
    Traefik,
    /// The identity provider, whose libraries are of other versions than Kubernetes': a module of its own.
    Identity,
}

/// How far a build has come.
pub struct Progress<'a> {
    /// The program that is being built.
    pub program: &'static str,
    /// Packages compiled so far.
    pub compiled: usize,
    /// Packages that the program consists of; those that Go has in its own cache are never reported
    /// as compiled.
    pub packages: usize,
    /// What the compiler reported last: a package's path, or a module that is being downloaded.
    pub message: &'a str,
}

/// A program under one of its names: a link beside the multi-call binary.
pub fn named(node: &Path, name: &str) -> PathBuf {
    node.with_file_name(name)
}

impl Program {
    /// All programs, in the order of building that shares the most.
    pub const ALL: [Self; 6] = [
        Self::Node,
        Self::Helm,
        Self::Crane,
        Self::Pause,
        Self::Traefik,
        Self::Identity,
    ];

    /// The file's name.
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

    /// Kubernetes compares versions between its parts, so they have to know theirs.
    fn linker_flags(self) -> &'static str {
        match self {
            Self::Node => concat!(
                "-s -w -X k8s.io/component-base/version.gitVersion=v1.35.4",
                " -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=35",
                " -X k8s.io/client-go/pkg/version.gitVersion=v1.35.4"
            ),
            _ => "-s -w",
        }
    }

    /// The program's file in the cache, whether it has been built or not.
    pub fn path(self) -> Result<PathBuf> {
        Ok(cache()?.join(self.module().hash()?).join(self.name()))
    }

    /// The program's file, built first if the cache does not have it. `report` is told of each
    /// compiled package.
    ///
    /// Concurrent callers build once: the others wait for the first one.
    pub fn find_or_build(self, report: &mut dyn FnMut(Progress<'_>)) -> Result<PathBuf> {
        let file = self.path()?;
        if file.exists() {
            return Ok(file);
        }
        let folder = file.parent().context("a cached program has a folder")?;
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the cache {}", folder.display()))?;
        let lock = File::create(folder.join("lock")).context("cannot make the cache's lock")?;
        lock.lock().context("cannot lock the cache of programs")?;
        if !file.exists() {
            self.build(&file, report)
                .with_context(|| format!("cannot build {}", self.name()))?;
        }
        Ok(file)
    }

    /// The finished file appears under its name by a rename: an interrupted build leaves no half program.
    fn build(self, file: &Path, report: &mut dyn FnMut(Progress<'_>)) -> Result<()> {
        let mut progress = Progress {
            program: self.name(),
            compiled: 0,
            packages: 0,
            message: "resolving modules",
        };
        report(Progress { ..progress });
        let folder = file.parent().context("a cached program has a folder")?;
        let pins = format!("-modfile={}", self.module().prepare(folder)?.display());
        progress.packages = self.count_packages(&pins)?;
        let unfinished = file.with_extension("unfinished");
        let build = ["build", "-v", "-mod=readonly", &pins, "-trimpath"];
        let mut go = self
            .module()
            .go(&build)
            .args([COMPILER_FLAGS, "-ldflags", self.linker_flags(), "-o"])
            .args([&unfinished, Path::new(self.package())])
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
            bail!(
                "`go build {}` ended with {status}:\n{}",
                self.package(),
                Vec::from(last_lines).join("\n")
            );
        }
        if self == Self::Node {
            link_names(file)?;
        }
        fs::rename(&unfinished, file)
            .with_context(|| format!("cannot put {} in its place", file.display()))
    }

    fn count_packages(self, pins: &str) -> Result<usize> {
        let list = ["list", "-mod=readonly", pins, "-deps", self.package()];
        let listed = self.module().ask(&list)?;
        Ok(listed.lines().count())
    }
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

/// The folder of what is built once for every checkout.
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
