//! Files with damage anywhere are refused as a whole or stored as an independent reader reads them. One dataset's are
//! tried in every run.

mod long;

use std::fs;
use std::path::Path;

use serde_json::Value;
use water_harness::Mutator;
use water_kit::independent::{columns, records};

use crate::command::Ingest;
use crate::state::State;

/// Number of inputs for each dataset, 200 in all; `WATER_FUZZ_INPUTS` sets another one. Each input is a separate
/// process, so they are few: the readers' own tests have many.
const INPUTS: usize = 40;

/// Flags that switch off the guards, which do not detect damage.
const GUARDS: &str = "--allow-missing --max-changed 100 ";

/// The dataset's files in `tests/corpus`.
fn corpus(dataset: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(dataset);
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |number| number.parse().unwrap())
}

/// Stored records of a dataset, a JSON array each.
fn stored(ingest: &Ingest, dataset: &str) -> Vec<Value> {
    let time = |column| format!("floor(extract(epoch FROM {column}) * 1000)::bigint");
    let history = |table: &str| {
        let created_at = time("created_at");
        format!(
            "SELECT jsonb_build_array(account_id, id, company_name, sector_code, dept_code, score, rating, {created_at}) \
             FROM water.{table}"
        )
    };
    let sql = match dataset {
        "stress" => {
            "SELECT jsonb_build_array(dept, stress_index, level) FROM water.stress".to_owned()
        }
        "risk" => format!(
            "SELECT jsonb_build_array(dept, flood, drought, overall, rating, {}) FROM water.risk",
            time("updated_at")
        ),
        "vigieau" => "SELECT jsonb_build_array(dept, level) FROM water.levels".to_owned(),
        history_of => history(history_of),
    };
    let rows = ingest.sql(&sql);
    rows.lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect()
}

/// Whether a stored record equals the file's. Values that the file does not give were derived, or kept.
fn is(stored: &Value, said: &Value) -> bool {
    let fields = stored
        .as_array()
        .unwrap()
        .iter()
        .zip(said.as_array().unwrap());
    let mut fields = fields.filter(|(_, said)| !said.is_null());
    fields.all(|(stored, said)| match (stored.as_f64(), said.as_f64()) {
        (Some(stored), Some(said)) => stored == said,
        _ => stored == said,
    })
}

async fn damage(dataset: &str) {
    let ingest = Ingest::new().await;
    let key = if columns(dataset)[0] == "accountId" {
        2
    } else {
        1
    };
    let guards = match dataset {
        "vigieau" => format!("{GUARDS}--allow-lifting "),
        _ if key == 1 => GUARDS.to_owned(),
        _ => String::new(),
    };
    let words = format!("load {dataset} - {guards}--force --as-of 2026-07-01");
    let corpus = corpus(dataset);
    let inputs = setting("WATER_FUZZ_INPUTS", INPUTS);
    let mutated = Mutator::new(corpus.clone(), setting("WATER_FUZZ_SEED", 1) as u64);
    let mut accepted = 0;
    // The good files are included, so that some are accepted in every run.
    for bytes in corpus.into_iter().chain(mutated.take(inputs)) {
        let before = State::read(&ingest).await;
        let run = ingest.run_with_stdin(&words, &bytes);
        let shown = || format!("{}\n{:?}", run.stderr, String::from_utf8_lossy(&bytes));
        match run.code {
            Some(0) => {
                accepted += 1;
                let said = records(dataset, &bytes).unwrap_or_else(|| panic!("{}", shown()));
                let stored = stored(&ingest, dataset);
                for said in &said {
                    let same = |one: &&Value| (0..key).all(|field| one[field] == said[field]);
                    let found = stored.iter().find(same);
                    let open = dataset == "vigieau" && said[1].is_null();
                    assert!(
                        open || found.is_some_and(|found| is(found, said)),
                        "{said} {found:?}\n{}",
                        shown()
                    );
                }
                if matches!(dataset, "stress" | "risk") {
                    assert_eq!(stored.len(), said.len(), "{}", shown());
                }
            }
            Some(2) => {
                let after = State::read(&ingest).await;
                assert!(
                    after == before,
                    "{}\n{}",
                    after.beside(&before, &before),
                    shown()
                );
            }
            other => panic!("exit {other:?}: {}", shown()),
        }
    }
    println!("{dataset}: {accepted} of {inputs} damaged files and the good ones were accepted");
}

#[tokio::test]
async fn damaged_risk_files_change_nothing_or_are_stored_as_they_say() {
    damage("risk").await;
}
