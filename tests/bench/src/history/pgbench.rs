//! pgbench with the question that the service asks, word for word.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use water_harness::scratch_directory;

use crate::database::Database;

use super::{LARGE, LIMIT, SESSIONS};

/// Settings of the service's sessions.
const SETTINGS: &str = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off \
    -c enable_bitmapscan=off -c jit=off -c statement_timeout=2000 \
    -c client_connection_check_interval=100";

/// Last question of the service.
const QUESTION: &str = "SELECT query FROM pg_stat_activity \
    WHERE usename = 'water_reader' AND query LIKE '%water.analyses%' LIMIT 1";

/// Script, and the server that it asks.
pub struct Pgbench<'a> {
    database: &'a Database,
    script: PathBuf,
}

impl<'a> Pgbench<'a> {
    /// Pages at random offsets up to `last`, by the statement of the service's last page.
    pub fn asking(database: &'a Database, last: u64) -> Result<Self> {
        let question = database.sql(QUESTION)?;
        ensure!(
            question.contains("$3"),
            "this is not the question for a page: {question}"
        );
        let question = question
            .replace("$1", ":account")
            .replace("$2", ":limit")
            .replace("$3", ":offset")
            .replace('\n', " ");
        let script = scratch_directory("pgbench")?.join("page.sql");
        let text = format!("\\set limit {LIMIT}\n\\set offset random(0, {last})\n{question};\n");
        fs::write(&script, text)?;
        Ok(Self { database, script })
    }

    /// Time from one page to the next, of all sessions together, in microseconds.
    pub fn turn(&self, duration: Duration) -> Result<f64> {
        let mut pgbench = self.database.command("pgbench");
        pgbench
            .args(["--no-vacuum", "--protocol=prepared", "--jobs=2"])
            .arg(format!("--client={SESSIONS}"))
            .arg(format!("--time={}", duration.as_secs()))
            .arg(format!("--define=account={LARGE}"))
            .arg("--file")
            .arg(&self.script)
            .arg(self.database.url("water_reader"))
            .env("PGOPTIONS", SETTINGS);
        let output = pgbench.output().context("start pgbench")?;
        let (text, error) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        ensure!(output.status.success(), "pgbench: {error}");
        let speed = text.lines().find_map(|line| line.strip_prefix("tps = "));
        let speed = speed.and_then(|rest| rest.split(' ').next());
        let speed: f64 = speed.context("pgbench's speed")?.parse()?;
        Ok(1e6 / speed)
    }
}
