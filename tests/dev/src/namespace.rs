//! The private set of namespaces in which a cluster lives, joined to the machine by one link.
//!
//! Nothing is written down about it: the namespaces' process 1 is found by its arguments, so that a
//! run that was interrupted at any moment leaves nothing that a later one could not find.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::cluster::{Cluster, HOST_ADDRESS, NAME, NODE_ADDRESS, POD_NETWORK, SERVICE_NETWORK};
use crate::process::{end_of_log, run};
use crate::wait;

/// Milliseconds, unless the machine is busy.
const SOON: Duration = Duration::from_secs(120);

/// File of a control group's CPU weight in versions 1 and 2, and ten times the kernel's default, which is what one
/// thread has: a node has its machine for itself.
const WEIGHTS: [(&str, &str); 2] = [("cpu.shares", "10240"), ("cpu.weight", "1000")];

/// The process that writes it, in a control group's list of processes.
const OWN_PROCESS: &str = "0";

/// Life of the cluster, compared with that of the command that started it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Life until `down`.
    UntilDown,
    /// Life at most as long as the command's: a test run that is killed takes its cluster along.
    WithThisProcess,
}

/// Makes the namespaces with their process 1 and their link, where they do not exist yet.
pub fn start(cluster: &Cluster, lifetime: Lifetime) -> Result<()> {
    make_cgroups()?;
    let init = match init_process(cluster)? {
        Some(init) => init,
        None => spawn(cluster, lifetime)?,
    };
    if !link_exists() {
        ip(&format!(
            "link add {NAME} type veth peer name eth0 netns {init}"
        ))?;
    }
    ip(&format!("address replace {HOST_ADDRESS}/30 dev {NAME}"))?;
    ip(&format!("link set {NAME} up"))?;
    for network in [POD_NETWORK, SERVICE_NETWORK] {
        ip(&format!(
            "route replace {network} via {NODE_ADDRESS} dev {NAME}"
        ))?;
    }
    Ok(())
}

/// Ends everything in the namespaces and removes what the kernel does not remove by itself.
pub fn stop(cluster: &Cluster) -> Result<()> {
    end(cluster)?;
    // The link goes with its namespace, a moment later, unless something else holds that.
    if link_exists() {
        ip(&format!("link delete {NAME}")).ok();
    }
    wait::until(SOON, "the cluster's link is gone", || {
        Ok((!link_exists()).then_some(()))
    })?;
    wait::until(SOON, "the cluster's control groups are gone", || {
        let mut groups = cgroups()?.into_iter().filter(|group| group.exists());
        Ok(groups.all(|group| remove_cgroup(&group)).then_some(()))
    })
}

/// Ends process 1 of the namespaces, which takes everything in them along.
pub fn end(cluster: &Cluster) -> Result<()> {
    let ended = processes(cluster)?;
    for process in &ended {
        match kill(*process, Signal::SIGKILL) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot end process {process}"));
            }
        }
    }
    // A child of this very process (a test run's) is gone only when it has been waited for; what other threads have
    // started they wait for themselves.
    let has_ended = |process: &Pid| {
        let status = waitpid(*process, Some(WaitPidFlag::WNOHANG));
        !matches!(status, Ok(WaitStatus::StillAlive))
    };
    wait::until(SOON, "the cluster's processes are gone", || {
        let are_gone = ended.iter().all(has_ended) && processes(cluster)?.is_empty();
        Ok(are_gone.then_some(()))
    })
}

/// Returns process 1 of the cluster's namespaces, as the machine numbers it.
pub fn init_process(cluster: &Cluster) -> Result<Option<Pid>> {
    let of_cluster = |pid, words: &[&[u8]]| is_init(words, cluster).then_some(pid);
    Ok(find_processes(of_cluster)?.first().copied())
}

/// Returns the clusters that run, of any user.
pub fn running() -> Result<Vec<Cluster>> {
    find_processes(|_, words| cluster_of_init(words))
}

/// Whether the machine has a cluster's network link.
pub fn link_exists() -> bool {
    Path::new("/sys/class/net").join(NAME).exists()
}

/// Returns a command that runs inside the namespaces.
pub fn enter(cluster: &Cluster) -> Result<Command> {
    let init = init_process(cluster)?.context("the cluster is not running")?;
    let mut command = Command::new("nsenter");
    command.args("--mount --net --pid --uts --ipc --wd=/ --target".split(' '));
    command.arg(init.to_string());
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
        .args("unshare --mount --net --pid --uts --ipc --fork --kill-child".split(' '))
        .args(["--propagation", "private", "--mount-proc"])
        .arg(own_program)
        .args(["init", "--folder"])
        .arg(&cluster.folder)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    let mut child = command.spawn().context("cannot start `setsid unshare`")?;
    wait::until(SOON, "process 1 of the cluster runs", || {
        if let Some(status) = child.try_wait().context("cannot look at `unshare`")? {
            let log = end_of_log(&cluster.log("init"));
            bail!("`unshare` ended with {status}; making namespaces needs root's rights:\n{log}");
        }
        init_process(cluster)
    })
}

/// Whether a process has the same root of all files as this one.
fn shares_files(pid: i32) -> bool {
    let root = |path: String| fs::metadata(path).map(|root| (root.dev(), root.ino())).ok();
    root(format!("/proc/{pid}/root/")) == root("/".to_owned())
}

fn is_init(words: &[&[u8]], cluster: &Cluster) -> bool {
    cluster_of_init(words).is_some_and(|found| found.folder == cluster.folder)
}

