//! The stores as their own tools write them out: everything that they hold, legibly.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use water_harness::scratch_directory;

use crate::Cluster;

impl Cluster {
    /// Returns the database as `pg_dump` writes it.
    pub fn postgres_dump(&self) -> Result<Vec<u8>> {
        let url = &self.environment.postgres_owner_url;
        output(Command::new("pg_dump").arg(format!("--dbname={url}")))
    }

    /// Gives the services' role of the database another password, by its URL with the present one. Returns
    /// the URL with the new one.
    pub fn change_readers_password(&self, url: &str, password: &str) -> Result<String> {
        let (start, rest) = url.split_once("://water_reader:").context("another role")?;
        let (_, place) = rest.split_once('@').context("no host")?;
        let change = format!("ALTER ROLE water_reader PASSWORD '{password}'");
        output(Command::new("psql").args(["--quiet", "--dbname", url, "--command", &change]))?;
        Ok(format!("{start}://water_reader:{password}@{place}"))
    }

    /// Returns Redis' data as it would write them to disk. Compression would cut texts into pieces.
    pub fn redis_dump(&self) -> Result<Vec<u8>> {
        let url = &self.environment.redis_administrator_url;
        let client = || {
            let mut client = Command::new("redis-cli");
            client.args(["-e", "--no-auth-warning", "-u", url]);
            client
        };
        output(client().args(["CONFIG", "SET", "rdbcompression", "no"]))?;
        let file = scratch_directory("redis-dump")?.join("dump.rdb");
        output(client().arg("--rdb").arg(&file))?;
        fs::read(&file).with_context(|| format!("read {}", file.display()))
    }
}

/// Returns a program's output. Its arguments hold a password and are in no error.
fn output(command: &mut Command) -> Result<Vec<u8>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("start {program}"))?;
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program}: {}", problem.trim_end());
    Ok(output.stdout)
}
