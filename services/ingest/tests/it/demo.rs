//! Synthetic data: repeatable, labelled, and enough for every endpoint.

use serde_json::json;
use water_database::history;
use water_domain::Page;

use crate::fixture::Fixture;

#[tokio::test]
async fn the_demo_fills_every_dataset_and_repeated_it_changes_nothing() {
    let fixture = Fixture::new().await;
    let first = fixture.run("demo");
    assert_eq!((first.code, first.stderr.as_str()), (Some(0), ""));
    let loads = first.summary["loads"].as_array().unwrap();
    let inserted: Vec<_> = loads
        .iter()
        .map(|load| load["inserted"].as_u64().unwrap())
        .collect();
    assert_eq!(inserted, [101, 101, 3600, 3600]);
    let before = fixture.dump();
    let second = fixture.run("demo");
    let endings: Vec<_> = second.summary["loads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|load| &load["outcome"])
        .collect();
    assert_eq!(endings, ["unchanged"; 4]);
    assert_eq!(fixture.dump(), before);
}

#[tokio::test]
async fn each_demo_account_has_a_long_history() {
    let fixture = Fixture::new().await;
    fixture.run("demo --accounts 2 --rows-per-account 1001");
    for id in ["demo-1", "demo-2"] {
        let (account, page) = (
            id.parse().unwrap(),
            Page::parse(None, Some("1000")).unwrap(),
        );
        let analyses = history::analyses(&fixture.reader, &account, page)
            .await
            .unwrap();
        let audits = history::audits(&fixture.reader, &account, page)
            .await
            .unwrap();
        assert_eq!([analyses.total, audits.total], [1001, 1001]);
        assert_eq!([analyses.rows.len(), audits.rows.len()], [1, 1]);
    }
}

#[tokio::test]
async fn what_was_invented_is_labelled_as_synthetic() {
    let fixture = Fixture::new().await;
    fixture.run("demo --accounts 1 --rows-per-account 1 --seed 9");
    let provenance = fixture.run("provenance").summary;
    for load in provenance.as_array().unwrap() {
        assert_eq!(load["synthetic"], json!(true));
        assert_eq!(
            load["source"],
            json!("synthetic: water-ingest demo --seed 9")
        );
    }
    assert_eq!(provenance.as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn the_demo_does_not_replace_measured_data() {
    let fixture = Fixture::new().await;
    fixture.run_with_stdin(
        "load stress - --as-of 2025-01-01 --allow-missing",
        "dept,stressIndex\n34,1\n",
    );
    let run = fixture.run("demo");
    assert_eq!(run.code, Some(3));
    assert_eq!(
        run.stderr,
        "stress: synthetic data would replace measured data: add --force if this is meant\n"
    );
}

#[tokio::test]
async fn the_demos_files_are_what_the_demo_loads() {
    let fixture = Fixture::new().await;
    let folder = fixture.folder();
    let written = fixture.run(&format!("demo --write-to {}", folder.display()));
    assert_eq!(written.code, Some(0));
    assert_eq!(fixture.run("demo").code, Some(0));
    for (dataset, as_of) in [
        ("analyses", "2026-01-01"),
        ("audits", "2026-01-01"),
        ("risk", "2026-01-01"),
    ] {
        let file = folder.join(format!("synthetic-{dataset}.csv"));
        let run = fixture.run(&format!(
            "load {dataset} {} --as-of {as_of}",
            file.display()
        ));
        assert_eq!(
            // No flag says it: the file's rows do.
            (run.code, &run.summary["outcome"], &run.summary["synthetic"]),
            (Some(0), &json!("unchanged"), &json!(true)),
            "{}",
            run.stderr
        );
    }
}
