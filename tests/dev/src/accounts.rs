//! The product's users in both stores, made by the scripts that the product itself gives an administrator.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::binaries::binary;
use crate::cluster::{Cluster, NODE_ADDRESS};
use crate::credentials::Credentials;
use crate::process::{end_of_log, run, run_with_input};
use crate::stores::postgres_programs;
use crate::supervisor::User;
use crate::{namespace, wait};

/// Makes PostgreSQL's roles and database; repeated, it changes nothing.
pub fn make_in_postgres(cluster: &Cluster, credentials: &Credentials) -> Result<()> {
    wait::until(Duration::from_secs(60), "PostgreSQL answers", || {
        Ok(run(psql(cluster)?.args(["--command", "SELECT 1"])).ok())
    })
    .with_context(|| {
        format!(
            "the end of its log:\n{}",
            end_of_log(&cluster.log("postgres"))
        )
    })?;
    let script = run(binary("water-ingest").arg("bootstrap-sql"))?;
    // Passwords as variables in the script itself: arguments can be read by every user of the machine.
    let script = format!(
        "\\set owner_password '{}'\n\\set writer_password '{}'\n\\set reader_password '{}'\n{script}",
        credentials.water_owner, credentials.water_writer, credentials.water_reader
    );
    run_with_input(&mut psql(cluster)?, &script).map(drop)
}

/// Makes the users of Redis with the rights that each needs; repeated, it changes nothing.
pub fn make_in_redis(cluster: &Cluster, credentials: &Credentials) -> Result<()> {
    wait::until(Duration::from_secs(60), "Redis answers", || {
        Ok(run_with_input(&mut redis_cli(credentials), "PING\n").ok())
    })
    .with_context(|| format!("the end of its log:\n{}", end_of_log(&cluster.log("redis"))))?;
    let hash = |password: &str| hex::encode(Sha256::digest(password));
    let lines = run(binary("water-operator").args([
        "redis-acl",
        "--operator-password-hash",
        &hash(&credentials.redis_operator),
        "--gate-password-hash",
        &hash(&credentials.redis_gate),
        "--portal-password-hash",
        &hash(&credentials.redis_portal),
    ]))?;
    let users = lines.lines().filter_map(|line| line.strip_prefix("user "));
    let commands: String = users
        .map(|user| format!("ACL SETUSER {user}\n"))
        .chain(["ACL SAVE\n".into()])
        .collect();
    run_with_input(&mut redis_cli(credentials), &commands).map(drop)
}

/// Returns whether Redis holds any key.
pub fn redis_has_keys(credentials: &Credentials) -> Result<bool> {
    let keys = run_with_input(&mut redis_cli(credentials), "DBSIZE\n")?;
    Ok(keys.trim() != "0")
}

/// Connects as PostgreSQL's administrator, by the operating system's user and without a password.
fn psql(cluster: &Cluster) -> Result<Command> {
    let user = User::named("postgres")?;
    let mut command = namespace::enter(cluster)?;
    command
        .args([
            format!("--setuid={}", user.uid),
            format!("--setgid={}", user.gid),
        ])
        .arg(postgres_programs()?.join("psql"))
        .args("--no-psqlrc --quiet --set=ON_ERROR_STOP=1".split(' '))
        .args(["--host=/run/postgresql", "--dbname=postgres"]);
    Ok(command)
}

fn redis_cli(credentials: &Credentials) -> Command {
    let mut command = Command::new("redis-cli");
    command.args(["-e", "-h", NODE_ADDRESS, "--user", "administrator"]);
    command.env("REDISCLI_AUTH", &credentials.redis_administrator);
    command
}
