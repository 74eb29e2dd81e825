//! A migrated database of the test's own, and what is loaded into it.

use water_database::writer::Load;
use water_database::{Writer, migrations};
use water_harness::{Database, Postgres};

/// A database that `water_owner` migrated, without data.
pub async fn migrated(postgres: &Postgres) -> Database {
    let prepare = async |url: &str| {
        let name = url.rsplit('/').next().unwrap();
        postgres.sql(name, migrations::ROLES_SQL)?;
        postgres.sql(name, &format!("ALTER DATABASE {name} OWNER TO water_owner"))?;
        migrations::migrate(&url.replace("postgres@", "water_owner@"), None).await?;
        Ok(())
    };
    postgres
        .database_from_template("water", prepare)
        .await
        .unwrap()
}

/// The database's only writer.
pub async fn writer(database: &Database) -> Writer {
    Writer::connect(&database.url_as("water_writer"), None)
        .await
        .unwrap()
}

/// A load by a test, which may leave out départements.
pub fn load() -> Load {
    Load {
        sha256: [7; 32],
        source: "a test".to_owned(),
        source_url: None,
        licence: None,
        synthetic: true,
        loaded_by: "nobody".to_owned(),
        allow_missing: true,
        force: false,
        max_changed: 50,
        dry_run: false,
    }
}
