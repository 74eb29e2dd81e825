//! A migrated database for each test, and short builders of rows.

use tokio_postgres::{Client, NoTls};
use water_database::writer::{
    Batch, History, HistoryRow, Load, LoadError, Outcome, RiskRow, StressRow,
};
use water_database::{Database, Writer, migrations};
use water_domain::{AccountId, Departement, Level, Number, Page, Timestamp, departement};
use water_harness::Postgres;

/// A test's database, reached as each of the roles.
pub struct Fixture {
    pub postgres: &'static Postgres,
    pub own: water_harness::Database,
    pub reader: Database,
    pub writer: Writer,
}

impl Fixture {
    /// A copy of a database that `water_owner` migrated.
    pub async fn new() -> Self {
        let postgres = Postgres::shared().await.unwrap();
        let own = postgres
            .database_from_template("water", async |url| {
                let name = url.rsplit('/').next().unwrap();
                postgres.sql(name, migrations::ROLES_SQL)?;
                postgres.sql(name, &format!("ALTER DATABASE {name} OWNER TO water_owner"))?;
                migrations::migrate(&url.replace("postgres@", "water_owner@"), None).await?;
                Ok(())
            })
            .await
            .unwrap();
        // A copy belongs to the role that made it.
        let give = format!("ALTER DATABASE {} OWNER TO water_owner", own.name());
        postgres.sql("postgres", &give).unwrap();
        let reader = Database::connect(&own.url_as("water_reader"), None, 2).unwrap();
        let writer = Writer::connect(&own.url_as("water_writer"), None)
            .await
            .unwrap();
        Self {
            postgres,
            own,
            reader,
            writer,
        }
    }

    /// Runs SQL as the superuser.
    pub fn sql(&self, sql: &str) -> String {
        self.postgres.sql(self.own.name(), sql).unwrap()
    }

    /// Opens a superuser's transaction, which holds the locks of this statement until it ends.
    pub async fn hold(&self, statement: &str) -> Client {
        let connected = tokio_postgres::connect(&self.own.url(), NoTls).await;
        let (session, connection) = connected.unwrap();
        tokio::spawn(connection);
        let begin = format!("BEGIN; {statement}");
        session.batch_execute(&begin).await.unwrap();
        session
    }

    /// Dumps everything that a load could change.
    pub fn dump(&self) -> String {
        self.sql(
            "SELECT query_to_xml(format('SELECT t.* FROM water.%I AS t ORDER BY t', table_name), true, false, '') \
             FROM information_schema.tables WHERE table_schema = 'water' ORDER BY table_name",
        )
    }

    /// Replaces the stress records, as of a day of 2026.
    pub async fn stress(&mut self, rows: &[StressRow], as_of: i64) -> Outcome {
        let load = &load();
        let outcome = self.writer.replace_stress(rows, day(as_of), load).await;
        outcome.unwrap()
    }

    /// Replaces the risk records, as of a day of 2026.
    pub async fn risk(&mut self, rows: &[RiskRow], as_of: i64) -> Outcome {
        let load = &load();
        let outcome = self.writer.replace_risk(rows, day(as_of), load).await;
        outcome.unwrap()
    }

    /// Sets these alert levels, as of a day of 2026.
    pub async fn register(&mut self, levels: &[(&str, Level)], as_of: i64) -> Outcome {
        let (levels, load) = (levels_of(levels), load());
        let outcome = self.writer.update_levels(&levels, 0, day(as_of), &load);
        outcome.await.unwrap()
    }

    /// Loads rows of a history, as of the first day of 2026.
    pub async fn load(&mut self, history: History, rows: &[Row]) -> Outcome {
        let outcome = self.load_as(history, rows, day(0), &load()).await;
        outcome.unwrap()
    }

    pub async fn load_as(
        &mut self,
        history: History,
        rows: &[Row],
        as_of: Timestamp,
        load: &Load,
    ) -> Result<Outcome, LoadError> {
        let mut staging = self.writer.stage(history).await?;
        for (number, chunk) in (0..).zip(rows.chunks(1000)) {
            staging.push(batch(chunk, 2 + number * 1000)).await?;
        }
        staging.finish(as_of, load).await
    }
}

/// A load by a test.
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

/// Midnight of a day of 2026, counted from 0.
pub fn day(day: i64) -> Timestamp {
    Timestamp::from_millis(1_767_225_600_000 + day * 86_400_000).unwrap()
}

pub fn stress(code: &str, stress_index: f64, level: Option<Level>) -> StressRow {
    let stress_index = Number::try_from(stress_index).unwrap();
    StressRow {
        departement: departement::parse(code).unwrap(),
        stress_index,
        level,
    }
}

pub fn levels_of(levels: &[(&str, Level)]) -> Vec<(&'static Departement, Option<Level>)> {
    let levels = levels.iter();
    levels
        .map(|(code, level)| (departement::parse(code).unwrap(), Some(*level)))
        .collect()
}

pub fn risk(code: &str, overall: f64) -> RiskRow {
    let overall = Number::try_from(overall).unwrap();
    let departement = departement::parse(code).unwrap();
    RiskRow {
        departement,
        flood: overall,
        drought: overall,
        overall,
        rating: None,
        updated_at: None,
    }
}

/// A row of a history: the columns that decide its place, and a score that distinguishes its versions.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub account: &'static str,
    pub id: String,
    pub created_at: Timestamp,
    pub score: f64,
}

pub fn row(account: &'static str, id: impl ToString, created_at: Timestamp) -> Row {
    Row {
        account,
        id: id.to_string(),
        created_at,
        score: 1.0,
    }
}

impl Row {
    pub fn score(self, score: f64) -> Self {
        Self { score, ..self }
    }
}

/// Makes a batch of rows, the first on this line of the file.
pub fn batch(rows: &[Row], line: u64) -> Batch {
    let mut batch = Batch::default();
    for (line, row) in (line..).zip(rows) {
        batch.push(&HistoryRow {
            line,
            account_id: row.account,
            id: &row.id,
            company_name: "Société Test",
            sector_code: "36.00Z",
            dept_code: "34",
            score: Number::try_from(row.score).unwrap(),
            rating: "B+",
            created_at: row.created_at,
        });
    }
    batch
}

pub fn account(id: &str) -> AccountId {
    id.parse().unwrap()
}

pub fn page(limit: u8, offset: u64) -> Page {
    Page { limit, offset }
}
