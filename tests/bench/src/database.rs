//! PostgreSQL with the product's roles and schema, filled by the product's loader.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use water_domain::departement;
use water_harness::{Postgres, scratch_directory};

use crate::load::STRIDE;
use crate::programs::find;

/// Name that the product's bootstrap script gives the database.
const NAME: &str = "water";

/// Running server.
pub struct Database {
    postgres: Postgres,
}

impl Database {
    /// Starts a server with an empty schema. Nothing runs in its background that would move figures.
    pub async fn start() -> Result<Self> {
        let postgres = Postgres::start().await?;
        let script = output(Command::new(find("water-ingest")?).arg("bootstrap-sql"))?;
        let passwords = ["owner_password", "writer_password", "reader_password"];
        postgres.psql("postgres", &script, &passwords.map(|name| (name, "bench")))?;
        postgres.sql("postgres", "ALTER SYSTEM SET autovacuum = off")?;
        postgres.sql("postgres", "SELECT pg_reload_conf()")?;
        let database = Self { postgres };
        output(database.ingest("water_owner")?.arg("migrate"))?;
        Ok(database)
    }

    /// URL of a role.
    pub fn url(&self, role: &str) -> String {
        let port = self.postgres.port();
        format!("postgres://{role}@127.0.0.1:{port}/{NAME}")
    }

    /// Runs SQL as the superuser.
    pub fn sql(&self, sql: &str) -> Result<String> {
        self.postgres.sql(NAME, sql)
    }

    /// Version, such as `15.8`.
    pub fn version(&self) -> Result<String> {
        let version = self.sql("SHOW server_version")?;
        let word = version.split(' ').next();
        Ok(word.unwrap_or(&version).to_owned())
    }

    /// Process id of the server; sessions are its children.
    pub fn process(&self) -> u32 {
        self.postgres.process().id()
    }

    /// Command of a program that came with the server.
    pub fn command(&self, program: &str) -> Command {
        self.postgres.command(program)
    }

    /// Loads a history with so many rows of each account, in no order.
    pub fn load_analyses(&self, accounts: &[(&str, u64)]) -> Result<()> {
        output(&mut self.loader("analyses", &analyses(accounts)?)?)?;
        self.sql("VACUUM ANALYZE water.analyses")?;
        self.sql("CHECKPOINT")?;
        Ok(())
    }

    /// Loads stress indices of all départements.
    pub fn load_stress(&self) -> Result<()> {
        let rows = departement::all().iter().enumerate();
        let rows = rows.map(|(place, one)| format!("{},{}.5\n", one.code, place % 5));
        let path = scratch_directory("stress")?.join("stress.csv");
        fs::write(
            &path,
            format!("dept,stressIndex\n{}", rows.collect::<String>()),
        )?;
        output(&mut self.loader("stress", &path)?).map(drop)
    }

    /// Returns the loader of this file into the dataset, not yet started.
    pub fn loader(&self, dataset: &str, file: &Path) -> Result<Command> {
        let mut command = self.ingest("water_writer")?;
        command.args(["load", dataset]).arg(file);
        command.args(["--as-of", "2026-01-01"]);
        Ok(command)
    }

    fn ingest(&self, role: &str) -> Result<Command> {
        let mut command = Command::new(find("water-ingest")?);
        command.env("WATER_POSTGRES_URL", self.url(role));
        Ok(command)
    }
}

/// Writes a file with so many analyses of each account, in no order.
pub fn analyses(accounts: &[(&str, u64)]) -> Result<PathBuf> {
    let path = scratch_directory("analyses")?.join("analyses.csv");
    write_analyses(&mut BufWriter::new(File::create(&path)?), accounts)?;
    Ok(path)
}

fn write_analyses(file: &mut impl Write, accounts: &[(&str, u64)]) -> Result<()> {
    let header = "accountId,id,companyName,sectorCode,deptCode,globalScore,rating,createdAt";
    writeln!(file, "{header}")?;
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
    let log = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {log}");
    Ok(String::from_utf8(output.stdout)?)
}
