//! Debian packages of the cluster and the benchmarks: installed where that is possible, otherwise named in
//! one sentence.

mod installation;

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use anyhow::{Context, Result, bail};
use water_harness::programs::cache;

use crate::process::{run, run_reporting};
use crate::progress::Step;
use installation::Installation;

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
    let (missing, mark) = (missing(packages), cache()?.join("installing"));
    let is_root = nix::unistd::geteuid().is_root();
    // Of an installation that was killed, the files may be there and all else not.
    if missing.is_empty() && !(is_root && Installation::is_marked(&mark)) {
        return Ok(());
    }
    let names = names(&missing);
    let sentence = format!("the Debian packages {} are missing", names.join(", "));
    if !Path::new("/usr/bin/apt-get").exists() {
        bail!("{sentence}: install their like of this distribution, and run the command again");
    }
    if !is_root {
        bail!(
            "{sentence}: run `sudo apt-get install {}`, and the command again",
            names.join(" ")
        );
    }
    let installation = Installation::begin(&mark)?;
    let no_services = KeepServicesStopped::by(Path::new("/usr/sbin/policy-rc.d"))?;
    let installed = finish_killed(&installation, packages, step)
        .and_then(|()| install(packages, step))
        .with_context(|| sentence);
    drop(no_services);
    installation.end()?;
    installed
}

/// Finishes an installation that was killed, if one was.
fn finish_killed(installation: &Installation, packages: &[&[Package]], step: &Step) -> Result<()> {
    if !installation.follows_killed {
        return Ok(());
    }
    step.say("finishing an installation that was killed");
    update(step)?;
    apt_get_install(&["--fix-broken"], step)?;
    let packages: Vec<_> = packages.iter().copied().flatten().collect();
    disable_services(&packages)
}

/// Installs those that are still missing: another command may just have installed some.
fn install(packages: &[&[Package]], step: &Step) -> Result<()> {
    let missing = missing(packages);
    if missing.is_empty() {
        return Ok(());
    }
    update(step)?;
    apt_get_install(&names(&missing), step)?;
    disable_services(&missing)
}

/// Updates the list of packages once in a command.
fn update(step: &Step) -> Result<()> {
    static UPDATED: Once = Once::new();
    if !UPDATED.is_completed() {
        step.say("updating the list of packages");
        run(&mut apt_get(&["update"]))?;
        UPDATED.call_once(|| {});
    }
    Ok(())
}

/// Keeps the packages' servers from starting with the machine, where they would take ports: we start our own.
fn disable_services(packages: &[&Package]) -> Result<()> {
    if Path::new("/run/systemd/system").exists() {
        let there = packages
            .iter()
            .filter(|package| Path::new(package.file).exists());
        for package in there.filter(|package| package.service) {
            run(Command::new("systemctl").args(["disable", package.name]))?;
        }
    }
    Ok(())
}

fn missing<'a>(packages: &[&'a [Package]]) -> Vec<&'a Package> {
    let packages = packages.iter().copied().flatten();
    packages
        .filter(|package| !Path::new(package.file).exists())
        .collect()
}

fn names(packages: &[&Package]) -> Vec<&'static str> {
    packages.iter().map(|package| package.name).collect()
}

/// Installs by apt-get. Where dpkg was interrupted, that refuses to, and names the remedy.
fn apt_get_install(arguments: &[&str], step: &Step) -> Result<()> {
    let mut install = apt_get(&["install", "--yes", "--no-install-recommends"]);
    install.args(arguments);
    let mut attempt = || run_reporting(&mut install, &mut |line| step.say(line));
    let first = attempt();
    if !first.as_ref().is_err_and(wants_dpkg) {
        return first;
    }
    let mut configure = Command::new("dpkg");
    configure.args(["--configure", "-a"]);
    // It fails for a package that lacks others, which apt-get installs now.
    run(configure.env("DEBIAN_FRONTEND", "noninteractive")).ok();
    attempt()
}

/// Whether an error of apt-get asks for what finishes the work of an interrupted dpkg.
fn wants_dpkg(error: &anyhow::Error) -> bool {
    error.to_string().contains("dpkg --configure -a")
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

/// Text by which installation scripts start nothing (101: the action is forbidden), and by which one that a killed
/// command has left is known.
const POLICY: &str = "#!/bin/sh\n# Of `cargo dev`, while it installs packages.\nexit 101\n";

/// Guard that keeps Debian's installation scripts from starting servers while it is held
/// (<https://people.debian.org/~hmh/invokerc.d-policyrc.d-specification.txt>).
struct KeepServicesStopped {
    policy: Option<PathBuf>,
}

impl KeepServicesStopped {
    fn by(policy: &Path) -> Result<Self> {
        // An empty one is of a command that was killed before it wrote.
        let is_ours = |found: String| found.is_empty() || found == POLICY;
        if policy.exists() && !fs::read_to_string(policy).is_ok_and(is_ours) {
            // The machine has its own policy, as container images do: theirs is to start nothing.
            return Ok(Self { policy: None });
        }
        File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o755)
            .open(policy)
            .and_then(|mut file| file.write_all(POLICY.as_bytes()))
            .with_context(|| format!("cannot write {}", policy.display()))?;
        Ok(Self {
            policy: Some(policy.to_owned()),
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

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn services_stay_stopped_by_the_machines_policy_or_one_that_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("policy-rc.d");
        let hold = || KeepServicesStopped::by(&policy).unwrap();
        // None, and those of commands that were killed.
        for left in [None, Some(""), Some(POLICY)] {
            if let Some(left) = left {
                fs::write(&policy, left).unwrap();
            }
            let held = hold();
            assert_eq!(fs::read_to_string(&policy).unwrap(), POLICY);
            drop(held);
            assert!(!policy.exists());
        }
        let own = "#!/bin/sh\nexit 101\n";
        fs::write(&policy, own).unwrap();
        drop(hold());
        assert_eq!(fs::read_to_string(&policy).unwrap(), own);
    }

    #[test]
    fn apt_get_says_that_dpkg_was_interrupted() {
        let said = |sentence: &str| anyhow!("`apt-get` ended with exit status: 100:\n{sentence}");
        assert!(wants_dpkg(&said(
            "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem."
        )));
        assert!(!wants_dpkg(&said("E: Unable to locate package runc")));
    }
}
