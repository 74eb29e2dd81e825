//! The private set of namespaces in which a cluster lives, joined to the machine by one link.
//!
//! Nothing is written down about it: the namespaces' process 1 is found by its arguments, so that a
//! run that was interrupted at any moment leaves nothing that a later one could not find.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::cluster::Cluster;
use crate::process::{end_of_log, run};
use crate::wait;

/// The file of a control group's CPU weight in versions 1 and 2, and ten times the kernel's default, which is what one
/// thread has: a node has its machine for itself.
const WEIGHTS: [(&str, &str); 2] = [("cpu.shares", "10240"), ("cpu.weight", "1000")];

/// Whether the cluster outlives the command that started it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Until `down`.
    UntilDown,
    /// At most as long as the command: a test run that is killed takes its cluster along.
    WithThisProcess,
}

/// Makes the namespaces with their process 1 and their link, as far as they are not there yet.
pub fn start(cluster: &Cluster, lifetime: Lifetime) -> Result<()> {
    make_cgroups(cluster)?;
    let init = match init_process(cluster)? {
        Some(init) => init,
        None => spawn(cluster, lifetime)?,
    };
    if !link_exists(cluster) {
        let (link, init) = (cluster.link(), init.to_string());
        ip(&[
            "link", "add", &link, "type", "veth", "peer", "name", "eth0", "netns", &init,
        ])?;
    }
    ip(&[
        "address",
        "replace",
        &format!("{}/30", cluster.host_address()),
        "dev",
        &cluster.link(),
    ])?;
    ip(&["link", "set", &cluster.link(), "up"])?;
    for network in [cluster.pod_network(), cluster.service_network()] {
        ip(&[
            "route",
            "replace",
            &network,
            "via",
            &cluster.node_address(),
            "dev",
            &cluster.link(),
        ])?;
    }
    Ok(())
}

/// Ends everything in the namespaces and removes what the kernel does not remove by itself.
pub fn stop(cluster: &Cluster) -> Result<()> {
    for process in processes(cluster)? {
        match kill(process, Signal::SIGKILL) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot end process {process}"));
            }
        }
    }
    wait::until(
        Duration::from_secs(120),
        "the cluster's processes are gone",
        || {
            // A child of this very process (a test run's) is gone only when it has been waited for.
            while let Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) =
                waitpid(None, Some(WaitPidFlag::WNOHANG))
            {}
            Ok(processes(cluster)?.is_empty().then_some(()))
        },
    )?;
    // The link goes with its namespace, a moment later; asking for it only makes that moment shorter.
    ip(&["link", "delete", &cluster.link()]).ok();
    wait::until(
        Duration::from_secs(120),
        "the cluster's link is gone",
        || Ok((!link_exists(cluster)).then_some(())),
    )?;
    wait::until(
        Duration::from_secs(120),
        "the cluster's control groups are gone",
        || {
            Ok(cgroups(cluster)?
                .iter()
                .all(|folder| remove_cgroup(folder))
                .then_some(()))
        },
    )
}

/// Process 1 of the cluster's namespaces, as the machine numbers it.
pub fn init_process(cluster: &Cluster) -> Result<Option<Pid>> {
    Ok(find_processes(|words| is_init(words, cluster))?
        .first()
        .copied())
}

/// Whether the machine has the cluster's network link.
pub fn link_exists(cluster: &Cluster) -> bool {
    Path::new("/sys/class/net").join(cluster.link()).exists()
}

/// A command that runs inside the namespaces.
pub fn enter(cluster: &Cluster) -> Result<Command> {
    let init = init_process(cluster)?.context("the cluster is not running")?;
    let mut command = Command::new("nsenter");
    command.args([
        "--target",
        &init.to_string(),
        "--mount",
        "--net",
        "--pid",
        "--uts",
        "--ipc",
        "--wd=/",
    ]);
    Ok(command)
}

fn spawn(cluster: &Cluster, lifetime: Lifetime) -> Result<Pid> {
    fs::create_dir_all(cluster.file("logs")).context("cannot make the folder of logs")?;
    let services = cluster.file("services");
    if services.exists() {
        fs::remove_dir_all(&services).context("cannot remove the records of an earlier run")?;
    }
    fs::create_dir(&services).context("cannot make the folder of services")?;
    let log = fs::File::create(cluster.log("init")).context("cannot make the log of process 1")?;
    let own_program = std::env::current_exe().context("cannot find this program's file")?;
    let mut command = Command::new("setsid");
    if lifetime == Lifetime::WithThisProcess {
        command.args(["setpriv", "--pdeathsig", "KILL"]);
    }
    command
        .args([
            "unshare",
            "--mount",
            "--net",
            "--pid",
            "--uts",
            "--ipc",
            "--fork",
            "--kill-child",
        ])
        .args(["--propagation", "private", "--mount-proc"])
        .arg(own_program)
        .args(["init", "--number", &cluster.number.to_string(), "--folder"])
        .arg(&cluster.folder)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    let mut child = command.spawn().context("cannot start `setsid unshare`")?;
    wait::until(
        Duration::from_secs(120),
        "process 1 of the cluster runs",
        || {
            if let Some(status) = child.try_wait().context("cannot look at `unshare`")? {
                let log = end_of_log(&cluster.log("init"));
                anyhow::bail!(
                    "`unshare` ended with {status}; making namespaces needs root's rights:\n{log}"
                );
            }
            init_process(cluster)
        },
    )
}

