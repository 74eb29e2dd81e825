//! The national drought register's levels, invented and, where the file is there, real ones.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::fixture::Fixture;

/// Every département with the same index, so that each has a record to take a level.
fn stress() -> String {
    let rows = water_domain::departement::all()
        .iter()
        .map(|departement| format!("{},2.5\n", departement.code));
    std::iter::once("dept,stressIndex\n".to_owned())
        .chain(rows)
        .collect()
}

#[tokio::test]
async fn levels_are_set_kept_or_reported() {
    let fixture = Fixture::new().await;
    fixture.run_with_stdin(
        "load stress - --as-of 2023-01-01 --allow-missing",
        "dept,stressIndex\n01,2.5\n34,2.5\n75,2.5\n",
    );
    let register = json!([
        {"code": "01", "nom": "Ain", "niveauGraviteMax": "crise"},
        {"code": "34", "nom": "Hérault", "niveauGraviteMax": null},
        {"code": "75", "nom": "Paris", "niveauGraviteMax": "unavailable"},
        {"code": "976", "nom": "Mayotte", "niveauGraviteMax": "vigilance"},
    ]);
    fixture.file("vigieau.json", register.to_string());
    let run = fixture.run("load vigieau vigieau.json --as-of 2026-07-01");
    assert_eq!(run.code, Some(0));
    assert_eq!(
        run.stderr,
        "vigieau.json: stored, and served once there is a stress record of these départements: 976\n\
         vigieau.json: the stored level was kept, for the file gives none or an older one: 75\n"
    );
    assert_eq!(
        levels(&fixture).await,
        levels_of(&[("01", "crise"), ("34", "normal"), ("75", "alerte")])
    );
}

#[tokio::test]
async fn a_yearly_index_does_not_overwrite_the_registers_levels() {
    let fixture = Fixture::new().await;
    fixture.run_with_stdin(
        "load stress - --as-of 2023-01-01 --allow-missing",
        "dept,stressIndex\n01,2.5\n",
    );
    let register = json!([{"code": "01", "nom": "Ain", "niveauGraviteMax": "crise"}]);
    fixture.run_with_stdin("load vigieau - --as-of 2026-07-01", register.to_string());
    let run = fixture.run_with_stdin(
        "load stress - --as-of 2024-01-01 --max-changed 100",
        "dept,stressIndex\n01,0.5\n",
    );
    assert_eq!(
        (run.code, &run.summary["kept"], &run.summary["derived"]),
        (Some(0), &json!(1), &json!(0))
    );
    assert_eq!(levels(&fixture).await, levels_of(&[("01", "crise")]));
}

#[tokio::test]
async fn a_first_register_before_the_first_index_is_not_lost() {
    let fixture = Fixture::new().await;
    let register = json!([{"code": "01", "nom": "Ain", "niveauGraviteMax": "crise"}]);
    let run = fixture.run_with_stdin("load vigieau - --as-of 2026-07-01", register.to_string());
    assert_eq!(
        (run.code, &run.summary["outcome"]),
        (Some(0), &json!("loaded"))
    );
    assert!(fixture.snapshot().await.stress.is_none());
    fixture.run_with_stdin(
        "load stress - --as-of 2024-01-01 --allow-missing",
        "dept,stressIndex\n01,0.5\n",
    );
    assert_eq!(levels(&fixture).await, levels_of(&[("01", "crise")]));
}

#[tokio::test]
async fn a_register_that_is_cut_off_is_held_back() {
    let fixture = Fixture::new().await;
    let entry = |code: &str| json!({"code": code, "niveauGraviteMax": "crise"});
    let whole = json!([entry("01"), entry("34")]).to_string();
    fixture.run_with_stdin("load vigieau - --as-of 2026-07-01", &whole);
    let cut = json!([entry("01")]).to_string();
    let run = fixture.run_with_stdin("load vigieau - --as-of 2026-07-02", &cut);
    assert_eq!(run.code, Some(3));
    assert_eq!(
        run.stderr,
        "vigieau: the file leaves out départements that have a legal level: 34: \
         add --allow-missing if this is meant\n"
    );
    let other = whole.replace("crise", "vigilance");
    let run = fixture.run_with_stdin("load vigieau - --as-of 2026-07-02", &other);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (
            Some(3),
            "vigieau: 2 of 2 measured records would move far, more than 50 percent: \
             raise --max-changed if this is meant\n"
        )
    );
    let words = "load vigieau - --as-of 2026-07-02 --max-changed 100";
    assert_eq!(fixture.run_with_stdin(words, &other).code, Some(0));
}

#[tokio::test]
async fn three_real_days_are_read_back_as_they_were() {
    let Some(days) = real_days() else { return };
    let fixture = Fixture::new().await;
    fixture.run_with_stdin("load stress - --as-of 2023-01-01", stress());
    assert_eq!(days.len(), 3);
    for (date, register) in days {
        let run = fixture.run_with_stdin(
            &format!("load vigieau - --as-of {date}"),
            register.to_string(),
        );
        assert_eq!(
            (run.code, run.stderr.as_str(), &run.summary["rows"]),
            (Some(0), "", &json!(96))
        );
        let stored = levels(&fixture).await;
        for entry in register.as_array().unwrap() {
            let level = entry["niveauGraviteMax"].as_str().unwrap_or("normal");
            assert_eq!(
                stored[entry["code"].as_str().unwrap()],
                level,
                "{date} {entry}"
            );
        }
    }
}

/// VigiEau's answer of each day, from the folder `WATER_TEST_VIGIEAU`, by default `../shared/data`
/// beside the repository.
fn real_days() -> Option<BTreeMap<String, Value>> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("WATER_TEST_VIGIEAU").map_or(beside, PathBuf::from);
    let path = folder.join("vigieau_departements_2026-06-29_2026-07-02.csv");
    let Ok(text) = fs::read_to_string(&path) else {
        let name = path.display();
        #[expect(
            clippy::explicit_write,
            reason = "a passing test swallows eprintln!, and this must be seen"
        )]
        writeln!(
            std::io::stderr(),
            "not run: real alert levels, for {name} is not there (see WATER_TEST_VIGIEAU)"
        )
        .unwrap();
        return None;
    };
    let mut days = BTreeMap::new();
    for row in text.lines().skip(1) {
        let fields: Vec<_> = row.split(',').collect();
        let level = Some(fields[3]).filter(|level| !level.is_empty());
        let entry = json!({"code": fields[1], "nom": fields[2], "niveauGraviteMax": level});
        let day: &mut Value = days
            .entry(fields[0].to_owned())
            .or_insert_with(|| json!([]));
        day.as_array_mut().unwrap().push(entry);
    }
    Some(days)
}

async fn levels(fixture: &Fixture) -> BTreeMap<String, String> {
    let records = fixture.snapshot().await.stress.unwrap().records;
    records
        .iter()
        .map(|record| (record.departement.code.to_owned(), record.level.to_string()))
        .collect()
}

fn levels_of(levels: &[(&str, &str)]) -> BTreeMap<String, String> {
    levels
        .iter()
        .map(|(code, level)| ((*code).to_owned(), (*level).to_owned()))
        .collect()
}
