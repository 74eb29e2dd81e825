//! The PostgreSQL that is installed on this machine, and how it makes a place for data.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    net::IpAddr,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use nix::unistd::{User, geteuid};

use crate::process;

/// The superuser that `initdb` makes, and the system's user that Debian's package makes.
pub(super) const SUPERUSER: &str = "postgres";

/// Where Debian keeps the programs of one version.
pub(super) struct Installation {
    directory: PathBuf,
}

impl Installation {
    /// The one on the `PATH`, or else the newest.
    pub(super) fn find() -> Result<Self> {
        let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
            .into_iter()
            .flatten()
            .flatten()
            .map(|version| version.path().join("bin"))
            .collect();
        versions.sort();
        versions.reverse();
        // On the PATH, `postgres` may be a link out of the directory that has `initdb`.
        let file = process::find("initdb", &versions);
        let directory =
            file.and_then(|file| file.canonicalize().ok()?.parent().map(Path::to_path_buf));
        match directory {
            Some(directory) => Ok(Self { directory }),
            None => bail!("PostgreSQL is missing: install the Debian package postgresql"),
        }
    }

    /// The path of one of its programs.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// One of its programs, to be run as this process' user.
    pub(super) fn command(&self, name: &str) -> Command {
        Command::new(self.program(name))
    }

    /// Makes the directory `data` with an empty server. From loopback everyone may connect as anyone,
    /// from elsewhere with a password; `addresses` are those that it will listen on beside loopback.
    pub(super) fn initialise(&self, data: &Path, addresses: &[IpAddr]) -> Result<()> {
        fs::create_dir(data).with_context(|| format!("create {}", data.display()))?;
        let mut command = match server_user()? {
            Some(user) => {
                chown(data, Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
                let mut command = Command::new("setpriv");
                let (user, group) = (user.uid.to_string(), user.gid.to_string());
                command.args(["--reuid", &user, "--regid", &group, "--init-groups", "--"]);
                command.arg(self.program("initdb"));
                command
            }
            None => self.command("initdb"),
        };
        command.args(["--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"]);
        let output = command
            .args(["-U", SUPERUSER, "-D"])
            .arg(data)
            .output()
            .context("start initdb")?;
        if !output.status.success() {
            bail!("initdb: {}", String::from_utf8_lossy(&output.stderr));
        }
        if !addresses.is_empty() {
            let mut rules = OpenOptions::new()
                .append(true)
                .open(data.join("pg_hba.conf"))?;
            writeln!(rules, "host all all all scram-sha-256").context("allow other machines")?;
        }
        Ok(())
    }
}

/// PostgreSQL refuses to run as root: then it is run by the user that its Debian package makes.
pub(super) fn server_user() -> Result<Option<User>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let user = User::from_name(SUPERUSER).context("look up the user postgres")?;
    user.map(Some)
        .context("the user postgres is missing: install the Debian package postgresql")
}
