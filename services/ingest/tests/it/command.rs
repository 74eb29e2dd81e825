//! The binary itself, with a database and a folder of files for each test.

use std::io::Write;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use water_kit::Database;

/// The first line of a file of analyses.
pub const ANALYSES: &str =
    "accountId,id,companyName,sectorCode,deptCode,globalScore,rating,createdAt\n";

/// A row of `acme`'s analyses.
pub fn analysis(id: impl ToString, score: u32) -> String {
    let id = id.to_string();
    format!("acme,{id},Eaux,36.00Z,34,{score},A,2026-01-01T00:00:00Z\n")
}

/// A database to load into, and a folder of files.
pub struct Ingest {
    database: Database,
    folder: TempDir,
}

/// Result of a run.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    /// The JSON on standard output, or else its text.
    pub summary: Value,
    pub stderr: String,
}

impl Deref for Ingest {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.database
    }
}

impl Ingest {
    /// An empty database.
    pub async fn new() -> Self {
        Self::on(Database::new().await)
    }

    pub fn on(database: Database) -> Self {
        Self {
            database,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Another database with the same files.
    pub fn replace(&mut self, database: Database) {
        self.database = database;
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A folder that does not exist.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join("written")
    }

    /// Runs the command as the writer, in the folder of files.
    pub fn run(&self, words: &str) -> Run {
        self.run_with_stdin(words, "")
    }

    pub fn run_with_stdin(&self, words: &str, stdin: impl AsRef<[u8]>) -> Run {
        run(self.command(words), stdin.as_ref())
    }

    /// Loads, and fails unless the run succeeds.
    pub fn loads(&self, words: &str, stdin: impl AsRef<[u8]>) -> Run {
        let run = self.run_with_stdin(&format!("load {words}"), stdin);
        assert_eq!(run.code, Some(0), "{words}: {}", run.stderr);
        run
    }

    pub fn command(&self, words: &str) -> Command {
        self.command_through(self.address(), words)
    }

    /// The command, with its database at this address.
    pub fn command_through(&self, way: SocketAddr, words: &str) -> Command {
        let mut command = command(words);
        command
            .current_dir(self.folder.path())
            .env("WATER_POSTGRES_URL", self.url_through(way, "water_writer"));
        command
    }
}

/// The binary with these arguments and an empty environment.
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
    let mut child = command.spawn().unwrap();
    // A command may close its input without reading it.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    Run {
        code: output.status.code(),
        summary: serde_json::from_str(&stdout).unwrap_or(Value::String(stdout)),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs the command without a database.
pub fn say(words: &str, stdin: impl AsRef<[u8]>) -> Run {
    run(command(words), stdin.as_ref())
}

pub fn gzip(content: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content.as_bytes()).unwrap();
    encoder.finish().unwrap()
}
