//! Migrations of the schema, run as the database's owner.
//!
//! Forward only, and compatible with the version that still runs: a service never waits for one. Migrations that this
//! build does not know are left alone, so that an older build may run again.

use std::error::Error as StdError;
use std::time::Duration;

use refinery::{Report, Runner, Target};
use tokio::time::sleep;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::error::{Attempt, Error, SettingsError};
use crate::server::{Authority, Patience, Server};

mod embedded {
    refinery::embed_migrations!("migrations");
}

/// Script that an administrator runs once with psql, before the first migration: roles and database.
pub const BOOTSTRAP_SQL: &str = concat!(
    include_str!("../bootstrap/1_usage.sql"),
    include_str!("../bootstrap/2_roles.sql"),
    include_str!("../bootstrap/3_database.sql"),
);

/// The script's part that makes the roles, without passwords: plain SQL, for a server that trusts everyone.
pub const ROLES_SQL: &str = include_str!("../bootstrap/2_roles.sql");

/// Number of the lock that a migrating run holds; a second run waits for it. Any number unused in this database would
/// do: these are the bytes of "wmigrate".
const LOCK: i64 = i64::from_be_bytes(*b"wmigrate");

/// Settings of the connection that holds the lock: its transaction is idle while the other migrates.
const GUARD: &str = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0";

/// Settings of the connection that migrates. Every later statement on a table waits
/// behind one that waits for its lock, so this one gives up soon and is tried again.
const MIGRATING: &str = "SET statement_timeout = 0; SET lock_timeout = '1s'";
const LOCK_PAUSE: Duration = Duration::from_secs(1);

/// Number of tries of a migration that finds a table in use: they last as long as a load may take.
const LOCK_ATTEMPTS: u32 = 300;

/// A migration that did not happen.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// The URL or the CA file.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The database.
    #[error(transparent)]
    Database(#[from] Error),
    /// A role is missing.
    #[error(
        "the role {0} does not exist: an administrator must first run the script \
         that `water-ingest bootstrap-sql` prints"
    )]
    MissingRole(String),
    /// A migration is missing below one that was applied: its change may be missing too.
    #[error(
        "the database lacks the migration {0}, although it has newer ones: restore the schema \
         from a backup or apply it by hand"
    )]
    Gap(String),
    /// A migration failed, or the stored ones differ from this build's.
    #[error("migrating the schema")]
    Refinery(#[from] refinery::Error),
}

/// Applies all migrations that are missing and returns their names.
pub async fn migrate(
    url: &str,
    authority: Option<Authority<'_>>,
) -> Result<Vec<String>, MigrationError> {
    let server = Server::new(url, authority, Patience::LOAD)?;
    let (mut guard, mut client) = (
        server.connect(GUARD, None).await?,
        server.connect(MIGRATING, None).await?,
    );
    // A transaction on a separate connection holds the lock, so that it ends with the process.
    let lock = guard
        .transaction()
        .await
        .attempting("waiting for another migration")?;
    lock.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK])
        .await
        .attempting("waiting for another migration")?;
    check_roles(&client).await?;
    create_schema(&client).await?;
    check_gaps(&client).await?;
    let report = run(&mut client).await?;
    lock.commit().await.attempting("ending the migration")?;
    Ok(report
        .applied_migrations()
        .iter()
        .map(ToString::to_string)
        .collect())
}

/// Applies the missing migrations, each in a separate transaction.
async fn run(client: &mut Client) -> Result<Report, refinery::Error> {
    for _ in 1..LOCK_ATTEMPTS {
        match runner().run_async(client).await {
            Err(error) if is_in_use(&error) => sleep(LOCK_PAUSE).await,
            finished => return finished,
        }
    }
    runner().run_async(client).await
}

/// Whether a table that a migration changes was in use.
fn is_in_use(error: &refinery::Error) -> bool {
    std::iter::successors(Some(error as &dyn StdError), |&error| error.source())
        .filter_map(|cause| cause.downcast_ref::<tokio_postgres::Error>())
        .any(|error| error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE))
}

/// The version of this build's newest migration.
pub(crate) fn newest() -> i64 {
    let runner = runner();
    let versions = runner.get_migrations().iter();
    let newest = versions.map(|migration| i64::from(migration.version()));
    newest.max().unwrap_or_default()
}

fn runner() -> Runner {
    let mut runner = embedded::migrations::runner()
        .set_target(Target::Latest)
        .set_abort_missing(false);
    runner.set_migration_table_name("water.migrations");
    runner
}

/// Refuses a schema that lacks a migration below its newest: the runner would only log that.
async fn check_gaps(client: &Client) -> Result<(), MigrationError> {
    const ATTEMPT: &str = "reading the applied migrations";
    let exists = "SELECT to_regclass('water.migrations') IS NOT NULL";
    let exists = client.query_one(exists, &[]).await.attempting(ATTEMPT)?;
    if !exists.get::<_, bool>(0) {
        return Ok(());
    }
    let applied = "SELECT version::bigint FROM water.migrations";
    let applied = client.query(applied, &[]).await.attempting(ATTEMPT)?;
    let applied: Vec<i64> = applied.iter().map(|row| row.get(0)).collect();
    let newest = applied.iter().max().copied().unwrap_or_default();
    let runner = runner();
    let missing = runner.get_migrations().iter().find(|migration| {
        let version = i64::from(migration.version());
        version < newest && !applied.contains(&version)
    });
    match missing {
        Some(migration) => Err(MigrationError::Gap(migration.to_string())),
        None => Ok(()),
    }
}

/// Checks first: where an administrator made the schema, the owner may lack the right to make it.
async fn create_schema(client: &Client) -> Result<(), Error> {
    const ATTEMPT: &str = "creating the schema water";
    let exists = "SELECT to_regnamespace('water') IS NOT NULL";
    if !client
        .query_one(exists, &[])
        .await
        .attempting(ATTEMPT)?
        .get::<_, bool>(0)
    {
        client
            .batch_execute("CREATE SCHEMA water")
            .await
            .attempting(ATTEMPT)?;
    }
    Ok(())
}

async fn check_roles(client: &Client) -> Result<(), MigrationError> {
    const MISSING: &str = "SELECT name FROM unnest(ARRAY['water_writer', 'water_reader']) AS name \
                           WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) ORDER BY name";
    let missing = client
        .query_opt(&format!("{MISSING} LIMIT 1"), &[])
        .await
        .attempting("looking for the roles")?;
    match missing {
        Some(role) => Err(MigrationError::MissingRole(role.get(0))),
        None => Ok(()),
    }
}
