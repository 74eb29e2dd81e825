//! A PostgreSQL database of one test, a copy of one that was migrated once for all tests.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use tokio::sync::OnceCell;
use water_database::writer::{History, Load, RiskRow, StressRow};
use water_database::{Writer, migrations};
use water_harness::Postgres;

use crate::rows::{Row, batch, day};

/// A migrated database, owned by `water_owner`.
#[derive(Clone)]
pub struct Database {
    /// The server, for faults; the one that tests share, unless the test gave its own.
    pub server: Arc<Postgres>,
    name: String,
}

impl Database {
    /// Makes a database without data on the server that tests share.
    pub async fn new() -> Self {
        Self::on(shared().await).await
    }

    /// Makes a database without data on a server of the test's own, to stop, pause and kill.
    pub async fn alone() -> Self {
        Self::on(Postgres::start().await.unwrap()).await
    }

    /// Makes a database without data on this server.
    pub async fn on(server: impl Into<Arc<Postgres>>) -> Self {
        Self::copied(server.into(), "water", async |_| {}).await
    }

    /// Makes a database that `fill` filled once for all tests that name this template.
    pub async fn filled(template: &str, fill: impl AsyncFnOnce(&Self)) -> Self {
        Self::copied(shared().await, template, fill).await
    }

    /// Names a database of this server that is there, such as a restored one.
    pub fn existing(server: impl Into<Arc<Postgres>>, name: &str) -> Self {
        Self {
            server: server.into(),
            name: name.to_owned(),
        }
    }

    async fn copied(server: Arc<Postgres>, template: &str, fill: impl AsyncFnOnce(&Self)) -> Self {
        let named = |url: &str| Self {
            server: Arc::clone(&server),
            name: url.rsplit('/').next().unwrap().to_owned(),
        };
        let prepare = async |url: &str| {
            let database = named(url);
            database.sql(migrations::ROLES_SQL);
            database.give_to_owner();
            migrations::migrate(&database.url_as("water_owner"), None).await?;
            fill(&database).await;
            Ok(())
        };
        let copy = server.database_from_template(template, prepare).await;
        let database = named(copy.unwrap().name());
        // A copy belongs to the role that copied.
        database.give_to_owner();
        database
    }

    fn give_to_owner(&self) {
        let name = self.name();
        self.sql(&format!("ALTER DATABASE {name} OWNER TO water_owner"));
    }

    /// Returns the database's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.server.port()).into()
    }

    /// Returns the URL of a role.
    pub fn url_as(&self, role: &str) -> String {
        self.url_through(self.address(), role)
    }

    /// Returns the URL of a role by another way to the server, such as a proxy.
    pub fn url_through(&self, way: SocketAddr, role: &str) -> String {
        format!("postgres://{role}@{way}/{}", self.name)
    }

    /// Runs SQL as the superuser; returns rows as psql prints them unaligned.
    pub fn sql(&self, sql: &str) -> String {
        self.server.sql(self.name(), sql).unwrap()
    }

    /// Returns the content of the tables, which is everything that a load could change.
    pub fn dump(&self) -> String {
        let tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'water' ORDER BY 1";
        let rows = |table| self.sql(&format!("SELECT t.* FROM water.{table} AS t ORDER BY t"));
        let dumps: Vec<String> = self.sql(tables).lines().map(rows).collect();
        dumps.join("\n")
    }

    /// Returns the URL of the services' role.
    pub fn reader_url(&self) -> String {
        self.url_as("water_reader")
    }

    /// Opens a pool of the services' role.
    pub fn reader(&self) -> water_database::Database {
        water_database::Database::connect(&self.reader_url(), None, 2).unwrap()
    }

    /// Opens a session of the loader's role.
    pub async fn writer(&self) -> Loader {
        let writer = Writer::connect(&self.url_as("water_writer"), None).await;
        Loader(writer.unwrap())
    }
}

async fn shared() -> Arc<Postgres> {
    static SHARED: OnceCell<Arc<Postgres>> = OnceCell::const_new();
    let start = async || Arc::new(Postgres::start().await.unwrap());
    Arc::clone(SHARED.get_or_init(start).await)
}

/// The database's only writer, with loads that tests make.
pub struct Loader(Writer);

impl Deref for Loader {
    type Target = Writer;

    fn deref(&self) -> &Writer {
        &self.0
    }
}

impl DerefMut for Loader {
    fn deref_mut(&mut self) -> &mut Writer {
        &mut self.0
    }
}

impl Loader {
    /// Replaces the stress records, as of a [`day`].
    pub async fn stress(&mut self, as_of: i64, rows: &[StressRow]) {
        let loaded = self.replace_stress(rows, day(as_of), &load()).await;
        loaded.unwrap();
    }

    /// Replaces the risk records, as of a [`day`].
    pub async fn risk(&mut self, as_of: i64, rows: &[RiskRow]) {
        let loaded = self.replace_risk(rows, day(as_of), &load()).await;
        loaded.unwrap();
    }

    /// Adds and updates rows of a history.
    pub async fn history(&mut self, history: History, rows: &[Row]) {
        let mut staging = self.stage(history).await.unwrap();
        staging.push(batch(rows, 2)).await.unwrap();
        staging.finish(day(182), &load()).await.unwrap();
    }
}

/// Returns a load by a test, which may leave out départements.
pub fn load() -> Load {
    Load {
        sha256: [7; 32],
        source: "a test".to_owned(),
        source_url: None,
        licence: None,
        synthetic: true,
        loaded_by: "nobody".to_owned(),
        allow_missing: true,
        allow_lifting: false,
        force: false,
        max_changed: 50,
        dry_run: false,
    }
}
