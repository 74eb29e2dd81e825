//! Images and the registry that the node takes them from.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::binaries::{self, PACKAGES};
use crate::cluster::Cluster;
use crate::process::run;
use crate::progress::Step;
use crate::project::project;
use crate::wait;

/// Puts the image of the pause container into the registry.
pub fn push_pause(cluster: &Cluster) -> Result<()> {
    let registry = cluster.registry();
    wait::until(
        Duration::from_secs(60),
        "the image registry answers",
        || Ok(run(crane(cluster).args(["catalog", "--insecure", &registry])).ok()),
    )?;
    let layer = cluster.file("pause.tar");
    run(Command::new("tar")
        .arg("--create")
        .arg("--file")
        .arg(&layer)
        .arg("--directory")
        .args([cluster.file("programs").as_path(), Path::new("pause")]))?;
    let image = format!("{registry}/pause:1");
    run(crane(cluster)
        .args(["append", "--insecure", "--new_tag", &image, "--new_layer"])
        .arg(&layer))?;
    // The registry's clients speak of machines in Go's words.
    let architecture = if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "amd64"
    };
    let platform = format!("--set-platform=linux/{architecture}");
    let config = [
        "--entrypoint=/pause",
        "--user=65532:65532",
        &platform,
        "--tag",
        &image,
    ];
    run(crane(cluster)
        .args(["mutate", "--insecure", &image])
        .args(config))
    .map(drop)
}

/// Builds the images of `version` that the registry lacks, from the binaries.
pub fn build_missing(cluster: &Cluster, version: &str, step: &Step) -> Result<()> {
    for package in PACKAGES {
        if !exists(cluster, package, version) {
            step.say(package);
            build(cluster, package, version)?;
        }
    }
    Ok(())
}

fn build(cluster: &Cluster, package: &str, version: &str) -> Result<()> {
    let image = format!("{}/{package}:{version}", cluster.registry());
    let project = project();
    run(buildah(cluster)
        .args(["build", "--isolation=chroot", "--quiet"])
        .args(["--build-arg", &format!("PACKAGE={package}")])
        .args(["--build-arg", &format!("VERSION={version}")])
        .args([
            "--build-arg",
            &format!("BINARIES={}", binaries::folder().display()),
        ])
        .args(["--tag", &image, "--file"])
        .args([project.join("services/Dockerfile"), project]))?;
    run(buildah(cluster).args([
        "push",
        "--quiet",
        "--tls-verify=false",
        &image,
        &format!("docker://{image}"),
    ]))
    .map(drop)
}

fn exists(cluster: &Cluster, package: &str, version: &str) -> bool {
    let image = format!("{}/{package}:{version}", cluster.registry());
    run(crane(cluster).args(["digest", "--insecure", &image])).is_ok()
}

fn crane(cluster: &Cluster) -> Command {
    Command::new(cluster.file("programs/crane"))
}

/// With a store of its own and the one driver that needs no mounts: nothing stays on the machine.
fn buildah(cluster: &Cluster) -> Command {
    let mut buildah = Command::new("buildah");
    buildah
        .arg("--root")
        .arg(cluster.file("buildah/root"))
        .arg("--runroot")
        .arg(cluster.file("buildah/run"));
    buildah.arg("--storage-driver=vfs");
    buildah
}
