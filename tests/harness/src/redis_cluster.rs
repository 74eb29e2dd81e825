//! A Redis Cluster of three masters, as three local processes.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::{Port, Redis, wait_until};

const START: Duration = Duration::from_secs(20);
/// All 16 384 hash slots, a third for each master.
const SLOTS: [(&str, &str); 3] = [("0", "5460"), ("5461", "10922"), ("10923", "16383")];

/// A running cluster without replicas: each slot is on one master only.
pub struct RedisCluster {
    masters: Vec<Redis>,
    _bus: Vec<Port>,
}

impl RedisCluster {
    /// A cluster of the test's own.
    pub async fn start() -> Result<Self> {
        let (mut masters, mut bus) = (Vec::new(), Vec::new());
        for (first, last) in SLOTS {
            let port = Port::reserve()?;
            let bus_port = format!("cluster-port {}", port.number());
            let lines = [
                "cluster-enabled yes",
                "cluster-node-timeout 1000",
                &bus_port,
            ];
            let master = Redis::start_with(&lines).await?;
            master
                .command(&["CLUSTER", "ADDSLOTSRANGE", first, last])
                .await?;
            masters.push(master);
            bus.push(port);
        }
        let cluster = Self { masters, _bus: bus };
        cluster.meet().await?;
        cluster.ready().await?;
        Ok(cluster)
    }

    /// The masters, in the order of their slots.
    pub fn masters(&self) -> &[Redis] {
        &self.masters
    }

    /// The URL of an ACL user, by way of the first master.
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

    /// Waits until every master serves all slots.
    pub async fn ready(&self) -> Result<()> {
        let whole = async || {
            for master in &self.masters {
                let info = master.command(&["CLUSTER", "INFO"]).await?;
                let whole =
                    info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3");
                ensure!(whole, "{info}");
            }
            Ok(())
        };
        wait_until("the cluster to be whole", START, whole).await
    }

    async fn meet(&self) -> Result<()> {
        for (master, bus) in self.masters.iter().zip(&self._bus).skip(1) {
            let port = master.port().to_string();
            let bus = bus.number().to_string();
            let meet = ["CLUSTER", "MEET", "127.0.0.1", &port, &bus];
            self.masters[0].command(&meet).await?;
        }
        Ok(())
    }
}
