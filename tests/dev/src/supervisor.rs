//! Keeps the cluster's programs running: one thread each, which starts its program again when it ends.
//!
//! Output goes to `logs/<name>.log`; `services/<name>.json` says how often a program was started again and
//! why, so that a command outside can distinguish a slow start from a broken one.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::cluster::{Cluster, inside};
use crate::process::end_of_log;
use crate::timeline::Timeline;

/// A program that fails at once is not started again in a tight loop.
const PAUSE: Duration = Duration::from_secs(1);

/// Longest life of a program that fails at once. One that lives longer meets something that it waits for in vain, or a
/// machine that stands still.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Time for which a program has failed at once, again and again, when it is broken rather than early: it ends, too,
/// while a peer that it needs is still starting, as the kubelet does without containerd's socket.
const BROKEN: Duration = Duration::from_secs(60);

/// A program to keep running.
pub struct Service {
    /// Name of its log.
    pub name: &'static str,
    /// File of the program.
    pub program: String,
    /// Arguments.
    pub arguments: Vec<String>,
    /// User that it runs as; root otherwise.
    pub user: Option<User>,
}

/// A user and group of the machine.
#[derive(Clone, Copy)]
pub struct User {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// State of a service, as known from outside.
#[derive(Debug, Default, Deserialize, Serialize, PartialEq)]
pub struct Condition {
    /// Number of its ends.
    pub restarts: u32,
    /// Reason of its last end.
    pub last_end: Option<String>,
    /// Time for which it has done nothing but fail at once.
    #[serde(default)]
    failing: Duration,
}

impl Condition {
    /// Notes an end after a life of that length.
    fn ended(&mut self, reason: String, life: Duration) {
        self.restarts += 1;
        self.last_end = Some(reason);
        self.failing = if life < AT_ONCE {
            self.failing + life + PAUSE
        } else {
            Duration::ZERO
        };
    }

    fn is_broken(&self) -> bool {
        self.failing >= BROKEN
    }
}

impl User {
    /// Returns the user that Debian's package made for its server.
    pub fn named(name: &str) -> Result<Self> {
        let user = nix::unistd::User::from_name(name)
            .with_context(|| format!("cannot look up the user {name}"))?;
        let user = user.with_context(|| format!("the machine has no user {name}"))?;
        Ok(Self {
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
        })
    }
}

impl Service {
    /// Makes a service that runs as root.
    pub fn new(name: &'static str, program: String, arguments: Vec<String>) -> Self {
        Self {
            name,
            program,
            arguments,
            user: None,
        }
    }

    /// Starts the service for as long as this process lives.
    pub fn keep_running(self) {
        thread::spawn(move || {
            let mut condition = Condition::default();
            loop {
                let life = Timeline::start();
                let end = self.run_once(&condition);
                let life = life.elapsed();
                let reason =
                    end.map_or_else(|error| format!("{error:#}"), |status| status.to_string());
                eprintln!("{} ended: {reason}", self.name);
                condition.ended(reason, life);
                thread::sleep(PAUSE);
            }
        });
    }

    fn run_once(&self, condition: &Condition) -> Result<ExitStatus> {
        let record = inside(&format!("services/{}.json", self.name));
        fs::write(&record, serde_json::to_vec(condition)?)
            .with_context(|| format!("cannot write {record}"))?;
        let log = inside(&format!("logs/{}.log", self.name));
        let log = File::options()
            .append(true)
            .create(true)
            .open(&log)
            .with_context(|| format!("cannot open {log}"))?;
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .current_dir("/");
        if let Some(user) = self.user {
            command.uid(user.uid).gid(user.gid);
        }
        command
            .status()
            .with_context(|| format!("cannot start {}", self.program))
    }
}

/// Returns the services' names and conditions, from outside the cluster.
pub fn conditions(cluster: &Cluster) -> Result<Vec<(String, Condition)>> {
    let folder = cluster.file("services");
    let mut conditions = Vec::new();
    for entry in
        fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let path = entry?.path();
        // A record that is being written at this moment is read the next time.
        if let Ok(condition) = serde_json::from_slice(&fs::read(&path)?) {
            conditions.push((name_of(&path), condition));
        }
    }
    conditions.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(conditions)
}

/// Fails with the log of a service which ends again and again.
pub fn check(cluster: &Cluster) -> Result<()> {
    for (name, condition) in conditions(cluster)? {
        if condition.is_broken() {
            let log = cluster.log(&name);
            bail!(
                "{name} ends again and again ({}); the end of {}:\n{}",
                condition.last_end.unwrap_or_default(),
                log.display(),
                end_of_log(&log)
            );
        }
    }
    Ok(())
}

fn name_of(path: &Path) -> String {
    path.file_stem()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(lives: impl IntoIterator<Item = u64>) -> Condition {
        let mut condition = Condition::default();
        for life in lives {
            condition.ended("exit status: 1".to_owned(), Duration::from_secs(life));
        }
        condition
    }

    #[test]
    fn a_program_that_only_fails_at_once_is_broken_after_a_minute() {
        assert!(!after([0; 59]).is_broken());
        let broken = after([0; 60]);
        assert!(broken.is_broken());
        assert_eq!(broken.restarts, 60);
        assert_eq!(broken.last_end.as_deref(), Some("exit status: 1"));
        // Slow failures are fewer.
        assert!(after([3; 15]).is_broken());
    }

    #[test]
    fn ends_of_a_program_that_has_lived_are_not_counted() {
        assert!(!after([5; 1000]).is_broken());
        assert!(!after([0; 50].into_iter().chain([600]).chain([0; 50])).is_broken());
    }
}
