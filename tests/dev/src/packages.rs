//! What the cluster and the benchmarks need of Debian: installed where that is possible, otherwise
//! named in one sentence.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{run, run_reporting};
use crate::progress::Step;

/// A package, the file by which it is known to be there, and the system service that it would start.
pub struct Package {
    name: &'static str,
    file: &'static str,
    service: Option<&'static str>,
}

/// What a cluster needs.
pub const CLUSTER: [Package; 10] = [
    Package {
        name: "containerd",
        file: "/usr/bin/containerd",
        service: Some("containerd"),
    },
    Package {
        name: "runc",
        file: "/usr/sbin/runc",
        service: None,
    },
    Package {
        name: "containernetworking-plugins",
        file: "/usr/lib/cni/ptp",
        service: None,
    },
    Package {
        name: "nftables",
        file: "/usr/sbin/nft",
        service: None,
    },
    Package {
        name: "iptables",
        file: "/usr/sbin/iptables",
        service: None,
    },
    Package {
        name: "iproute2",
        file: "/usr/bin/ip",
        service: None,
    },
    Package {
        name: "util-linux",
        file: "/usr/bin/unshare",
        service: None,
    },
    Package {
        name: "buildah",
        file: "/usr/bin/buildah",
        service: None,
    },
    Package {
        name: "postgresql",
        file: "/usr/bin/pg_ctlcluster",
        service: Some("postgresql"),
    },
    Package {
        name: "redis-server",
        file: "/usr/bin/redis-server",
        service: Some("redis-server"),
    },
];

/// What the benchmarks need: the servers, and Lua for nginx.
pub const BENCHMARKS: [Package; 6] = [
    Package {
        name: "util-linux",
        file: "/usr/bin/setpriv",
        service: None,
    },
    Package {
        name: "redis-server",
        file: "/usr/bin/redis-server",
        service: Some("redis-server"),
    },
    Package {
        name: "postgresql",
        file: "/usr/bin/pg_ctlcluster",
        service: Some("postgresql"),
    },
    Package {
        name: "nginx",
        file: "/usr/sbin/nginx",
        service: Some("nginx"),
    },
    Package {
        name: "libnginx-mod-http-lua",
        file: "/usr/lib/nginx/modules/ngx_http_lua_module.so",
        service: None,
    },
    Package {
        name: "lua-nginx-redis",
        file: "/usr/share/lua/5.1/nginx/redis.lua",
        service: None,
    },
];

/// What the tests need besides: clocks that are wrong, and a pooler before PostgreSQL.
pub const TESTS: [Package; 2] = [
    Package {
        name: "libfaketime",
        file: "/usr/share/doc/libfaketime",
        service: None,
    },
    Package {
        name: "pgbouncer",
        file: "/usr/sbin/pgbouncer",
        service: Some("pgbouncer"),
    },
];

/// Debian's Chromium.
pub const CHROMIUM: &str = "/usr/bin/chromium";

/// What the browser tests need: Chromium, and letters for it to draw.
pub const BROWSER: [Package; 2] = [
    Package {
        name: "chromium",
        file: CHROMIUM,
        service: None,
    },
    Package {
        name: "fonts-dejavu-core",
        file: "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
        service: None,
    },
];

/// What fetches the packages that the portal's pages are built with.
pub const NPM: [Package; 1] = [Package {
    name: "npm",
    file: "/usr/bin/npm",
    service: None,
}];

/// Makes sure that all of these packages are there.
pub fn install_missing(packages: &[Package], step: &Step) -> Result<()> {
    let missing: Vec<_> = packages
        .iter()
        .filter(|package| !Path::new(package.file).exists())
        .collect();
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
    step.say("updating the list of packages");
    run(&mut apt_get(&["update"]))?;
    let mut install = apt_get(&["install", "--yes", "--no-install-recommends"]);
    run_reporting(install.args(&names), &mut |line| step.say(line)).with_context(|| sentence)?;
    if Path::new("/run/systemd/system").exists() {
        // We start our own servers; those of the packages would start with the machine and take ports.
        for service in missing.iter().filter_map(|package| package.service) {
            run(Command::new("systemctl").args(["disable", service]))?;
        }
    }
    Ok(())
}

fn apt_get(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command
        .args(["--quiet"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// While this is held, Debian's installation scripts start no server
/// (<https://people.debian.org/~hmh/invokerc.d-policyrc.d-specification.txt>).
struct KeepServicesStopped {
    policy: Option<PathBuf>,
}

impl KeepServicesStopped {
    fn new() -> Result<Self> {
        let policy = PathBuf::from("/usr/sbin/policy-rc.d");
        if policy.exists() {
            // The machine has a policy of its own, as container images do: theirs is to start nothing.
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
