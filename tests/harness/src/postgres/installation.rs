//! The PostgreSQL that is installed on this machine, and the making of its data directories.

use std::{
    ffi::OsString,
    fs::{self, OpenOptions, Permissions},
    io::Write,
    net::IpAddr,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, PoisonError},
};

use anyhow::{Context, Result, bail};
use nix::unistd::{User, geteuid};

use crate::{Disks, process, scratch};

/// The superuser that `initdb` makes, and the system's user that Debian's package makes.
pub(super) const SUPERUSER: &str = "postgres";

/// Directory in which Debian keeps the programs of one version.
pub(super) struct Installation {
    directory: PathBuf,
}

impl Installation {
    /// Finds the one on the `PATH`, or else the newest.
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

    /// Returns the path of one of its programs.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Returns a command of one of its programs, to be run as this process' user.
    pub(super) fn command(&self, name: &str) -> Command {
        Command::new(self.program(name))
    }

    /// Returns the words that start the server where the disks are.
    pub(super) fn on(&self, disks: &Disks) -> Result<Vec<OsString>> {
        let mut words = disks.enter();
        words.extend(as_server_user("QUIT")?);
        words.push(self.program("postgres").into());
        Ok(words)
    }

    /// Makes the directory `data` with an empty server. From loopback everyone may connect as anyone, from
    /// elsewhere with a password; `addresses` are those that it will listen on besides loopback.
    pub(super) fn initialise(
        &self,
        data: &Path,
        addresses: &[IpAddr],
        disks: Option<&Disks>,
    ) -> Result<()> {
        match disks {
            Some(disks) => self.initialise_on(disks, data)?,
            None => copy_files(&self.never_started()?, data)?,
        }
        if !addresses.is_empty() {
            let mut rules = OpenOptions::new()
                .append(true)
                .open(data.join("pg_hba.conf"))?;
            writeln!(rules, "host all all all scram-sha-256").context("allow other machines")?;
        }
        Ok(())
    }

    /// Returns the data of a server that is never started, made once in this process: `initdb` takes a second of a core,
    /// a copy a fraction of it. All copies have the same system identifier.
    fn never_started(&self) -> Result<PathBuf> {
        static MADE: Mutex<Option<PathBuf>> = Mutex::new(None);
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(data) = &*made {
            return Ok(data.clone());
        }
        let data = scratch::directory("postgres")?.join("data");
        make(&data)?;
        self.initdb(Vec::new(), &data, &[])?;
        *made = Some(data.clone());
        Ok(data)
    }

    /// Makes the directory `data` on the disk `data`, and the one of its write-ahead log on the disk `wal`.
    fn initialise_on(&self, disks: &Disks, data: &Path) -> Result<()> {
        for disk in ["data", "wal"] {
            make(&disks.outside(disk).join(disk))?;
        }
        let wal = OsString::from(disks.inside("wal").join("wal"));
        // Small enough for a small disk.
        let options = ["--wal-segsize=1".into(), "--waldir".into(), wal];
        self.initdb(disks.enter(), data, &options)
    }

    /// Fills the directory `data`. The words `enter` come before the program's own.
    fn initdb(&self, enter: Vec<OsString>, data: &Path, options: &[OsString]) -> Result<()> {
        let mut words = enter;
        words.extend(as_server_user("KILL")?);
        words.push(self.program("initdb").into());
        let usual = [
            "--auth=trust",
            "--no-sync",
            "--encoding=UTF8",
            "--locale=C",
            "-U",
            SUPERUSER,
            "-D",
        ];
        words.extend(usual.map(OsString::from));
        words.push(data.into());
        words.extend_from_slice(options);
        run("initdb", &words)
    }

    /// Makes the directory `data` with a copy of the server at this port of loopback. With
    /// `--write-recovery-conf` the copy will follow it.
    pub(super) fn copy(&self, data: &Path, port: u16, options: &[&str]) -> Result<()> {
        make(data)?;
        fs::set_permissions(data, Permissions::from_mode(0o700))?;
        let server = format!("host=127.0.0.1 port={port} user={SUPERUSER}");
        let mut words = as_server_user("KILL")?;
        words.push(self.program("pg_basebackup").into());
        words.extend(["--checkpoint=fast", "--no-sync"].map(OsString::from));
        words.extend(options.iter().map(OsString::from));
        words.extend([
            "--dbname".into(),
            server.into(),
            "--pgdata".into(),
            data.into(),
        ]);
        run("pg_basebackup", &words)
    }
}

/// Runs a program that makes a server's data.
fn run(name: &'static str, words: &[OsString]) -> Result<()> {
    let output = Command::new(&words[0]).args(&words[1..]).output();
    let output = output.with_context(|| format!("start {name}"))?;
    if !output.status.success() {
        bail!("{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// Makes the directory `to` with all files of another one, as the server's user.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    make(to)?;
    // A server refuses data that others may read.
    fs::set_permissions(to, Permissions::from_mode(0o700))?;
    let mut words = as_server_user("KILL")?;
    words.extend(["cp", "--archive"].map(OsString::from));
    words.extend([from.join(".").into(), to.into()]);
    run("cp", &words)
}

/// Makes an empty directory of the server's user.
fn make(directory: &Path) -> Result<()> {
    fs::create_dir(directory).with_context(|| format!("create {}", directory.display()))?;
    if let Some(user) = server_user()? {
        chown(directory, Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
    }
    Ok(())
}

/// Returns the words that start a program as the server's user, which gets this signal when its parent
/// ends.
fn as_server_user(death_signal: &str) -> Result<Vec<OsString>> {
    let mut words: Vec<OsString> = ["setpriv", "--pdeathsig", death_signal]
        .map(Into::into)
        .into();
    if let Some(user) = server_user()? {
        let (user, group) = (user.uid.to_string(), user.gid.to_string());
        let options = ["--reuid", &user, "--regid", &group, "--init-groups"];
        words.extend(options.map(OsString::from));
    }
    words.push("--".into());
    Ok(words)
}

/// Returns the user that runs PostgreSQL, which refuses to run as root: then it is the one that its Debian
/// package makes.
pub(super) fn server_user() -> Result<Option<User>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let user = User::from_name(SUPERUSER).context("look up the user postgres")?;
    user.map(Some)
        .context("the user postgres is missing: install the Debian package postgresql")
}
