//! A load of a history beside `psql \copy` of the same file, which checks nothing.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use tokio::time::Instant;

use crate::database::{Database, Loaded, analyses_file};
use crate::report::{Report, Row, Target};
use crate::rounds::{Rounds, Turn, take_turns};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
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
    rows: 5_000,
};

/// How the variants are called in rows, in the order of their turns.
mod name {
    pub const COPY: &str = "psql \\copy, the same indexes";
    pub const BARE: &str = "psql \\copy, no index";
    pub const LOAD: &str = "ingest";
    pub const AGAIN: &str = "ingest, the same file again";
    pub const NEWER: &str = "ingest, the same rows of a newer date";
    pub const ALL: [&str; 5] = [COPY, BARE, LOAD, AGAIN, NEWER];
}

/// Proves that everything that is compared runs.
pub async fn smoke() -> Result<()> {
    let (rows, _) = compare(SMOKE).await?;
    let doubts: Vec<&str> = rows.iter().filter_map(Row::doubt).collect();
    ensure!(doubts.is_empty(), "{}", doubts.join("\n"));
    println!("the loader and psql load the same rows");
    Ok(())
}

/// Measures everything.
pub async fn measure() -> Result<Report> {
    let (rows, postgres) = compare(FULL).await?;
    Ok(Report::new(rows)?.with_versions([("postgresql", postgres)].into()))
}

async fn compare(scale: Scale) -> Result<(Vec<Row>, String)> {
    let database = Database::start().await?;
    let each = scale.rows / 50;
    let accounts: Vec<String> = (0..50).map(|number| format!("account-{number}")).collect();
    let accounts: Vec<_> = accounts.iter().map(|name| (name.as_str(), each)).collect();
    let file = analyses_file(&accounts)?;
    database.sql(
        "CREATE TABLE public.indexed (LIKE water.analyses INCLUDING ALL); \
         CREATE TABLE public.bare (LIKE water.analyses INCLUDING DEFAULTS)",
    )?;
    let rounds = take_turns(&name::ALL, scale.rounds, async |index| {
        turn(&database, &file, name::ALL[index], scale.rows).await
    })
    .await;
    Ok((rows(&rounds), database.version()?))
}

/// Loads the file once; the cost is microseconds a row, what is counted is memory in MB.
async fn turn(database: &Database, file: &Path, variant: &str, rows: u64) -> Result<Turn> {
    let file = file.to_str().context("the file's path is text")?;
    database.sql(match variant {
        name::COPY => "TRUNCATE public.indexed",
        name::BARE => "TRUNCATE public.bare",
        name::LOAD => {
            "TRUNCATE water.analyses, water.analyses_accounts, water.analyses_anchors, \
             water.analyses_deletions"
        }
        _ => "VACUUM water.analyses",
    })?;
    database.sql("CHECKPOINT")?;
    let load = async |as_of| {
        let words = ["load", "analyses", file, "--as-of", as_of];
        database.ingest(&words).await
    };
    let Loaded { took, memory } = match variant {
        name::COPY => copy(database, file, "public.indexed")?,
        name::BARE => copy(database, file, "public.bare")?,
        name::NEWER => load("2026-01-02").await?,
        _ => load("2026-01-01").await?,
    };
    let table = match variant {
        name::COPY => "public.indexed",
        name::BARE => "public.bare",
        _ => "water.analyses",
    };
    let stored: u64 = database
        .sql(&format!("SELECT count(*) FROM {table}"))?
        .parse()?;
    ensure!(stored == rows, "{stored} of {rows} rows are stored");
    Ok(Turn {
        cost: took.as_secs_f64() * 1e6 / rows as f64,
        counted: memory as f64 / 1e6,
    })
}

fn copy(database: &Database, file: &str, table: &str) -> Result<Loaded> {
    let began = Instant::now();
    database.sql(&format!(
        "\\copy {table} (account_id, id, company_name, sector_code, dept_code, score, rating, created_at) \
         FROM '{file}' CSV HEADER"
    ))?;
    Ok(Loaded {
        took: began.elapsed(),
        memory: 0,
    })
}

/// The rows with targets, and those that explain them.
fn rows(rounds: &Rounds) -> Vec<Row> {
    let said = |row, variant, reference| Row::said(row, "×", rounds.ratio(variant, reference));
    let cost = |row, variant| Row::said(row, "µs a row", rounds.cost(variant));
    vec![
        Row::judged(
            "ingest of 1 000 000 rows ÷ psql \\copy with the same indexes",
            "×",
            rounds.ratio(name::LOAD, name::COPY),
            Target::AtMost(1.5),
        ),
        Row::judged(
            "ingest of 1 000 000 rows, memory (VmHWM)",
            "MB",
            rounds.count(name::LOAD),
            Target::AtMost(100.0),
        ),
        said(
            "ingest ÷ psql \\copy without an index",
            name::LOAD,
            name::BARE,
        ),
        said(
            "the same file again ÷ its first load",
            name::AGAIN,
            name::LOAD,
        ),
        said(
            "order guard: the same rows of a newer date ÷ of the same date",
            name::NEWER,
            name::AGAIN,
        ),
        cost("psql \\copy with the same indexes", name::COPY),
        cost("ingest", name::LOAD),
        cost("ingest, the same file again", name::AGAIN),
        cost("ingest, the same rows of a newer date", name::NEWER),
    ]
}
