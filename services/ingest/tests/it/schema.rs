//! A load that is installed together with the operator waits for the schema, and for nothing else.

use std::io::{BufRead, BufReader, Write};

use serde_json::json;

use crate::command::Ingest;

const WORDS: &str = "load stress - --as-of 2026-06-01 --allow-missing --wait-for-schema";
const STRESS: &str = "dept,stressIndex\n34,1\n";

#[tokio::test]
async fn a_load_waits_for_the_migrations_of_its_version() {
    let ingest = Ingest::new().await;
    // The state before the newest migration.
    let newest = "(SELECT max(version) FROM water.migrations)";
    let set_aside = format!(
        "CREATE TABLE public.aside AS SELECT * FROM water.migrations WHERE version = {newest}; \
                             DELETE FROM water.migrations WHERE version = {newest}"
    );
    ingest.sql(&set_aside);
    let impatient = ingest.run_with_stdin(&format!("{WORDS} 0"), STRESS);
    assert_eq!(
        (impatient.code, impatient.stderr.as_str()),
        (
            Some(1),
            "the schema lacks this version's migrations: run water-ingest migrate as the owner\n"
        )
    );
    let mut load = ingest.command(&format!("{WORDS} 60")).spawn().unwrap();
    load.stdin
        .take()
        .unwrap()
        .write_all(STRESS.as_bytes())
        .unwrap();
    let mut said = String::new();
    let mut stderr = BufReader::new(load.stderr.take().unwrap());
    stderr.read_line(&mut said).unwrap();
    assert_eq!(said, "waiting for the schema to be migrated\n");
    ingest.sql("INSERT INTO water.migrations SELECT * FROM public.aside");
    assert!(load.wait().unwrap().success());
    assert_eq!(ingest.sql("SELECT stress_index FROM water.stress"), "1");
}

#[tokio::test]
async fn what_no_migration_mends_is_not_waited_for() {
    let ingest = Ingest::new().await;
    ingest.sql("REVOKE SELECT ON water.migrations FROM water_writer");
    let run = ingest.run_with_stdin(&format!("{WORDS} 60"), STRESS);
    assert_eq!((run.code, run.summary), (Some(1), json!("")));
    let waits = run.stderr.contains("waiting for the schema to be migrated");
    assert!(!waits, "{}", run.stderr);
}
