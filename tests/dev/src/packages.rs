//! Debian packages of the cluster and the benchmarks: installed where that is possible, otherwise named in
//! one sentence.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, Once, PoisonError};

use anyhow::{Context, Result, bail};

use crate::process::{run, run_reporting};
use crate::progress::Step;

/// A Debian package and the file by which it is known to be there; `service` says whether its server,
/// of the same name, would be started with the machine.
pub struct Package {
    name: &'static str,
    file: &'static str,
    service: bool,
}

const fn package(name: &'static str, file: &'static str) -> Package {
    let service = false;
    Package {
        name,
        file,
        service,
    }
}

const fn server(name: &'static str, file: &'static str) -> Package {
    let service = true;
    Package {
        name,
        file,
        service,
    }
}

const POSTGRES: Package = server("postgresql", "/usr/bin/pg_ctlcluster");
const REDIS: Package = server("redis-server", "/usr/bin/redis-server");

/// Packages of a cluster.
pub const CLUSTER: &[Package] = &[
    server("containerd", "/usr/bin/containerd"),
    package("runc", "/usr/sbin/runc"),
    package("containernetworking-plugins", "/usr/lib/cni/ptp"),
    package("nftables", "/usr/sbin/nft"),
    package("iptables", "/usr/sbin/iptables"),
    package("iproute2", "/usr/bin/ip"),
    package("util-linux", "/usr/bin/unshare"),
    package("buildah", "/usr/bin/buildah"),
    POSTGRES,
    REDIS,
];

/// Packages of the benchmarks: the servers, and Lua for nginx.
pub const BENCHMARKS: &[Package] = &[
    package("util-linux", "/usr/bin/setpriv"),
    REDIS,
    POSTGRES,
    server("nginx", "/usr/sbin/nginx"),
    package(
        "libnginx-mod-http-lua",
        "/usr/lib/nginx/modules/ngx_http_lua_module.so",
    ),
    package("lua-nginx-redis", "/usr/share/lua/5.1/nginx/redis.lua"),
];

/// Further packages of the tests: clocks that are wrong, and a pooler before PostgreSQL.
pub const TESTS: &[Package] = &[
    package("libfaketime", "/usr/share/doc/libfaketime"),
    server("pgbouncer", "/usr/sbin/pgbouncer"),
];

/// Debian's Chromium.
pub const CHROMIUM: &str = "/usr/bin/chromium";

/// Packages of the browser tests: Chromium, and letters for it to draw.
pub const BROWSER: &[Package] = &[
    package("chromium", CHROMIUM),
    package(
        "fonts-dejavu-core",
        "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
    ),
];

/// Package that fetches the packages with which the portal's pages are built.
pub const NPM: &[Package] = &[package("npm", "/usr/bin/npm")];

/// Python, with which clients of the API are generated and run.
pub const PYTHON: &[Package] = &[
    package("python3", "/usr/bin/python3"),
    package("python3-venv", "/usr/share/doc/python3-venv"),
];

/// Makes sure that all of these packages are there.
pub fn install_missing(packages: &[&[Package]], step: &Step) -> Result<()> {
    // apt-get does not wait for another one.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut missing: Vec<_> = packages.iter().copied().flatten().collect();
    missing.retain(|package| !Path::new(package.file).exists());
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = missing.iter().map(|package| package.name).collect();
    let sentence = format!("the Debian packages {} are missing", names.join(", "));
    if !Path::new("/usr/bin/apt-get").exists() {
        bail!("{sentence}: install their like of this distribution, and run the command again");
    }
    if !nix::unistd::geteuid().is_root() {
        bail!(
            "{sentence}: run `sudo apt-get install {}`, and the command again",
            names.join(" ")
        );
    }
    let _no_services = KeepServicesStopped::new()?;
    static UPDATED: Once = Once::new();
    if !UPDATED.is_completed() {
        step.say("updating the list of packages");
        run(&mut apt_get(&["update"]))?;
        UPDATED.call_once(|| {});
    }
    let mut install = apt_get(&["install", "--yes", "--no-install-recommends"]);
    run_reporting(install.args(&names), &mut |line| step.say(line)).with_context(|| sentence)?;
    if Path::new("/run/systemd/system").exists() {
        // We start our own servers; those of the packages would start with the machine and take ports.
        for package in missing.iter().filter(|package| package.service) {
            run(Command::new("systemctl").args(["disable", package.name]))?;
        }
    }
    Ok(())
}

fn apt_get(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    // A mirror may be away for a moment, and another apt-get may be at work.
    let patient = ["-o", "Acquire::Retries=5", "-o", "DPkg::Lock::Timeout=300"];
    command
        .arg("--quiet")
        .args(patient)
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// Guard that keeps Debian's installation scripts from starting servers while it is held
/// (<https://people.debian.org/~hmh/invokerc.d-policyrc.d-specification.txt>).
struct KeepServicesStopped {
    policy: Option<PathBuf>,
}

impl KeepServicesStopped {
    fn new() -> Result<Self> {
        let policy = PathBuf::from("/usr/sbin/policy-rc.d");
        if policy.exists() {
            // The machine has its own policy, as container images do: theirs is to start nothing.
            return Ok(Self { policy: None });
        }
        // 101: the action is forbidden.
        File::options()
            .write(true)
            .create_new(true)
            .mode(0o755)
            .open(&policy)
            .and_then(|mut file| file.write_all(b"#!/bin/sh\nexit 101\n"))
            .with_context(|| format!("cannot write {}", policy.display()))?;
        Ok(Self {
            policy: Some(policy),
        })
    }
}

impl Drop for KeepServicesStopped {
    fn drop(&mut self) {
        if let Some(policy) = &self.policy {
            fs::remove_file(policy).ok();
        }
    }
}
