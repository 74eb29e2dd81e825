//! Synthetic data: repeatable, labelled, and enough for every endpoint.

use serde_json::json;
use water_database::departements;

use crate::command::{Ingest, say};

const README: &str = include_str!("../../../../README.md");

#[tokio::test]
async fn the_demo_fills_every_dataset_and_repeated_it_changes_nothing() {
    let ingest = Ingest::new().await;
    let first = ingest.run("demo");
    assert_eq!((first.code, first.stderr.as_str()), (Some(0), ""));
    let loads = first.summary["loads"].as_array().unwrap();
    let inserted: Vec<_> = loads
        .iter()
        .map(|load| load["inserted"].as_u64().unwrap())
        .collect();
    assert_eq!(inserted, [101, 101, 3600, 3600, 0]);
    assert_eq!(loads[4]["rows"], json!(96));
    let before = ingest.dump();
    let second = ingest.run("demo");
    let endings: Vec<_> = second.summary["loads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|load| &load["outcome"])
        .collect();
    assert_eq!(endings, ["unchanged"; 5]);
    assert_eq!(ingest.dump(), before);
}

#[tokio::test]
async fn each_demo_account_has_a_long_history() {
    let ingest = Ingest::new().await;
    ingest.run("demo --accounts 2 --rows-per-account 1001");
    for history in ["analyses", "audits"] {
        let counts =
            format!("SELECT account_id, count(*) FROM water.{history} GROUP BY 1 ORDER BY 1");
        assert_eq!(ingest.sql(&counts), "demo-1|1001\ndemo-2|1001");
    }
}

#[tokio::test]
async fn invented_data_is_labelled_and_the_levels_are_the_registers_of_2_july_2026() {
    let ingest = Ingest::new().await;
    ingest.run("demo --accounts 1 --rows-per-account 1 --seed 9");
    let provenance = ingest.run("provenance").summary;
    let loads = provenance.as_array().unwrap();
    assert_eq!(loads.len(), 5);
    for load in &loads[1..] {
        let label = ["synthetic", "source"].map(|name| &load[name]);
        let source = json!("synthetic: water-ingest demo --seed 9");
        assert_eq!(label, [&json!(true), &source]);
    }
    let real = ["dataset", "synthetic", "asOf", "licence", "sourceUrl"].map(|name| &loads[0][name]);
    assert_eq!(
        real,
        [
            &json!("vigieau"),
            &json!(false),
            &json!("2026-07-02T00:00:00.000Z"),
            &json!("Licence Ouverte 2.0"),
            &json!("https://www.data.gouv.fr/datasets/662a5e2cd71b24df5e9a0827"),
        ]
    );
    let stored = departements::snapshot(&ingest.reader()).await.unwrap();
    let stress = stored.stress.unwrap();
    assert_eq!(stress.updated_at.to_string(), "2026-07-02T00:00:00.000Z");
    let level = |code| {
        let mut records = stress.records.iter();
        let record = records.find(|record| record.departement.code == code);
        record.unwrap().level.as_str()
    };
    assert_eq!(
        ["34", "75", "03"].map(level),
        ["alerte", "vigilance", "crise"]
    );
    let derived =
        "SELECT string_agg(dept, ' ' ORDER BY dept) FROM water.stress WHERE level_derived";
    assert_eq!(ingest.sql(derived), "971 972 973 974 976");
}

#[tokio::test]
async fn the_first_answer_that_the_projects_readme_shows_is_what_the_demo_gives() {
    let ingest = Ingest::new().await;
    ingest.run("demo --accounts 1 --rows-per-account 1");
    let stored = departements::snapshot(&ingest.reader()).await.unwrap();
    let stress = stored.stress.unwrap();
    let mut records = stress.records.iter();
    let record = records.find(|record| record.departement.code == "34");
    let record = serde_json::to_string(record.unwrap()).unwrap();
    let answer = format!(
        r#"{{"count":1,"updatedAt":"{}","data":[{record}]"#,
        stress.updated_at
    );
    assert!(README.contains(&answer), "README.md does not show {answer}");
}

#[test]
fn files_are_written_without_the_flags_of_a_load() {
    for flag in [
        "--dry-run",
        "--force",
        "--allow-missing",
        "--allow-lifting",
        "--max-changed 10",
    ] {
        let run = say(&format!("demo --write-to folder {flag}"), "");
        assert_eq!(run.code, Some(64), "{flag}");
    }
}

#[tokio::test]
async fn the_demo_does_not_replace_measured_data() {
    let ingest = Ingest::new().await;
    ingest.run_with_stdin(
        "load stress - --as-of 2025-01-01 --allow-missing",
        "dept,stressIndex\n34,1\n",
    );
    let run = ingest.run("demo");
    assert_eq!(run.code, Some(3));
    assert_eq!(
        run.stderr,
        "stress: synthetic data would replace measured data: add --force if this is meant\n"
    );
}

#[tokio::test]
async fn the_demos_files_are_what_the_demo_loads() {
    let ingest = Ingest::new().await;
    let folder = ingest.folder();
    let written = ingest.run(&format!("demo --write-to {}", folder.display()));
    assert_eq!(written.code, Some(0));
    assert_eq!(ingest.run("demo").code, Some(0));
    for (dataset, file, as_of, synthetic) in [
        ("analyses", "synthetic-analyses.csv", "2026-01-01", true),
        ("audits", "synthetic-audits.csv", "2026-01-01", true),
        ("risk", "synthetic-risk.csv", "2026-01-01", true),
        ("stress", "synthetic-stress.csv", "2026-01-01", true),
        ("vigieau", "vigieau-2026-07-02.json", "2026-07-02", false),
    ] {
        let file = folder.join(file);
        let run = ingest.run(&format!(
            "load {dataset} {} --as-of {as_of}",
            file.display()
        ));
        assert_eq!(
            // The file's rows say it, without a flag.
            (run.code, &run.summary["outcome"], &run.summary["synthetic"]),
            (Some(0), &json!("provenance_updated"), &json!(synthetic)),
            "{}",
            run.stderr
        );
    }
    let note = std::fs::read_to_string(folder.join("vigieau-2026-07-02.SOURCE.md")).unwrap();
    assert!(note.contains("Licence Ouverte 2.0"), "{note}");
}
