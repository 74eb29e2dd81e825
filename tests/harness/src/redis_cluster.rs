//! A Redis Cluster of three masters or more, as local processes.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::{Port, Redis, wait_until};

const START: Duration = Duration::from_secs(60);
/// Time after which a silent master counts as lost: longer than a busy machine makes one wait.
const PATIENT: Duration = Duration::from_secs(60);
/// That time where the test takes a master away and waits for the others to notice.
const IMPATIENT: Duration = Duration::from_secs(3);
/// Hash slots, all 16 384, a third for each master.
const SLOTS: [(&str, &str); 3] = [("0", "5460"), ("5461", "10922"), ("10923", "16383")];

/// A running cluster without replicas: each slot is on one master only.
pub struct RedisCluster {
    masters: Vec<Redis>,
    bus: Vec<Port>,
    /// Time after which a silent master counts as lost.
    silence: Duration,
}

impl RedisCluster {
    /// Starts a cluster of the test's own, whose masters do not take each other for lost.
    pub async fn start() -> Result<Self> {
        Self::losing_masters_after(PATIENT).await
    }

    /// Starts a cluster that soon takes a master for lost which is gone, or only late.
    pub async fn start_noticing_losses() -> Result<Self> {
        Self::losing_masters_after(IMPATIENT).await
    }

    async fn losing_masters_after(silence: Duration) -> Result<Self> {
        let mut cluster = Self {
            masters: Vec::new(),
            bus: Vec::new(),
            silence,
        };
        for (first, last) in SLOTS {
            cluster.start_master().await?;
            let master = cluster.newest()?;
            let slots = ["CLUSTER", "ADDSLOTSRANGE", first, last];
            master.command(&slots).await?;
        }
        for number in 1..SLOTS.len() {
            cluster.meet(number).await?;
        }
        cluster.ready().await?;
        Ok(cluster)
    }

    /// Adds a master, which has the users of the others and no slots.
    pub async fn grow(&mut self) -> Result<()> {
        self.start_master().await?;
        let users = self.masters[0].command(&["ACL", "LIST"]).await?;
        for rules in users.lines().filter_map(|line| line.strip_prefix("user ")) {
            let words: Vec<&str> = ["ACL", "SETUSER"]
                .into_iter()
                .chain(rules.split_ascii_whitespace())
                .collect();
            self.newest()?.command(&words).await?;
        }
        self.meet(self.masters.len() - 1).await?;
        self.ready().await
    }

    /// Starts a master that knows no other yet.
    async fn start_master(&mut self) -> Result<()> {
        let bus = Port::reserve()?;
        let timeout = format!("cluster-node-timeout {}", self.silence.as_millis());
        let bus_port = format!("cluster-port {}", bus.number());
        let lines = ["cluster-enabled yes", &timeout, &bus_port];
        let master = Redis::start_with(&lines).await?;
        // Masters that begin with one epoch settle that when they meet, each by a greater one: with that, a master
        // which has not heard yet that its slot has moved would take it back.
        let epoch = (self.masters.len() + 1).to_string();
        let first = ["CLUSTER", "SET-CONFIG-EPOCH", &epoch];
        master.command(&first).await?;
        self.masters.push(master);
        self.bus.push(bus);
        Ok(())
    }

    fn newest(&self) -> Result<&Redis> {
        self.masters.last().context("a cluster has masters")
    }

    /// Returns the masters, in the order of their slots, and then those that were added.
    pub fn masters(&self) -> &[Redis] {
        &self.masters
    }

    /// Returns the URL of an ACL user, by way of the first master.
    pub fn url_as(&self, user: &str, password: &str) -> String {
        let address = self.masters[0].address();
        format!("redis-cluster://{user}:{password}@{address}/")
    }

    /// Runs one command on every master.
    pub async fn command(&self, words: &[&str]) -> Result<()> {
        for master in &self.masters {
            master.command(words).await?;
        }
        Ok(())
    }

    /// Waits until every master serves all slots and knows all others.
    pub async fn ready(&self) -> Result<()> {
        let known = format!("cluster_known_nodes:{}", self.masters.len());
        let whole = async || {
            let mut ids = Vec::new();
            for master in &self.masters {
                ids.push(id(master).await?);
            }
            for master in &self.masters {
                let info = master.command(&["CLUSTER", "INFO"]).await?;
                let whole = info.contains("cluster_state:ok") && info.contains(&known);
                ensure!(whole, "{info}");
                // A master that is only being met counts as known, by a name that it will not keep.
                let nodes = master.command(&["CLUSTER", "NODES"]).await?;
                let met = ids.iter().all(|id| nodes.contains(id));
                ensure!(met, "{nodes}");
            }
            Ok(())
        };
        wait_until("the cluster to be whole", START, whole).await
    }

