//! Empty stores of one installation's own, prepared by the commands of README.md.

use std::net::IpAddr;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use water_harness::{Postgres, Redis, scratch_directory};

use super::{readme, shell::Shell};

const PASSWORD: &str = "documented";

/// The two servers; they end when this is dropped.
pub struct Stores {
    postgres: Postgres,
    redis: Redis,
    address: IpAddr,
}

impl Stores {
    /// Starts both, to be reached at this address of the machine.
    pub async fn start(address: IpAddr) -> Result<Self> {
        let (bind, password) = (
            format!("bind 127.0.0.1 {address}"),
            format!("requirepass {PASSWORD}"),
        );
        Ok(Self {
            postgres: Postgres::start_reachable_at(address).await?,
            redis: Redis::start_with(&[&bind, &password]).await?,
            address,
        })
    }

    /// Makes roles, database, users, the namespace and the Secrets.
    pub async fn prepare(&self, shell: &Shell, namespace: &str) -> Result<()> {
        let hash = format!("-password-hash {}", hex::encode(Sha256::digest(PASSWORD)));
        let (postgres, redis) = (self.postgres.port(), self.redis.port());
        let commands = readme::filled_in(
            &readme::block_with("kubectl create namespace")?,
            &[
                ("-password-hash …", &hash),
                ("…", PASSWORD),
                ("db.example", &format!("{}:{postgres}", self.address)),
                ("rediss://", "redis://"),
                ("redis.example", &format!("{}:{redis}", self.address)),
                (
                    "create namespace water",
                    &format!("create namespace {namespace}"),
                ),
                ("-n water ", &format!("-n {namespace} ")),
                ("--instance water.", &format!("--instance {namespace}.")),
            ],
        )?;
        let administrator = [
            ("PGHOST", "127.0.0.1".to_owned()),
            ("PGPORT", postgres.to_string()),
            ("PGUSER", "postgres".to_owned()),
            ("PGDATABASE", "postgres".to_owned()),
        ];
        let printed = shell.run(&commands, &scratch_directory("readme")?, &administrator)?;
        self.add_users(&printed).await
    }

    /// Adds users: the lines of an ACL file take effect on a running server as commands.
    async fn add_users(&self, printed: &str) -> Result<()> {
        let users: Vec<_> = printed
            .lines()
            .filter_map(|line| line.strip_prefix("user "))
            .collect();
        users
            .first()
            .with_context(|| format!("no line for Redis' ACL file in:\n{printed}"))?;
        for user in users {
            let words: Vec<_> = ["ACL", "SETUSER"]
                .into_iter()
                .chain(user.split(' '))
                .collect();
            self.redis.command(&words).await?;
        }
        Ok(())
    }
}
