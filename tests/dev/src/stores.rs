//! PostgreSQL and Redis: real servers with passwords outside the node, which to the product are stores
//! outside the cluster.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cluster::{FILES, NODE_ADDRESS, inside};
use crate::credentials::Credentials;
use crate::process::run;
use crate::supervisor::{Service, User};

/// Makes, inside the cluster, the files that the servers start from. Data of an earlier run stays.
pub fn prepare() -> Result<()> {
    let postgres = User::named("postgres")?;
    let redis = User::named("redis")?;
    for (folder, owner) in [
        ("/run/postgresql", postgres),
        ("/run/redis", redis),
        (&*inside("postgres"), postgres),
        (&*inside("redis"), redis),
    ] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {folder}"))?;
        chown(folder, Some(owner.uid), Some(owner.gid))
            .with_context(|| format!("cannot hand over {folder}"))?;
    }
    initialise_postgres(postgres)?;
    let users = Path::new(&inside("redis")).join("users.acl");
    if !users.exists() {
        let credentials = Credentials::read(Path::new(FILES))?;
        fs::write(&users, credentials.redis_administrator_acl())
            .context("cannot write the users of Redis")?;
        chown(&users, Some(redis.uid), Some(redis.gid))
            .context("cannot hand over the users of Redis")?;
    }
    Ok(())
}

/// Returns the two servers, at the node's address.
pub fn services() -> Result<Vec<Service>> {
    let postgres = [
        "-D".into(),
        inside("postgres/data"),
        format!("--listen-addresses={NODE_ADDRESS}"),
        "--unix-socket-directories=/run/postgresql".into(),
        "--max-connections=200".into(),
        // A development cluster does not outlive its machine; the end of the process alone loses nothing.
        "--fsync=off".into(),
    ];
    let redis = [
        format!("--bind {NODE_ADDRESS}"),
        "--port 6379".into(),
        "--protected-mode no".into(),
        format!("--dir {}", inside("redis")),
        format!("--aclfile {}", inside("redis/users.acl")),
        "--appendonly yes".into(),
        "--save ''".into(),
        "--maxmemory-policy noeviction".into(),
    ];
    let redis = redis
        .iter()
        .flat_map(|setting| setting.split(' '))
        .map(|word| word.replace("''", ""));
    let postgres_program = postgres_programs()?.join("postgres").display().to_string();
    Ok(vec![
        Service {
            user: Some(User::named("postgres")?),
            ..Service::new("postgres", postgres_program, postgres.into())
        },
        Service {
            user: Some(User::named("redis")?),
            ..Service::new("redis", "redis-server".into(), redis.collect())
        },
    ])
}

/// Returns the folder of the newest PostgreSQL that Debian's packages installed.
pub fn postgres_programs() -> Result<PathBuf> {
    let folder = Path::new("/usr/lib/postgresql");
    let versions =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let newest = versions
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|version| folder.join(format!("{version}/bin/postgres")).exists())
        .max();
    let newest =
        newest.with_context(|| format!("there is no PostgreSQL server in {}", folder.display()))?;
    Ok(folder.join(format!("{newest}/bin")))
}

/// Makes the data folder. `initdb` refuses a folder that an interrupted run left, so the finished one appears
/// by a rename.
fn initialise_postgres(user: User) -> Result<()> {
    let finished = inside("postgres/data");
    // Names a process of an earlier run, whose number another one may have by now.
    fs::remove_file(Path::new(&finished).join("postmaster.pid")).ok();
    if Path::new(&finished).exists() {
        return Ok(());
    }
    let unfinished = inside("postgres/unfinished");
    if Path::new(&unfinished).exists() {
        fs::remove_dir_all(&unfinished).context("cannot remove an unfinished database")?;
    }
    let mut initdb = Command::new(postgres_programs()?.join("initdb"));
    initdb.args([
        "--encoding=UTF8",
        "--locale=C.UTF-8",
        "--auth-local=peer",
        "--auth-host=scram-sha-256",
        "--no-sync",
    ]);
    run(initdb
        .arg(format!("--pgdata={unfinished}"))
        .uid(user.uid)
        .gid(user.gid)
        .current_dir("/"))?;
    // Pods come with their own addresses, the machine with the link's; all of them need a password.
    let rules = Path::new(&unfinished).join("pg_hba.conf");
    fs::write(
        &rules,
        "local all postgres peer\nhost all all 10.0.0.0/8 scram-sha-256\n",
    )
    .context("cannot write PostgreSQL's access rules")?;
    fs::rename(&unfinished, &finished).context("cannot put the database in its place")
}
