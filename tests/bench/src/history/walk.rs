//! A whole history walked as CSV pages through the gate, by one client, beside `psql \copy` of the
//! same rows in the same order.

use anyhow::{Result, ensure};
use tokio::time::Instant;

use super::gated::Gated;
use super::{LARGE, LARGE_KEY, Site};
use crate::cpu;
use crate::report::{Row, Target};
use crate::rounds::{Rounds, Turn, take_turns};

const COPY: &str = "psql \\copy of one account";
const WALK: &str = "walk through the gate";

/// Microseconds a row; what is counted is the service's memory in MB.
pub async fn measure(site: &Site, gated: &Gated) -> Rounds {
    take_turns(&[COPY, WALK], site.scale.rounds, async |index| {
        let began = Instant::now();
        let rows = match index {
            0 => copy(site)?,
            _ => gated.walk(LARGE_KEY).await?,
        };
        let took = began.elapsed();
        let expected = site.scale.large;
        ensure!(rows == expected, "{rows} of {expected} rows came");
        let memory = cpu::peak_memory(site.service.id())?;
        Ok(Turn {
            cost: took.as_secs_f64() * 1e6 / rows as f64,
            counted: memory as f64 / 1e6,
        })
    })
    .await
}

/// Copies to where nothing is kept, as the walk's client keeps nothing, and returns how many rows.
fn copy(site: &Site) -> Result<u64> {
    let said = site.database.sql(&format!(
        "\\unset QUIET\n\
         \\copy (SELECT id, company_name, sector_code, dept_code, score, rating, created_at \
         FROM water.analyses WHERE account_id = '{LARGE}' ORDER BY id) TO '/dev/null' CSV HEADER"
    ))?;
    Ok(said.trim_start_matches("COPY ").parse()?)
}

/// The target of performance.md, and what explains it.
pub fn rows(rounds: &Rounds) -> Vec<Row> {
    vec![
        // Time a row of \copy by that of the walk is rows a second the other way round.
        Row::judged(
            "1 000 000 rows of one account as CSV through the gate, rows a second ÷ psql \\copy",
            "×",
            rounds.ratio(COPY, WALK),
            Target::AtLeast(0.3),
        ),
        Row::said(
            "walk through the gate, time of a row",
            "µs",
            rounds.cost(WALK),
        ),
        Row::said(
            "psql \\copy of one account, time of a row",
            "µs",
            rounds.cost(COPY),
        ),
        Row::said(
            "history, memory after a walk (VmHWM)",
            "MB",
            rounds.count(WALK),
        ),
    ]
}
