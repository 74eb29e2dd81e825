//! Process 1 of the cluster's namespaces, and its one child that keeps the programs running.
//!
//! Process 1 makes the machine look as the cluster needs it, for the cluster only, and then reaps
//! what is orphaned to it. When it is killed, the kernel ends everything that runs here and drops
//! every mount, link and packet rule.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::mount::{MsFlags, mount};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::cluster::{Cluster, FILES, HOST_ADDRESS, NAME, NODE, NODE_ADDRESS, inside};
use crate::namespace::{self, ip};
use crate::{control_plane, identity, node, stores, wait};

/// Milliseconds, unless the machine is busy.
const SOON: Duration = Duration::from_secs(60);

/// Settings of the whole machine that the kubelet writes: it gets private copies.
const WRITTEN_BY_KUBELET: [&str; 5] = [
    "vm/overcommit_memory",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
];

/// Runs as process 1 until the supervising child ends.
pub fn run_as_process_1(cluster: &Cluster) -> Result<()> {
    namespace::join_cgroup()?;
    mount_private_folders(&cluster.folder)?;
    copy_machine_settings()?;
    nix::unistd::sethostname(NODE).context("cannot set the host name")?;
    connect()?;
    // By this path, since the program's own may be hidden by a mount.
    let supervisor = Command::new("/proc/self/exe")
        .arg("supervise")
        .spawn()
        .context("cannot start the supervisor")?;
    reap_until(Pid::from_raw(i32::try_from(supervisor.id())?))
}

/// Starts the programs in their order and keeps them running.
pub fn supervise() -> Result<()> {
    stores::prepare()?;
    let first = [
        stores::services()?,
        vec![identity::service()?],
        control_plane::storage_and_api()?,
        node::images()?,
    ];
    for service in first.into_iter().flatten() {
        service.keep_running();
    }
    control_plane::await_api()?;
    for service in control_plane::controllers()
        .into_iter()
        .chain(node::agents()?)
    {
        service.keep_running();
    }
    loop {
        thread::park();
    }
}

fn reap_until(last: Pid) -> Result<()> {
    loop {
        match waitpid(None, None).context("cannot wait for children")? {
            WaitStatus::Exited(pid, code) if pid == last => {
                bail!("the supervisor ended with exit status {code}")
            }
            WaitStatus::Signaled(pid, signal, _) if pid == last => {
                bail!("the supervisor was ended by {signal}")
            }
            _ => {}
        }
    }
}

fn mount_private_folders(files: &Path) -> Result<()> {
    for folder in [
        "var/lib/kubelet",
        "var/lib/cni",
        "var/log/pods",
        "var/log/containers",
        "var/tmp",
        "var/cache",
    ] {
        make(&files.join(folder))?;
    }
    if files.join("var/run").symlink_metadata().is_err() {
        symlink("/run", files.join("var/run")).context("cannot link /var/run")?;
    }
    mount_memory("/run")?;
    // PostgreSQL's shared memory would stay behind when it is killed.
    mount_memory("/dev/shm")?;
    for folder in ["/run/lock", "/run/netns", FILES] {
        make(Path::new(folder))?;
    }
    bind(files, FILES)?;
    bind(Path::new(&inside("var")), "/var")
}

fn copy_machine_settings() -> Result<()> {
    make(Path::new("/run/settings"))?;
    for setting in WRITTEN_BY_KUBELET {
        let original = format!("/proc/sys/{setting}");
        let copy = format!("/run/settings/{}", setting.replace('/', "."));
        let value = fs::read(&original).with_context(|| format!("cannot read {original}"))?;
        fs::write(&copy, value).with_context(|| format!("cannot write {copy}"))?;
        bind(Path::new(&copy), &original)?;
    }
    Ok(())
}

/// Waits for the link to the machine, which is put here from outside.
fn connect() -> Result<()> {
    ip("link set lo up")?;
    wait::until(SOON, "the link to the machine is there", || {
        Ok(ip("link show eth0").ok())
    })?;
    ip(&format!("address add {NODE_ADDRESS}/30 dev eth0"))?;
    ip("link set eth0 up")?;
    // Without a default route a connection to a Service's address fails before it can be redirected.
    ip(&format!("route add default via {HOST_ADDRESS}"))?;
    fs::write("/proc/sys/net/ipv4/ip_forward", "1").context("cannot turn on forwarding")
}

fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// Mounts a file system in memory, by the cluster's name: so it would be known on the machine, were it seen there.
fn mount_memory(target: &str) -> Result<()> {
    mount(
        Some(NAME),
        target,
        Some("tmpfs"),
        MsFlags::empty(),
        None::<&str>,
    )
    .with_context(|| format!("cannot mount a file system in memory on {target}"))
}

fn bind(source: &Path, target: &str) -> Result<()> {
    mount(
        Some(source),
        target,
        None::<&str>,
        MsFlags::MS_BIND,
        None::<&str>,
    )
    .with_context(|| format!("cannot bind {} to {target}", source.display()))
}
