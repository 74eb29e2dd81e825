//! A Redis as the product has it: one user for the operator and one for the gates of each
//! instance, with the rights that the product gives them, and key directories that were written
//! the way the operator writes them.

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use water_harness::Redis;
use water_keystore::connection::Purpose;
use water_keystore::{ConnectionSettings, Contents, Directory, Instance, Writer, redis_acl};

/// Nothing but loopback reaches it, and it lives for minutes.
const PASSWORD: &str = "bench";

/// A running Redis.
pub struct Store {
    /// The server.
    pub redis: Redis,
}

impl Store {
    /// A server with users for these instances.
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

    /// Claims the instance's directory and fills it. What is returned may change it.
    pub async fn publish(&self, instance: &Instance, contents: Contents) -> Result<Writer> {
        let directory = self.directory(instance)?;
        let (writer, _) = directory.claim("bench", "bench", None).await?;
        writer.rebuild(|| contents).await?;
        Ok(writer)
    }

    /// The instance's directory as the operator sees it.
    pub fn directory(&self, instance: &Instance) -> Result<Directory> {
        let operator = ConnectionSettings::new(&self.operator_url(instance), None)?;
        let connection = operator.connect(Purpose::Directory);
        Ok(Directory::new(connection, instance.clone()))
    }

    /// The URL of the instance's operator.
    pub fn operator_url(&self, instance: &Instance) -> String {
        self.url(instance, "operator")
    }

    /// The URL of the instance's gates.
    pub fn gate_url(&self, instance: &Instance) -> String {
        self.url(instance, "gate")
    }

    /// The name and password of the instance's gates.
    pub fn gate_user(&self, instance: &Instance) -> (String, &'static str) {
        (user(instance, "gate"), PASSWORD)
    }

    /// How often Redis has run a command so far, from scripts too.
    pub async fn calls(&self, command: &str) -> Result<u64> {
        let statistics = self.redis.command(&["INFO", "commandstats"]).await?;
        calls(&statistics, command).with_context(|| format!("read the statistics of {command}"))
    }

    /// The UTC day by its own clock, in days since the epoch.
    pub async fn day(&self) -> Result<u64> {
        let reply = self.redis.command(&["TIME"]).await?;
        let seconds = reply.lines().nth(2).context("Redis tells the seconds")?;
        Ok(seconds.parse::<u64>()? / (24 * 60 * 60))
    }

    fn url(&self, instance: &Instance, role: &str) -> String {
        self.redis.url_as(&user(instance, role), PASSWORD)
    }
}

fn user(instance: &Instance, role: &str) -> String {
    format!("{role}-of-{instance}")
}

/// `None` is a line of another form; a command that never ran has no line.
fn calls(statistics: &str, command: &str) -> Option<u64> {
    let prefix = format!("cmdstat_{command}:calls=");
    let Some(rest) = statistics
        .lines()
        .find_map(|line| line.strip_prefix(&prefix))
    else {
        return Some(0);
    };
    rest.split(',').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_from_the_commands_own_line() {
        let statistics = "# Commandstats\r\n\
            cmdstat_llen:calls=12,usec=3,usec_per_call=0.25\r\n\
            cmdstat_evalsha:calls=7,usec=3,usec_per_call=0.4\r\n";
        assert_eq!(calls(statistics, "evalsha"), Some(7));
        assert_eq!(calls(statistics, "len"), Some(0));
        assert_eq!(calls("cmdstat_get:calls=many", "get"), None);
    }
}
