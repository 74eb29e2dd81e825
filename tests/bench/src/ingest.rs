//! Loads of a history compared with `psql \\copy` of the same file, into a table with the same indexes and into one
//! without any.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::{Instant, sleep};

use crate::cpu;
use crate::database::{Database, analyses};
use crate::report::{Report, Row};
use crate::rounds::{Turn, take_turns};

/// Sizes of a measurement.
struct Scale {
    rounds: usize,
    rows: u64,
}

const FULL: Scale = Scale {
    rounds: 5,
    rows: 1_000_000,
};

const SMOKE: Scale = Scale {
    rounds: 1,
    rows: 2_000,
};

const ACCOUNT: &str = "account-0";

/// Names of the variants in rows.
mod name {
    pub const LOAD: &str = "water-ingest load";
    pub const INDEXED: &str = "psql \\copy into the same indexes";
    pub const BARE: &str = "psql \\copy without indexes";
}

/// Time between two looks at the loader's memory.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Compares everything.
pub async fn measure(smoke: bool) -> Result<Report> {
    let scale = if smoke { SMOKE } else { FULL };
    let database = Database::start().await?;
    let file = analyses(&[(ACCOUNT, scale.rows)])?;
    database.sql(
        "CREATE TABLE water.indexed (LIKE water.analyses INCLUDING DEFAULTS INCLUDING INDEXES); \
         CREATE TABLE water.bare (LIKE water.analyses INCLUDING DEFAULTS)",
    )?;
    let names = [name::INDEXED, name::BARE, name::LOAD];
    let rounds = take_turns(&names, scale.rounds, async |index| {
        let table = ["indexed", "bare", "analyses"][index];
        // Each turn begins with empty tables and nothing to write back.
        database.sql(&format!(
            "TRUNCATE water.{table}, water.analyses_accounts, water.analyses_anchors CASCADE"
        ))?;
        database.sql("CHECKPOINT")?;
        let began = Instant::now();
        let memory = match index {
            2 => load(&database, &file).await?,
            _ => copy(&database, &file, table)?,
        };
        let took = began.elapsed();
        let rows: u64 = database
            .sql(&format!("SELECT count(*) FROM water.{table}"))?
            .parse()?;
        ensure!(rows == scale.rows, "{rows} of {} rows came", scale.rows);
        Ok(Turn {
            cost: took.as_secs_f64() * 1e6 / rows as f64,
            counted: memory as f64 / 1e6,
        })
    })
    .await;
    let ratio = |row, reference| Row::new(row, "×", rounds.ratio(name::LOAD, reference));
    let cost = |name| Row::new(format!("{name}, time of a row"), "µs", rounds.cost(name));
    let rows = vec![
        ratio(
            "1 000 000 history rows loaded ÷ psql \\copy into the same indexes, time",
            name::INDEXED,
        )
        .at_most(1.5),
        ratio("the same ÷ psql \\copy without indexes", name::BARE),
        Row::new(
            "the loader's memory (VmHWM)",
            "MB",
            rounds.count(name::LOAD),
        )
        .at_most(100.0),
        cost(name::LOAD),
        cost(name::INDEXED),
        cost(name::BARE),
    ];
    Report::new(rows, &[("postgresql", database.version()?)])
}

/// Copies the file into a table. Its own memory is not counted.
fn copy(database: &Database, file: &Path, table: &str) -> Result<u64> {
    database.sql(&format!(
        "\\copy water.{table} (account_id, id, company_name, sector_code, dept_code, score, rating, created_at) \
         FROM '{}' CSV HEADER",
        file.display()
    ))?;
    Ok(0)
}

/// Loads the file, and returns the most memory of the loader that was seen, in bytes: it only grows, and is looked at
/// until the loader ends.
async fn load(database: &Database, file: &Path) -> Result<u64> {
    let mut command = database.loader("analyses", file)?;
    let command = command.stdout(Stdio::null()).stderr(Stdio::inherit());
    let mut loader = command.spawn().context("start the loader")?;
    let mut peak = 0;
    loop {
        if let Some(status) = loader.try_wait()? {
            ensure!(status.success(), "the loader ended with {status}");
            return Ok(peak);
        }
        // A loader that has just ended has no memory any more.
        peak = peak.max(cpu::peak_memory(loader.id()).unwrap_or(0));
        sleep(LOOK_EVERY).await;
    }
}