    /// Begins to move the slot of a key from its master to the next one, as resharding does: the
    /// keys have moved, and clients are still sent to the old master.
    pub async fn begin_move(&self, key: &str) -> Result<Move<'_>> {
        let moving = self.open_move(key).await?;
        moving.carry_all().await?;
        Ok(moving)
    }

    /// Begins to move the slot of a key likewise, to the master that was added last.
    pub async fn begin_move_to_newest(&self, key: &str) -> Result<Move<'_>> {
        let (slot, from) = self.slot(key).await?;
        let (from, to) = (&self.masters[from], self.newest()?);
        let moving = self.open_move_between(slot, from, to).await?;
        moving.carry_all().await?;
        Ok(moving)
    }

    /// Begins to move the slot of a key from its master to the next one, with all keys where they were.
    pub async fn open_move(&self, key: &str) -> Result<Move<'_>> {
        let (slot, from) = self.slot(key).await?;
        let (from, to) = (&self.masters[from], &self.masters[(from + 1) % SLOTS.len()]);
        self.open_move_between(slot, from, to).await
    }

    /// Returns the slot of a key, and the number of the master that had it first.
    async fn slot(&self, key: &str) -> Result<(String, usize)> {
        let slot = self.masters[0]
            .command(&["CLUSTER", "KEYSLOT", key])
            .await?;
        let slot = slot.trim_start_matches(':').trim_end().to_owned();
        let number: u16 = slot.parse()?;
        // Each has as many slots as the others, but for one.
        Ok((slot, usize::from(number.saturating_sub(1) / 5461)))
    }

    async fn open_move_between<'a>(
        &'a self,
        slot: String,
        from: &'a Redis,
        to: &'a Redis,
    ) -> Result<Move<'a>> {
        let change = ["CLUSTER", "SETSLOT", &slot];
        to.command(&[&change[..], &["IMPORTING", &id(from).await?]].concat())
            .await?;
        from.command(&[&change[..], &["MIGRATING", &id(to).await?]].concat())
            .await?;
        let others = self
            .masters
            .iter()
            .filter(|master| master.port() != to.port());
        Ok(Move {
            slot,
            from,
            to,
            told: std::iter::once(to).chain(others).collect(),
        })
    }

    /// Makes a master known to the first one, and so to all.
    async fn meet(&self, number: usize) -> Result<()> {
        let port = self.masters[number].port().to_string();
        let bus = self.bus[number].number().to_string();
        let meet = ["CLUSTER", "MEET", "127.0.0.1", &port, &bus];
        self.masters[0].command(&meet).await?;
        Ok(())
    }
}

/// A slot between two masters.
pub struct Move<'a> {
    slot: String,
    from: &'a Redis,
    to: &'a Redis,
    /// Masters, the new one first.
    told: Vec<&'a Redis>,
}

impl Move<'_> {
    /// Takes these keys to the new master.
    pub async fn carry(&self, keys: &[&str]) -> Result<()> {
        let (port, time) = (self.to.port().to_string(), START.as_millis().to_string());
        let migrate = ["MIGRATE", "127.0.0.1", &port, "", "0", &time, "KEYS"];
        self.from.command(&[&migrate[..], keys].concat()).await?;
        Ok(())
    }

    /// Takes the keys that are left to the new master.
    pub async fn carry_all(&self) -> Result<()> {
        loop {
            let list = ["CLUSTER", "GETKEYSINSLOT", &self.slot, "1000"];
            let keys = self.from.command(&list).await?;
            let keys: Vec<&str> = keys
                .lines()
                .filter(|line| !line.starts_with(['*', '$']))
                .collect();
            if keys.is_empty() {
                return Ok(());
            }
            self.carry(&keys).await?;
        }
    }

    /// Announces to all masters where the slot is.
    pub async fn finish(self) -> Result<()> {
        let new = id(self.to).await?;
        for master in self.told {
            let change = ["CLUSTER", "SETSLOT", &self.slot, "NODE", &new];
            master.command(&change).await?;
        }
        Ok(())
    }
}

/// Returns a master's name in the cluster.
async fn id(master: &Redis) -> Result<String> {
    let reply = master.command(&["CLUSTER", "MYID"]).await?;
    let id = reply.lines().nth(1).context("a node tells its id")?;
    Ok(id.to_owned())
}
