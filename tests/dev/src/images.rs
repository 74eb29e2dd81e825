//! Images and the registry that the node takes them from.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::binaries::{self, PACKAGES};
use crate::cluster::{Cluster, REGISTRY};
use crate::process::run;
use crate::progress::Step;
use crate::project::project;
use crate::wait;

/// A second, unless the machine is busy.
const SOON: Duration = Duration::from_secs(60);

/// Puts the image of the pause container into the registry.
pub fn push_pause(cluster: &Cluster) -> Result<()> {
    wait::until(SOON, "the image registry answers", || {
        Ok(run(crane(cluster).args(["catalog", "--insecure", REGISTRY])).ok())
    })?;
    let layer = cluster.file("pause.tar");
    run(Command::new("tar")
        .arg("--create")
        .arg("--file")
        .arg(&layer)
        .arg("--directory")
        .arg(cluster.file("programs"))
        .arg("pause"))?;
    let image = format!("{REGISTRY}/pause:1");
    run(crane(cluster)
        .args(["append", "--insecure", "--new_tag", &image, "--new_layer"])
        .arg(&layer))?;
    // The registry's clients speak of machines in Go's words.
    let architecture = if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "amd64"
    };
    run(crane(cluster)
        .args(["mutate", "--insecure", &image, "--tag", &image])
        .args(["--entrypoint=/pause", "--user=65532:65532"])
        .arg(format!("--set-platform=linux/{architecture}")))
    .map(drop)
}

/// Builds the images of `version` that the registry lacks, from the binaries, under `launcher`, a program with its
/// arguments, or none.
pub fn build_missing(
    cluster: &Cluster,
    version: &str,
    launcher: &[&str],
    step: &Step,
) -> Result<()> {
    for package in PACKAGES {
        if !exists(cluster, package, version) {
            step.say(package);
            build(cluster, package, version, launcher)?;
        }
    }
    Ok(())
}

fn build(cluster: &Cluster, package: &str, version: &str, launcher: &[&str]) -> Result<()> {
    let image = format!("{REGISTRY}/{package}:{version}");
    let project = project();
    run(buildah(cluster, launcher)
        .args(["build", "--isolation=chroot", "--quiet"])
        .arg(format!("--build-arg=PACKAGE={package}"))
        .arg(format!("--build-arg=VERSION={version}"))
        .arg(format!(
            "--build-arg=BINARIES={}",
            binaries::folder().display()
        ))
        .args(["--tag", &image, "--file"])
        .args([project.join("services/Dockerfile"), project]))?;
    run(buildah(cluster, launcher)
        .args(["push", "--quiet", "--tls-verify=false", &image])
        .arg(format!("docker://{image}")))
    .map(drop)
}

fn exists(cluster: &Cluster, package: &str, version: &str) -> bool {
    let image = format!("{REGISTRY}/{package}:{version}");
    run(crane(cluster).args(["digest", "--insecure", &image])).is_ok()
}

fn crane(cluster: &Cluster) -> Command {
    Command::new(cluster.file("programs/crane"))
}

/// Returns buildah with a separate store and the one driver that needs no mounts: nothing stays on the
/// machine. It ends with this process: it would fill the folder that the next run removes.
fn buildah(cluster: &Cluster, launcher: &[&str]) -> Command {
    let words = [launcher, &["setpriv", "--pdeathsig", "KILL", "buildah"]].concat();
    let mut buildah = Command::new(words[0]);
    buildah
        .args(&words[1..])
        .arg("--root")
        .arg(cluster.file("buildah/root"))
        .arg("--runroot")
        .arg(cluster.file("buildah/run"));
    buildah.arg("--storage-driver=vfs");
    buildah
}