fn is_init(words: &[&[u8]], cluster: &Cluster) -> bool {
    let folder = cluster.folder.as_os_str().as_encoded_bytes();
    words.get(1) == Some(&b"init".as_slice())
        && words.windows(2).any(|pair| pair == [b"--folder", folder])
}

/// Process 1, and the `unshare` that waits for it.
fn processes(cluster: &Cluster) -> Result<Vec<Pid>> {
    let folder = cluster.folder.as_os_str().as_encoded_bytes();
    find_processes(|words| words.windows(2).any(|pair| pair == [b"--folder", folder]))
}

/// The processes whose command line, as words, satisfies `wanted`.
fn find_processes(wanted: impl Fn(&[&[u8]]) -> bool) -> Result<Vec<Pid>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("cannot read /proc")? {
        let entry = entry?;
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        // A process may end while it is looked at.
        let Ok(command_line) = fs::read(entry.path().join("cmdline")) else {
            continue;
        };
        let words: Vec<_> = command_line.split(|byte| *byte == 0).collect();
        if wanted(&words) {
            found.push(Pid::from_raw(pid));
        }
    }
    Ok(found)
}

/// One control group in each hierarchy (version 1) or in the only one (version 2), below which all
/// pods will be.
fn make_cgroups(cluster: &Cluster) -> Result<()> {
    let root = Path::new("/sys/fs/cgroup");
    if root.join("cgroup.controllers").exists() {
        // The kubelet needs these controllers below the group; those that the machine lacks are left out.
        for controller in ["+cpu", "+cpuset", "+memory", "+pids", "+io", "+hugetlb"] {
            fs::write(root.join("cgroup.subtree_control"), controller).ok();
        }
    }
    for hierarchy in hierarchies()? {
        let folder = hierarchy.join(cluster.cgroup());
        if !folder.exists() {
            fs::create_dir(&folder)
                .with_context(|| format!("cannot make the control group {}", folder.display()))?;
        }
        give_weight(&folder)?;
    }
    Ok(())
}

/// Sets the CPU weight of a control group, where its hierarchy has one.
fn give_weight(folder: &Path) -> Result<()> {
    for (name, weight) in WEIGHTS {
        let file = folder.join(name);
        if file.exists() {
            fs::write(&file, weight).with_context(|| format!("cannot write {}", file.display()))?;
        }
    }
    Ok(())
}

fn hierarchies() -> Result<Vec<PathBuf>> {
    let root = Path::new("/sys/fs/cgroup");
    if root.join("cgroup.procs").exists() {
        return Ok(vec![root.to_owned()]);
    }
    let entries = fs::read_dir(root).context("cannot read /sys/fs/cgroup")?;
    // A link such as `cpu` stands for a hierarchy that is there under its full name.
    let folders = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    Ok(folders
        .map(|entry| entry.path())
        .filter(|path| path.join("cgroup.procs").exists())
        .collect())
}

fn cgroups(cluster: &Cluster) -> Result<Vec<PathBuf>> {
    let folders = hierarchies()?
        .into_iter()
        .map(|hierarchy| hierarchy.join(cluster.cgroup()));
    Ok(folders.filter(|folder| folder.exists()).collect())
}

/// Removes a control group from its leaves up; false while a process in it is still ending.
fn remove_cgroup(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else {
        return !folder.exists();
    };
    let folders = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders
        .map(|entry| entry.path())
        .all(|child| remove_cgroup(&child))
        && fs::remove_dir(folder).is_ok()
}

fn ip(arguments: &[&str]) -> Result<()> {
    run(Command::new("ip").args(arguments)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_gets_its_weight_in_the_hierarchies_that_have_one() {
        for (name, weight) in WEIGHTS {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(name), "").unwrap();
            give_weight(folder.path()).unwrap();
            assert_eq!(
                fs::read_to_string(folder.path().join(name)).unwrap(),
                weight
            );
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}
