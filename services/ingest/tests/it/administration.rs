//! Setup by an administrator, from an empty server to a migrated database.

use serde_json::json;
use water_harness::Postgres;

use crate::command::{Ingest, command, run, say};

#[tokio::test]
async fn the_bootstrap_script_makes_a_server_ready_for_migrations_and_may_run_twice() {
    let server = Postgres::start().await.unwrap();
    let url = server.create_database().unwrap().url();
    let script = say("bootstrap-sql", "");
    assert_eq!(script.code, Some(0));
    let script = script.summary.as_str().unwrap().to_owned();
    let passwords = [
        ("owner_password", "o"),
        ("writer_password", "w"),
        ("reader_password", "r"),
    ];
    for _ in 0..2 {
        server.psql("postgres", &script, &passwords).unwrap();
    }
    let url = |role: &str| {
        let (start, _) = url.rsplit_once('/').unwrap();
        format!("{start}/water").replace("postgres@", &format!("{role}@"))
    };
    let with = |words: &str, role: &str| {
        let mut command = command(words);
        command.env("WATER_POSTGRES_URL", url(role));
        run(command, b"")
    };
    let first = with("migrate", "water_owner");
    assert_eq!(
        (first.code, &first.summary),
        (
            Some(0),
            &json!({"applied": [
                "V1__datasets_and_histories",
                "V2__levels_confirmations_and_purges",
                "V3__versions_deletions_and_sources",
                "V4__changes_in_order",
                "V5__refused_liftings",
                "V6__version_ids",
                "V7__deletions_describe_a_moment",
                "V8__sources_of_accounts_and_dates_of_records"
            ]})
        )
    );
    assert_eq!(
        with("migrate", "water_owner").summary,
        json!({"applied": []})
    );
    assert_eq!(
        with("demo --accounts 1 --rows-per-account 1", "water_writer").code,
        Some(0)
    );
    let denied = with("migrate", "water_writer");
    assert_eq!(denied.code, Some(1), "{}", denied.stderr);
}

#[tokio::test]
async fn an_administrator_who_is_no_superuser_can_run_the_script() {
    let server = Postgres::start().await.unwrap();
    server
        .sql("postgres", "CREATE ROLE administrator CREATEDB CREATEROLE")
        .unwrap();
    let script = say("bootstrap-sql", "");
    let script = format!(
        "SET ROLE administrator;\n{}",
        script.summary.as_str().unwrap()
    );
    let passwords = [
        ("owner_password", "o"),
        ("writer_password", "w"),
        ("reader_password", "r"),
    ];
    for _ in 0..2 {
        server.psql("postgres", &script, &passwords).unwrap();
    }
    let owner = "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'water'";
    assert_eq!(server.sql("postgres", owner).unwrap(), "water_owner");
}

#[tokio::test]
async fn a_new_epoch_raises_the_version_of_each_dataset() {
    let ingest = Ingest::new().await;
    ingest.run("demo --accounts 1 --rows-per-account 1");
    let begun = ingest.run("new-epoch");
    let expected = json!({"analyses": 2, "audits": 2, "risk": 2, "stress": 3});
    assert_eq!((begun.code, begun.summary), (Some(0), expected));
    assert_eq!(ingest.run("verify").code, Some(0));
}

#[test]
fn a_shell_gets_completions_of_every_command() {
    let script = say("completions bash", "");
    assert_eq!(script.code, Some(0));
    let script = script.summary.as_str().unwrap().to_owned();
    for word in [
        "check",
        "delete",
        "verify",
        "--allow-missing",
        "windows-1252",
    ] {
        assert!(script.contains(word), "{word}");
    }
}

#[test]
fn its_version_is_its_images() {
    let mut version = command("--version");
    version.env("WATER_VERSION", "1.2.3-next");
    let said = run(version, b"").summary;
    assert_eq!(said, json!("water-ingest 1.2.3-next\n"));
}