/// Returns the cluster whose process 1 has these words as its command line.
fn cluster_of_init(words: &[&[u8]]) -> Option<Cluster> {
    let program = Path::new(OsStr::from_bytes(words.first()?));
    let is_init = program.ends_with("water-dev") && words.get(1) == Some(&b"init".as_slice());
    let named = words.windows(2).find(|pair| pair[0] == b"--folder")?;
    is_init.then(|| Cluster {
        folder: OsStr::from_bytes(named[1]).into(),
    })
}

/// Returns process 1, and the `unshare` that waits for it.
fn processes(cluster: &Cluster) -> Result<Vec<Pid>> {
    let folder = cluster.folder.as_os_str().as_encoded_bytes();
    find_processes(|pid, words: &[&[u8]]| {
        let is_named = words.windows(2).any(|pair| pair == [b"--folder", folder]);
        is_named.then_some(pid)
    })
}

/// Returns what `wanted` makes of the machine's processes and the words of their command lines. Those of containers,
/// which have folders of their own, are left out.
fn find_processes<T>(wanted: impl Fn(Pid, &[&[u8]]) -> Option<T>) -> Result<Vec<T>> {
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
        // A process may end while it is read.
        let Ok(command_line) = fs::read(entry.path().join("cmdline")) else {
            continue;
        };
        let words: Vec<_> = command_line.split(|byte| *byte == 0).collect();
        found.extend(wanted(Pid::from_raw(pid), &words).filter(|_| shares_files(pid)));
    }
    Ok(found)
}

/// Makes the groups below which all pods will be, and the node's services.
fn make_cgroups() -> Result<()> {
    let root = Path::new("/sys/fs/cgroup");
    if root.join("cgroup.controllers").exists() {
        // The kubelet needs these controllers below the group; those that the machine lacks are left out.
        for controller in ["+cpu", "+cpuset", "+memory", "+pids", "+io", "+hugetlb"] {
            fs::write(root.join("cgroup.subtree_control"), controller).ok();
        }
    }
    for group in cgroups()? {
        if !group.exists() {
            fs::create_dir(&group)
                .with_context(|| format!("cannot make the control group {}", group.display()))?;
        }
        give_weight(&group)?;
    }
    Ok(())
}

/// Moves this process, with all that it will start, below the cluster's group, as a neighbour of the pods'. On a real
/// node, too, pods that compute do not keep its services from a core: an address that is late in kube-proxy, or a
/// packet that waits for the policy engine, costs requests.
pub fn join_cgroup() -> Result<()> {
    let is_weighed = |group: &PathBuf| WEIGHTS.iter().any(|(name, _)| group.join(name).exists());
    for group in cgroups()?.into_iter().filter(is_weighed) {
        let group = group.join("node");
        fs::create_dir_all(&group)
            .and_then(|()| fs::write(group.join("cgroup.procs"), OWN_PROCESS))
            .with_context(|| format!("cannot join the control group {}", group.display()))?;
    }
    Ok(())
}

/// Sets the CPU weight of a control group, where its hierarchy has one.
fn give_weight(group: &Path) -> Result<()> {
    for (name, weight) in WEIGHTS {
        let file = group.join(name);
        if file.exists() {
            fs::write(&file, weight).with_context(|| format!("cannot write {}", file.display()))?;
        }
    }
    Ok(())
}

/// Returns a control group in each hierarchy (version 1) or in the only one (version 2), made or not.
pub fn cgroups() -> Result<Vec<PathBuf>> {
    let root = Path::new("/sys/fs/cgroup");
    if root.join("cgroup.procs").exists() {
        return Ok(vec![root.join(NAME)]);
    }
    let hierarchies = folders(root).context("cannot read /sys/fs/cgroup")?;
    let hierarchies = hierarchies.filter(|path| path.join("cgroup.procs").exists());
    Ok(hierarchies.map(|path| path.join(NAME)).collect())
}

/// Returns the folders in a folder, without links: in /sys/fs/cgroup one such as `cpu` is another name of a
/// hierarchy.
fn folders(folder: &Path) -> io::Result<impl Iterator<Item = PathBuf>> {
    let entries = fs::read_dir(folder)?.filter_map(Result::ok);
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    Ok(folders.map(|entry| entry.path()))
}

/// Removes a control group from its leaves up; false while a process in it is still ending.
fn remove_cgroup(folder: &Path) -> bool {
    let Ok(mut children) = folders(folder) else {
        return !folder.exists();
    };
    children.all(|child| remove_cgroup(&child)) && fs::remove_dir(folder).is_ok()
}

/// Runs `ip` with these words.
pub fn ip(arguments: &str) -> Result<()> {
    run(Command::new("ip").args(arguments.split(' '))).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_known_by_the_command_line_of_its_process_1() {
        let folder = |line: &str| {
            let words: Vec<_> = line.split(' ').map(str::as_bytes).collect();
            cluster_of_init(&words).map(|cluster| cluster.folder)
        };
        let found = folder("/target/water-dev init --folder /state/test");
        assert_eq!(found.unwrap(), Path::new("/state/test"));
        for other in [
            "unshare --fork /target/water-dev init --folder /state/test",
            "/usr/bin/another init --folder /state/test",
            "/target/water-dev init",
            "/target/water-dev init --folder",
            "git init /state/test",
        ] {
            assert_eq!(folder(other), None, "{other}");
        }
    }

    #[test]
    fn a_group_gets_its_weight_in_the_hierarchies_that_have_one() {
        for (name, weight) in WEIGHTS {
            let group = tempfile::tempdir().unwrap();
            fs::write(group.path().join(name), "").unwrap();
            give_weight(group.path()).unwrap();
            assert_eq!(fs::read_to_string(group.path().join(name)).unwrap(), weight);
            assert_eq!(fs::read_dir(group.path()).unwrap().count(), 1);
        }
    }
}
