//! The product's pods: found, deleted, and killed from outside as a machine's
//! out-of-memory killer would.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, SysconfVar, sysconf},
};
use serde_json::Value;
use water_harness::HttpClient;

use crate::{Cluster, RELEASE, Water};

/// A part of the product that runs as a Deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// `water-data-gate`
    Gate,
    /// `water-data-departements`
    Departements,
    /// `water-data-history`
    History,
    /// `water-data-operator`
    Operator,
    /// `water-data-portal`
    Portal,
}

/// A pod, as it was when it was looked up.
#[derive(Clone, Debug)]
pub struct Pod {
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// Address, as the machine reaches it.
    pub address: String,
    /// Number of restarts of its container.
    pub restarts: u64,
    ready: bool,
}

impl Component {
    /// The components.
    pub const ALL: [Self; 5] = [
        Self::Gate,
        Self::Departements,
        Self::History,
        Self::Operator,
        Self::Portal,
    ];

    /// Returns the value of the label `app.kubernetes.io/component`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::Departements => "departements",
            Self::History => "history",
            Self::Operator => "operator",
            Self::Portal => "portal",
        }
    }

    /// Returns the pods that exist, terminating ones left out.
    pub fn pods(self, cluster: &Cluster) -> Result<Vec<Pod>> {
        let label = format!(
            "app.kubernetes.io/component={},app.kubernetes.io/instance={RELEASE}",
            self.label()
        );
        let list = cluster.kubectl.pods(&label)?;
        let pods = list["items"].as_array().context("a list of pods")?;
        let running = pods
            .iter()
            .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        Ok(running.map(Pod::read).collect())
    }

    /// Waits until exactly `count` pods are there and Ready, none of them in `gone`.
    pub async fn healed(self, cluster: &Cluster, count: usize, gone: &[&Pod]) -> Result<Vec<Pod>> {
        let what = format!("{count} pods of {} to be Ready", self.label());
        cluster
            .wait_for_steps(&what, async || {
                let pods = self.pods(cluster)?;
                let left = pods
                    .iter()
                    .any(|pod| gone.iter().any(|gone| gone.uid == pod.uid));
                let ready = pods.iter().filter(|pod| pod.ready).count();
                let healed = !left && ready == count && pods.len() == count;
                ensure!(healed, "{pods:?}");
                Ok(pods)
            })
            .await
    }
}

impl Pod {
    fn read(pod: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let container = &pod["status"]["containerStatuses"][0];
        Self {
            name: text(&pod["metadata"]["name"]),
            uid: text(&pod["metadata"]["uid"]),
            address: text(&pod["status"]["podIP"]),
            restarts: container["restartCount"].as_u64().unwrap_or_default(),
            ready: container["ready"] == true,
        }
    }

    /// Returns a gate's pod as a client would reach it if there were no other.
    pub fn water(&self) -> Result<Water> {
        Water::at(&format!("http://{}:8080", self.address))
    }

    /// Returns its metrics for Prometheus.
    pub async fn metrics(&self) -> Result<String> {
        let mut admin = HttpClient::connect(format!("{}:9090", self.address)).await?;
        let answer = admin.request("GET", "/metrics", &[]).await?;
        Ok(answer.text()?.to_owned())
    }

    /// Returns the sum of the metric's series whose names and labels begin like this.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        let metrics = self.metrics().await?;
        let lines = metrics.lines().filter(|line| line.starts_with(name));
        Ok(lines
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum())
    }

    /// Returns the number of periods in which its CPU limit has stopped it so far.
    pub fn throttled(&self) -> Result<u64> {
        let file = self.cpu_group()?.join("cpu.stat");
        let statistics =
            fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let count = statistics
            .lines()
            .find_map(|line| line.strip_prefix("nr_throttled "));
        Ok(count.context("no nr_throttled")?.trim().parse()?)
    }

    /// The control group of its node, for the CPU: the one that holds the group of all pods.
    pub fn node_group(&self) -> Result<PathBuf> {
        let group = self.cpu_group()?;
        let of_pods = group.ancestors().find(|group| group.ends_with("kubepods"));
        let of_node = of_pods.and_then(Path::parent);
        Ok(of_node
            .with_context(|| format!("{} is below no kubepods", group.display()))?
            .to_owned())
    }

    /// Its container's control group for the CPU.
    fn cpu_group(&self) -> Result<PathBuf> {
        let groups = fs::read_to_string(format!("/proc/{}/cgroup", self.process()?))?;
        let group = groups.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            let of_cpu = controllers.split(',').any(|is| is == "cpu");
            // The one hierarchy of version 2 names no controllers.
            let root = match (of_cpu, controllers) {
                (true, _) => "/sys/fs/cgroup/cpu",
                (false, "") if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() => {
                    "/sys/fs/cgroup"
                }
                _ => return None,
            };
            Some(PathBuf::from(format!("{root}{path}")))
        });
        group.context("the pod is in no control group of the CPU")
    }

    /// Returns the CPU time that its process has used so far: utime and stime of proc_pid_stat(5).
    pub fn cpu_time(&self) -> Result<Duration> {
        let file = format!("/proc/{}/stat", self.process()?);
        let statistics = fs::read_to_string(&file).with_context(|| format!("read {file}"))?;
        // The second field is the command in parentheses, which may hold spaces.
        let (_, after_command) = statistics.rsplit_once(')').context("no command")?;
        let times = after_command.split_ascii_whitespace().skip(11).take(2);
        let ticks = times.map(str::parse::<u32>).sum::<Result<u32, _>>()?;
        let a_second = sysconf(SysconfVar::CLK_TCK)?.context("the clock has no ticks")?;
        Ok(Duration::from_secs_f64(f64::from(ticks) / a_second as f64))
    }

    /// Kills the pod's process with SIGKILL: it has no time for anything.
    pub fn kill(&self) -> Result<()> {
        let process = self.process()?;
        kill(process, Signal::SIGKILL).with_context(|| format!("kill {process} of {}", self.name))
    }

    /// Returns the name of the pod's process in `ps` and core dumps: at most 15 characters.
    pub fn process_name(&self) -> Result<String> {
        let file = format!("/proc/{}/comm", self.process()?);
        let name = fs::read_to_string(&file).with_context(|| format!("read {file}"))?;
        Ok(name.trim_end().to_owned())
    }

    /// Returns the machine's id of the pod's process, which is in a cgroup that carries the pod's uid.
    pub(crate) fn process(&self) -> Result<Pid> {
        // With the cgroup driver systemd the uid's dashes would be underscores.
        let uids = [self.uid.clone(), self.uid.replace('-', "_")];
        for entry in fs::read_dir("/proc")?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(id) = name.parse::<i32>() else {
                continue;
            };
            // A process may end while it is read.
            let read = |file: &str| fs::read_to_string(entry.path().join(file)).unwrap_or_default();
            let in_pod = uids.iter().any(|uid| read("cgroup").contains(uid.as_str()));
            let is_pause = read("comm").trim() == "pause";
            if in_pod && !is_pause {
                return Ok(Pid::from_raw(id));
            }
        }
        bail!("no process of the pod {} is visible from here", self.name)
    }
}
