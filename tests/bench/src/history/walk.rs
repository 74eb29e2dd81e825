//! A whole history walked as CSV pages through the gate, by one client, beside `psql \copy` of the
//! same rows in the same order; and the same walk under Enterprise, whose limits it meets.

use anyhow::{Result, ensure};
use tokio::time::Instant;

use super::gated::Gated;
use super::{LARGE, LARGE_KEY, Site};
use crate::cpu;
use crate::report::{Row, Target};
use crate::rounds::{Rounds, Turn, take_turns};

const COPY: &str = "psql \\copy of one account";
const WALK: &str = "walk through the gate";
const ENTERPRISE: &str = "walk under Enterprise";

/// Microseconds a row; what is counted is the service's memory in MB.
pub async fn measure(site: &Site, gated: &Gated) -> Rounds {
    take_turns(&[COPY, WALK], site.scale.rounds, async |index| {
        let began = Instant::now();
        let rows = match index {
            0 => copy(site)?,
            _ => gated.walker(LARGE_KEY).walk().await?,
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

/// One walk under Enterprise that heeds `Retry-After`: its 5xx; what is counted is its 429.
pub async fn measure_under_enterprise(site: &Site, gated: &Gated) -> Rounds {
    take_turns(&[ENTERPRISE], 1, async |_| {
        let walked = gated.walk_under_enterprise().await?;
        let (rows, expected) = (walked.rows, site.scale.large);
        ensure!(rows == expected, "{rows} of {expected} rows came");
        ensure!(walked.met_the_limit(), "no page was refused");
        Ok(Turn {
            cost: walked.failed as f64,
            counted: walked.refused as f64,
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

/// The row with a target, and those that explain it.
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
        Row::judged(
            "history, memory after walks (VmHWM)",
            "MB",
            rounds.count(WALK),
            Target::AtMost(100.0),
        ),
    ]
}

/// The target, and how often the walk had to wait.
pub fn rows_under_enterprise(rounds: &Rounds) -> Vec<Row> {
    vec![
        Row::judged(
            "the same walk under Enterprise, heeding Retry-After, 5xx",
            "",
            rounds.cost(ENTERPRISE),
            Target::AtMost(0.0),
        ),
        Row::said(
            "the same walk under Enterprise, 429",
            "",
            rounds.count(ENTERPRISE),
        ),
    ]
}
