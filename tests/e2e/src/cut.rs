//! A pod that cannot reach one server any more: its packets there vanish, as they do where a cable is
//! cut. Only the pod's own network namespace is touched.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{Cluster, Pod, text_of};

/// The table that drops the packets, in the pod's namespace.
const TABLE: &str = "cut";

/// The cut, until it is healed or dropped.
#[derive(Debug)]
pub struct Cut {
    /// A process in the pod's network namespace.
    process: i32,
}

impl Cluster {
    /// Returns the address of Redis.
    pub fn redis_address(&self) -> Result<SocketAddr> {
        let url = &self.environment.redis_administrator_url;
        let (_, address) = url.rsplit_once('@').context("a URL with a password")?;
        let address = address.trim_end_matches('/');
        address.parse().context("the address of Redis")
    }
}

impl Pod {
    /// Drops every packet from this pod to `server`; open connections stay as they are.
    pub fn cut_from(&self, server: SocketAddr) -> Result<Cut> {
        let cut = Cut {
            process: self.process()?.as_raw(),
        };
        cut.nft(&format!(
            "add table ip {TABLE}; \
             add chain ip {TABLE} output {{ type filter hook output priority 0; }}; \
             add rule ip {TABLE} output ip daddr {} tcp dport {} drop",
            server.ip(),
            server.port()
        ))?;
        Ok(cut)
    }
}

impl Cut {
    /// Lets the packets pass again.
    pub fn heal(&self) -> Result<()> {
        self.nft(&format!("delete table ip {TABLE}"))
    }

    fn nft(&self, rules: &str) -> Result<()> {
        let process = self.process.to_string();
        let output = Command::new("nsenter")
            .args(["--target", &process, "--net", "nft", rules])
            .output()
            .context("start nsenter")?;
        text_of(&output).map(drop)
    }
}

impl Drop for Cut {
    /// The pod outlives the test: whatever came of it, the next one finds a pod that reaches the server.
    fn drop(&mut self) {
        // Healed already, or the pod is gone.
        let _ = self.heal();
    }
}
