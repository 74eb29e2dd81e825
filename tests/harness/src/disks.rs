//! Small disks of a test, to be filled: memory that is mounted where only programs see it that are started
//! inside.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::unistd::{getegid, geteuid};

use crate::{Process, Program, scratch};

/// Longer than a mount takes on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// File that fills a disk.
const FILLER: &str = "filler";

/// Disks in a mount namespace, which lives as long as this.
#[derive(Debug)]
pub struct Disks {
    holder: Process,
    folder: PathBuf,
}

impl Disks {
    /// Mounts disks by name and size in bytes. Needs no root where Linux lets users have namespaces.
    pub async fn mount(disks: &[(&str, u64)]) -> Result<Self> {
        let folder = scratch::directory("disks")?;
        let mounts = disks.iter().map(|(name, bytes)| {
            let at = folder.join(name);
            fs::create_dir(&at).with_context(|| format!("create {}", at.display()))?;
            let at = at.display();
            Ok(format!(
                "mount -t tmpfs -o size={bytes},mode=0711 tmpfs {at} && "
            ))
        });
        let mounts = mounts.collect::<Result<String>>()?;
        let namespaces: &[&str] = if geteuid().is_root() {
            &["--mount"]
        } else {
            &["--user", "--map-root-user", "--mount"]
        };
        let script = format!(
            "{mounts} touch {}/mounted && exec sleep infinity",
            folder.display()
        );
        let holder = Program::new("unshare")
            .args(namespaces)
            .args(["--propagation", "private", "sh", "-c", &script])
            .start()?;
        let mounted = async || Ok(fs::metadata(folder.join("mounted"))?);
        holder.ready(SOON, mounted).await?;
        Ok(Self { holder, folder })
    }

    /// Returns the path of a disk for programs inside.
    pub fn inside(&self, disk: &str) -> PathBuf {
        self.folder.join(disk)
    }

    /// Returns the path of a disk for everyone else.
    pub fn outside(&self, disk: &str) -> PathBuf {
        let root = format!("/proc/{}/root", self.holder.id());
        let inside = self.inside(disk);
        Path::new(&root).join(inside.strip_prefix("/").unwrap_or(&inside))
    }

    /// Returns the words that start a program inside: they come before its own.
    pub fn enter(&self) -> Vec<OsString> {
        let holder = self.holder.id().to_string();
        let words: Vec<String> = if geteuid().is_root() {
            ["nsenter", "--mount", "--target", &holder, "--"]
                .map(str::to_owned)
                .into()
        } else {
            // Root there is this user, which some servers refuse to run as: back to oneself.
            [
                "nsenter",
                "--user",
                "--mount",
                "--preserve-credentials",
                "--target",
                &holder,
                "--",
                "unshare",
                "--user",
                &format!("--map-user={}", geteuid()),
                &format!("--map-group={}", getegid()),
                "--",
            ]
            .map(str::to_owned)
            .into()
        };
        words.into_iter().map(OsString::from).collect()
    }

    /// Fills a disk to its last byte.
    pub fn fill(&self, disk: &str) -> Result<()> {
        let path = self.outside(disk).join(FILLER);
        let mut filler =
            File::create(&path).with_context(|| format!("create {}", path.display()))?;
        for block in [1 << 20, 4096, 1] {
            loop {
                match filler.write(&vec![0; block]) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => return Err(error).context("fill a disk"),
                }
            }
        }
        Ok(())
    }

    /// Gives the space back.
    pub fn free(&self, disk: &str) -> Result<()> {
        fs::remove_file(self.outside(disk).join(FILLER)).context("empty a disk")
    }
}
