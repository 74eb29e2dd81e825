//! A migrated database, a folder of files, and the binary itself.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use water_database::departements::{self, Snapshot};
use water_database::{Database, migrations};
use water_harness::Postgres;

/// One test's database and folder.
pub struct Fixture {
    pub postgres: &'static Postgres,
    pub own: water_harness::Database,
    pub reader: Database,
    folder: TempDir,
}

/// How a run of the command ended.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub summary: Value,
    pub stderr: String,
}

impl Fixture {
    pub async fn new() -> Self {
        let postgres = Postgres::shared().await.unwrap();
        let own = postgres
            .database_from_template("water", async |url| migrate(postgres, url).await)
            .await
            .unwrap();
        let reader = Database::connect(&own.url_as("water_reader"), None, 2).unwrap();
        Self {
            postgres,
            own,
            reader,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn folder(&self) -> PathBuf {
        self.folder.path().join("written")
    }

    /// Runs the command as the writer; a word that is a file's name in the folder becomes its path.
    pub fn run(&self, words: &str) -> Run {
        run(self.command(words), b"")
    }

    pub fn run_with_stdin(&self, words: &str, stdin: impl AsRef<[u8]>) -> Run {
        run(self.command(words), stdin.as_ref())
    }

    pub fn command(&self, words: &str) -> Command {
        let mut command = command(words);
        command
            .current_dir(self.folder.path())
            .env("WATER_POSTGRES_URL", self.own.url_as("water_writer"));
        command
    }

    pub async fn snapshot(&self) -> Snapshot {
        departements::snapshot(&self.reader).await.unwrap()
    }

    pub fn sql(&self, sql: &str) -> String {
        self.postgres.sql(self.own.name(), sql).unwrap()
    }

    /// Everything that a load could change.
    pub fn dump(&self) -> String {
        let tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'water' ORDER BY 1";
        let rows = |table| self.sql(&format!("SELECT t.* FROM water.{table} AS t ORDER BY t"));
        self.sql(tables)
            .lines()
            .map(rows)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// Makes the roles and the schema in the empty database of this URL.
pub async fn migrate(postgres: &Postgres, url: &str) -> anyhow::Result<()> {
    let name = url.rsplit('/').next().unwrap();
    postgres.sql(name, migrations::ROLES_SQL)?;
    postgres.sql(name, &format!("ALTER DATABASE {name} OWNER TO water_owner"))?;
    migrations::migrate(&url.replace("postgres@", "water_owner@"), None).await?;
    Ok(())
}

/// The binary with these arguments and no environment but its own.
pub fn command(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_water-ingest"));
    command
        .args(words.split(' '))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub fn run(mut command: Command, stdin: &[u8]) -> Run {
    let child = command.spawn().unwrap();
    let output = feed(child, stdin);
    let stdout = String::from_utf8(output.stdout).unwrap();
    Run {
        code: output.status.code(),
        summary: serde_json::from_str(&stdout).unwrap_or(Value::String(stdout)),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn feed(mut child: Child, stdin: &[u8]) -> Output {
    // A command that does not read its input closes it: that is its right.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    child.wait_with_output().unwrap()
}

pub fn gzip(content: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content.as_bytes()).unwrap();
    encoder.finish().unwrap()
}
