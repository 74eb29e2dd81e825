//! A PostgreSQL with the product's roles and schema, filled by the product's loader.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::{Instant, sleep};
use water_harness::{Postgres, scratch_directory};

use crate::binary::beside;
use crate::cpu;

/// The name that the product's bootstrap script gives the database.
const NAME: &str = "water";

/// How often a loader's memory is looked at; what it takes only at its very end is not seen.
const LOOK: Duration = Duration::from_millis(5);

/// A running server.
pub struct Database {
    /// The server.
    pub postgres: Postgres,
}

/// What a load took.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    /// From the program's start to its end.
    pub took: Duration,
    /// The most memory that was resident (`VmHWM`), in bytes.
    pub memory: u64,
}

impl Database {
    /// A server with an empty schema. Nothing runs in its background that would move figures.
    pub async fn start() -> Result<Self> {
        let postgres = Postgres::start().await?;
        let script = output(Command::new(beside("water-ingest")?).arg("bootstrap-sql"))?;
        let passwords = ["owner", "writer", "reader"].map(|role| format!("{role}_password"));
        let passwords = passwords.each_ref().map(|name| (name.as_str(), "bench"));
        postgres.psql("postgres", &script, &passwords)?;
        postgres.sql("postgres", "ALTER SYSTEM SET autovacuum = off")?;
        postgres.sql("postgres", "SELECT pg_reload_conf()")?;
        let database = Self { postgres };
        output(database.loader("water_owner")?.arg("migrate"))?;
        Ok(database)
    }

    /// The URL of a role.
    pub fn url(&self, role: &str) -> String {
        format!(
            "postgres://{role}@127.0.0.1:{}/{NAME}",
            self.postgres.port()
        )
    }

    /// Runs SQL as the superuser.
    pub fn sql(&self, sql: &str) -> Result<String> {
        self.postgres.sql(NAME, sql)
    }

    /// The version, such as `15.8`.
    pub fn version(&self) -> Result<String> {
        let version = self.sql("SHOW server_version")?;
        let word = version.split(' ').next();
        Ok(word.unwrap_or(&version).to_owned())
    }

    /// Runs the loader with these words, and watches its time and memory.
    pub async fn ingest(&self, words: &[&str]) -> Result<Loaded> {
        let mut command = self.loader("water_writer")?;
        command
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let began = Instant::now();
        let mut loader = command.spawn().context("start the loader")?;
        let mut memory = 0;
        while loader.try_wait()?.is_none() {
            // It may have ended since it was asked.
            memory = cpu::peak_memory(loader.id()).map_or(memory, |peak| peak.max(memory));
            sleep(LOOK).await;
        }
        let took = began.elapsed();
        let output = loader.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "water-ingest {words:?}: {said}");
        Ok(Loaded { took, memory })
    }

    fn loader(&self, role: &str) -> Result<Command> {
        let mut command = Command::new(beside("water-ingest")?);
        command.env("WATER_POSTGRES_URL", self.url(role));
        Ok(command)
    }
}

/// Writes an analyses file with `rows` rows of each account, in no order, and returns its path.
pub fn analyses_file(accounts: &[(&str, u64)]) -> Result<PathBuf> {
    let path = scratch_directory("analyses")?.join("analyses.csv");
    write_analyses(&path, accounts).with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}

fn write_analyses(path: &Path, accounts: &[(&str, u64)]) -> Result<()> {
    // Coprime to every number of rows that is used.
    const STRIDE: u64 = 7_368_787;
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(
        file,
        "accountId,id,companyName,sectorCode,deptCode,globalScore,rating,createdAt"
    )?;
    for &(account, rows) in accounts {
        for number in 0..rows {
            let number = number.wrapping_mul(STRIDE) % rows;
            let (day, month, year) = (number % 28 + 1, number / 28 % 12 + 1, number / 336 % 20);
            let (hour, minute, second) = (number % 24, number / 24 % 60, number / 1440 % 60);
            let (score, rating) = (number % 1000, ["A", "B+", "C-"][(number % 3) as usize]);
            writeln!(
                file,
                "{account},a-{number:07},Société des eaux {number},36.00Z,34,{}.{},{rating},\
                 {:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z",
                score / 10,
                score % 10,
                2005 + year
            )?;
        }
    }
    Ok(file.flush()?)
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().context("start the loader")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {said}");
    Ok(String::from_utf8(output.stdout)?)
}
