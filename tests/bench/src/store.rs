//! Redis as the product has it: one user for the operator and one for the gates of each instance, with the
//! product's rights, and key directories that were written the way the operator writes them.

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use water_harness::Redis;
use water_keystore::connection::Purpose;
use water_keystore::{ConnectionSettings, Contents, Directory, Instance, Writer, redis_acl};

/// Password of all users: nothing but loopback reaches Redis, and it lives for minutes.
pub const PASSWORD: &str = "bench";

/// Running Redis.
pub struct Store {
    /// Server with the users.
    pub redis: Redis,
}

impl Store {
    /// Starts a server with users for these instances.
    pub async fn start(instances: &[&Instance]) -> Result<Self> {
        let hash = hex::encode(Sha256::digest(PASSWORD)).parse()?;
        let lines = instances.iter().flat_map(|instance| {
            let (operator, gate) = (user(instance, "operator"), user(instance, "gate"));
            redis_acl(instance, (&operator, &hash), (&gate, &hash), None)
        });
        let lines: Vec<String> = lines.collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let redis = Redis::start_with(&lines).await?;
        Ok(Self { redis })
    }

    /// Claims the instance's directory and fills it. The writer may change it.
    pub async fn publish(&self, instance: &Instance, contents: Contents) -> Result<Writer> {
        let directory = self.directory(instance)?;
        let (writer, _) = directory.claim("bench", "bench", None).await?;
        writer.rebuild(|| contents).await?;
        Ok(writer)
    }

    /// Directory of the instance as the operator reads it.
    pub fn directory(&self, instance: &Instance) -> Result<Directory> {
        let operator = ConnectionSettings::new(&self.url(instance, "operator"), None)?;
        let connection = operator.connect(Purpose::Directory);
        Ok(Directory::new(connection, instance.clone()))
    }

    /// URL of the instance's `operator` or `gate`.
    pub fn url(&self, instance: &Instance, role: &str) -> String {
        self.redis.url_as(&user(instance, role), PASSWORD)
    }

    /// Number of runs of a command so far, those from scripts too.
    pub async fn calls(&self, command: &str) -> Result<u64> {
        let statistics = self.redis.command(&["INFO", "commandstats"]).await?;
        let prefix = format!("cmdstat_{command}:calls=");
        let mut lines = statistics.lines();
        // A command that never ran has no line.
        let Some(line) = lines.find_map(|line| line.strip_prefix(&prefix)) else {
            return Ok(0);
        };
        let (calls, _) = line.split_once(',').context("a line of statistics")?;
        Ok(calls.parse()?)
    }
}

/// Name of the instance's user of this role.
pub fn user(instance: &Instance, role: &str) -> String {
    format!("{role}-of-{instance}")
}
