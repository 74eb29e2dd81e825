//! The national drought register's levels: set, kept or reported.

use serde_json::{Value, json};

use crate::command::Ingest;

fn levels(ingest: &Ingest) -> String {
    ingest.sql("SELECT string_agg(dept || ' ' || level, ', ' ORDER BY dept) FROM water.stress")
}

#[tokio::test]
async fn levels_are_set_kept_or_reported_and_an_older_index_leaves_them() {
    let ingest = Ingest::new().await;
    let stress = "dept,stressIndex\n01,2.5\n34,2.5\n75,2.5\n";
    ingest.loads("stress - --as-of 2023-01-01 --allow-missing", stress);
    let register = json!([
        {"code": "01", "nom": "Ain", "niveauGraviteMax": "crise"},
        {"code": "34", "nom": "Hérault", "niveauGraviteMax": null},
        {"code": "75", "nom": "Paris", "niveauGraviteMax": "unavailable"},
        {"code": "976", "nom": "Mayotte", "niveauGraviteMax": "vigilance"},
    ]);
    ingest.file("vigieau.json", register.to_string());
    let run = ingest.loads(
        "vigieau vigieau.json --as-of 2026-07-01 --allow-missing",
        "",
    );
    assert_eq!(
        run.stderr,
        "vigieau.json: stored, and served once there is a stress record of these départements: 976\n\
         vigieau.json: the stored level was kept, for the file gives none, an older one or one of the register's day: 75\n"
    );
    assert_eq!(levels(&ingest), "01 crise, 34 normal, 75 alerte");

    let lower = "dept,stressIndex\n01,0.5\n34,0.5\n75,0.5\n976,0.5\n";
    let run = ingest.loads("stress - --as-of 2024-01-01 --max-changed 100", lower);
    let counts = ["kept", "derived"].map(|name| &run.summary[name]);
    assert_eq!(counts, [&json!(3), &json!(1)]);
    let kept = "01 crise, 34 normal, 75 normal, 976 vigilance";
    assert_eq!(levels(&ingest), kept);
}

#[tokio::test]
async fn a_real_day_is_read_back_as_it_was() {
    let ingest = Ingest::new().await;
    let all = water_domain::departement::all().iter();
    let rows: String = all.map(|one| format!("{},2.5\n", one.code)).collect();
    let stress = format!("dept,stressIndex\n{rows}");
    ingest.loads("stress - --as-of 2023-01-01", stress);
    let register = include_str!("../../data/vigieau-2026-07-02.json");
    let run = ingest.loads("vigieau - --as-of 2026-07-02", register);
    assert_eq!(
        (run.stderr.as_str(), &run.summary["rows"]),
        ("", &json!(96))
    );
    let stored = levels(&ingest);
    let stored: Vec<&str> = stored.split(", ").collect();
    let register: Vec<Value> = serde_json::from_str(register).unwrap();
    for entry in register {
        let (code, level) = (entry["code"].as_str(), entry["niveauGraviteMax"].as_str());
        let record = format!("{} {}", code.unwrap(), level.unwrap_or("normal"));
        assert!(stored.contains(&&*record), "{record} in {stored:?}");
    }
}

#[tokio::test]
async fn levels_that_end_everywhere_are_refused_and_loaded_by_the_next_days_load_which_says_so() {
    let ingest = Ingest::new().await;
    let answer = |level: Value| {
        let all = water_domain::departement::all().iter();
        let entries = all.map(|one| json!({"code": one.code, "niveauGraviteMax": level}));
        Value::Array(entries.collect()).to_string()
    };
    ingest.loads("vigieau - --as-of 2026-06-01", answer(json!("alerte")));
    let (none, words) = (answer(Value::Null), "vigieau - --as-of 2026-06-02");
    let refused = ingest.run_with_stdin(&format!("load {words}"), &none);
    assert_eq!(
        (refused.code, &refused.summary["outcome"]),
        (Some(3), &json!("refused"))
    );
    ingest.sql("UPDATE water.refused_liftings SET refused_at = '2026-06-02T04:30:00Z'");
    let healed = ingest.loads("vigieau - --as-of 2026-06-03", &none);
    let refused_at = &healed.summary["liftingRefusedAt"];
    assert_eq!(refused_at, "2026-06-02T04:30:00.000Z");
    assert!(
        healed.stderr.contains(
            "stdin: levels that ended in most départements were refused at \
             2026-06-02T04:30:00.000Z: they still end, and are loaded\n"
        ),
        "{}",
        healed.stderr
    );
}

#[tokio::test]
async fn an_odd_entry_keeps_its_level_and_is_named_while_the_others_are_loaded() {
    let ingest = Ingest::new().await;
    let (mut stress, mut entries) = ("dept,stressIndex\n".to_owned(), Vec::new());
    for one in &water_domain::departement::all()[..30] {
        stress += &format!("{},0.5\n", one.code);
        entries.push(json!({"code": one.code, "niveauGraviteMax": "alerte"}));
    }
    ingest.loads("stress - --as-of 2026-01-01 --allow-missing", stress);
    let words = "vigieau - --allow-missing --max-changed 100 --as-of";
    let register = Value::Array(entries.clone()).to_string();
    ingest.loads(&format!("{words} 2026-07-01"), register);

    let parts = json!({"code": "02", "niveauGraviteMax": null, "niveauGraviteSupMax": "crise"});
    entries[0] = json!({"code": "01"});
    entries[1] = parts;
    entries[2] = json!({"code": "03", "niveauGraviteMax": "crise"});
    entries.push(json!({"code": "978", "niveauGraviteMax": "crise"}));
    let register = Value::Array(entries).to_string();
    let run = ingest.loads(&format!("{words} 2026-07-02"), register);
    let named = ["unreadable", "skipped"].map(|name| run.summary[name].clone());
    assert_eq!(named, [json!(["01", "02"]), json!(["978"])]);
    let levels = levels(&ingest);
    assert!(
        levels.starts_with("01 alerte, 02 alerte, 03 crise, 04 alerte"),
        "{levels}"
    );
}
