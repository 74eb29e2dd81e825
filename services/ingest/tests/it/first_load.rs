//! The first load of real files: no file needs a flag that permits something.

use std::fmt::Write;

use serde_json::json;

use crate::command::Ingest;

/// A file with a row for each of France's départements.
fn of_all(header: &str, values: &str) -> String {
    let mut file = format!("{header}\n");
    for departement in water_domain::departement::all() {
        writeln!(file, "{},{},{values}", departement.code, departement.name).unwrap();
    }
    file
}

#[tokio::test]
async fn the_first_load_of_each_dataset_needs_no_flag() {
    let ingest = Ingest::new().await;
    let real = include_str!("../../data/vigieau-2026-07-02.json").to_owned();
    for (words, content, rows) in [
        ("vigieau - --as-of 2026-07-02", real, 96),
        (
            "stress - --as-of 2026-01-01",
            of_all("dept,name,stressIndex", "2.5"),
            101,
        ),
        (
            "risk - --as-of 2026-01-01",
            of_all("dept,name,flood,drought,overall", "1,2,3"),
            101,
        ),
    ] {
        let run = ingest.loads(words, content);
        assert_eq!(run.summary["rows"], json!(rows));
        assert_eq!(run.summary["warnings"], json!(0));
    }
    assert_eq!(ingest.run("verify").code, Some(0));
}
