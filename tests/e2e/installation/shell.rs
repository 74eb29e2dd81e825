//! A shell as an administrator has it: the cluster's client programs and the product's own on its path.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use water_e2e::{Cluster, text_of};
use water_harness::{programs, programs::Program, scratch_directory};

/// Words before those of a shell. Its commands block their thread, so that no deadline of a wait would end them: Helm
/// itself waits for five minutes. In a process namespace of their own all of them end with the test program, and none
/// goes on to install something in the cluster of a later run.
const LAUNCHER: [&str; 9] = [
    "setpriv",
    "--pdeathsig",
    "KILL",
    "unshare",
    "--pid",
    "--fork",
    "--kill-child",
    "timeout",
    "15m",
];

/// Search path, kubeconfig and home of every command.
pub struct Shell {
    path: OsString,
    kubeconfig: PathBuf,
    home: PathBuf,
}

impl Shell {
    /// Makes a shell with the rights of the cluster's administrator.
    pub fn new(cluster: &Cluster) -> Result<Self> {
        let kubectl = programs::named(&Program::Node.path()?, "kubectl");
        let folder_of = |program: &Path| {
            let folder = program.parent().map(Path::to_owned);
            folder.with_context(|| format!("{} is in no folder", program.display()))
        };
        let mut folders = vec![
            folder_of(&kubectl)?,
            folder_of(&Program::Helm.path()?)?,
            cluster.environment.binaries.clone(),
        ];
        folders.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        Ok(Self {
            path: env::join_paths(folders)?,
            kubeconfig: cluster.environment.kubeconfig.clone(),
            home: scratch_directory("home")?,
        })
    }

    /// Runs the commands in `folder` up to the first that fails, and returns what they printed.
    pub fn run(
        &self,
        commands: &str,
        folder: &Path,
        variables: &[(&str, String)],
    ) -> Result<String> {
        let mut bash = Command::new(LAUNCHER[0]);
        bash.args(&LAUNCHER[1..])
            .args(["bash", "-euo", "pipefail", "-c", commands])
            .current_dir(folder)
            .env("PATH", &self.path)
            .env("KUBECONFIG", &self.kubeconfig)
            // The clients' caches go with the test.
            .env("HOME", &self.home)
            .envs(variables.iter().map(|(name, value)| (name, value)));
        let output = bash.output().context("start setpriv")?;
        text_of(&output).with_context(|| format!("these commands failed:\n{commands}"))
    }
}
