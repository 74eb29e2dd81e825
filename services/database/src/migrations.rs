//! Bringing the schema up to date, as the database's owner.
//!
//! Forward only, and compatible with the version that still runs: a service never waits for one.
//! Migrations that this build does not know are left alone, so that an older build may run again.

use std::path::Path;

use refinery::{Runner, Target};
use tokio_postgres::Client;

use crate::error::{Attempt, Error, SettingsError};
use crate::server::Server;

mod embedded {
    refinery::embed_migrations!("migrations");
}

/// What an administrator runs once with psql, before the first migration: roles and database.
pub const BOOTSTRAP_SQL: &str = concat!(
    include_str!("../bootstrap/1_usage.sql"),
    include_str!("../bootstrap/2_roles.sql"),
    include_str!("../bootstrap/3_database.sql"),
);

/// Its part that makes the roles, without passwords: plain SQL, for a server that trusts everyone.
pub const ROLES_SQL: &str = include_str!("../bootstrap/2_roles.sql");

/// Held by the run that migrates; a second one waits for it. Any number does that nobody else
/// uses in this database: these are the bytes of "wmigrate".
const LOCK: i64 = i64::from_be_bytes(*b"wmigrate");

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
    /// A migration failed, or the stored ones differ from this build's.
    #[error("migrating the schema")]
    Refinery(#[from] refinery::Error),
}

/// Applies all migrations that are missing and returns their names.
pub async fn migrate(url: &str, ca_file: Option<&Path>) -> Result<Vec<String>, MigrationError> {
    let server = Server::new(url, ca_file)?;
    let (mut guard, mut client) = (server.connect(None).await?, server.connect(None).await?);
    // The lock is a transaction's, on a connection of its own: it works behind a pooler, and ends
    // with the process.
    let lock = guard
        .transaction()
        .await
        .attempting("waiting for another migration")?;
    lock.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK])
        .await
        .attempting("waiting for another migration")?;
    check_roles(&client).await?;
    create_schema(&client).await?;
    let report = runner().run_async(&mut client).await?;
    lock.commit().await.attempting("ending the migration")?;
    Ok(report
        .applied_migrations()
        .iter()
        .map(ToString::to_string)
        .collect())
}

fn runner() -> Runner {
    let mut runner = embedded::migrations::runner()
        .set_target(Target::Latest)
        .set_abort_missing(false);
    runner.set_migration_table_name("water.migrations");
    runner
}

/// Asked first: where an administrator made the schema, the owner may lack the right to.
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
