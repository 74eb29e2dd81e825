//! The first load of real files: none needs a flag that permits something.

use std::fmt::Write;

use serde_json::json;

use crate::fixture::Fixture;

/// A file with a row for each of France's départements, as `../shared/data/departements.csv` names them.
fn of_all(header: &str, values: &str) -> String {
    let mut file = format!("{header}\n");
    for departement in water_domain::departement::all() {
        writeln!(file, "{},{},{values}", departement.code, departement.name).unwrap();
    }
    file
}

#[tokio::test]
async fn the_first_load_of_each_dataset_needs_no_flag() {
    let fixture = Fixture::new().await;
    let real = include_str!("../../data/vigieau-2026-07-02.json").to_owned();
    for (words, content, rows) in [
        ("load vigieau - --as-of 2026-07-02", real, 96),
        (
            "load stress - --as-of 2026-01-01",
            of_all("dept,name,stressIndex", "2.5"),
            101,
        ),
        (
            "load risk - --as-of 2026-01-01",
            of_all("dept,name,flood,drought,overall", "1,2,3"),
            101,
        ),
    ] {
        let run = fixture.run_with_stdin(words, content);
        assert_eq!(
            (run.code, &run.summary["rows"]),
            (Some(0), &json!(rows)),
            "{}",
            run.stderr
        );
        assert_eq!(run.summary["warnings"], json!(0));
    }
    assert_eq!(fixture.run("verify").code, Some(0));
}
