//! PostgreSQL down, silent, or back with other content: answers come from memory, and no restart of the service is
//! needed.

use anyhow::ensure;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use water_harness::{Program, wait_until};
use water_kit::{CURRENT, Database, SOON, Server, Signature, problem, risk, stress};

use crate::{RISQUE, STRESS, start, until};

const FAILURES: &str = "water_dataset_failures_total";

#[tokio::test]
async fn a_server_that_falls_silent_is_reported_and_followed_again_when_it_speaks() {
    let database = Database::alone().await;
    let mut loader = database.writer().await;
    loader.stress(1, &[stress("34", 1.0)]).await;
    // The binary, because its log is read.
    let service = Program::new(env!("CARGO_BIN_EXE_water-departements"))
        .env("WATER_POSTGRES_URL", database.reader_url())
        .env("WATER_IDENTITY_CURRENT", CURRENT);
    let service = Server::start(service).ready().await;
    let list = async || {
        let identity = Signature::default().value("GET", STRESS);
        let fields = [("X-Water-Identity", identity.as_str())];
        let mut client = service.connect().await;
        client.request("GET", STRESS, &fields).await
    };
    let sessions = "SELECT pid FROM pg_stat_activity WHERE usename = 'water_reader'";
    let sessions = database.sql(sessions);
    let signal = |signal| {
        database.server.process().signal(signal).unwrap();
        for session in sessions.lines() {
            kill(Pid::from_raw(session.parse().unwrap()), signal).unwrap();
        }
    };

    signal(Signal::SIGSTOP);
    let reported = async || {
        let metrics = service.admin("/metrics").await?;
        let none = format!("\n{FAILURES} 0\n");
        ensure!(!metrics.text()?.contains(&none), "{metrics:?}");
        let log = service.process.log();
        let warning = "cannot read the datasets; answering from memory";
        ensure!(log.contains(warning), "{log}");
        Ok(())
    };
    wait_until("a failure in metrics and log", SOON, reported)
        .await
        .unwrap();
    assert_eq!(list().await.unwrap().json().unwrap()["count"], 1);
    assert_eq!(service.admin("/ready").await.unwrap().status, 200);

    signal(Signal::SIGCONT);
    loader
        .stress(2, &[stress("34", 2.0), stress("75", 2.0)])
        .await;
    let served = async || {
        let list = list().await?;
        ensure!(list.json()?["count"] == 2, "{list:?}");
        Ok(())
    };
    wait_until("the new load", SOON, served).await.unwrap();
}

#[tokio::test]
async fn a_cold_pod_is_not_ready_before_it_has_read_a_server_that_was_silent() {
    let database = Database::alone().await;
    let server = database.server.process();
    server.signal(Signal::SIGSTOP).unwrap();
    let service = start(&database);
    let unready = service.admin("/ready").await;
    let missing = unready.json().unwrap()["missing"][0].clone();
    assert_eq!((unready.status, missing), (503, "datasets".into()));
    assert_eq!(service.admin("/live").await.status, 200);
    let answer = service.get(STRESS).await;
    let (status, code, _) = problem(&answer);
    assert_eq!((status, code), (503, "dependency_unavailable".into()));
    assert!(answer.header("retry-after").is_some());
    let counted = async || {
        ensure!(service.metric(FAILURES).await != "0", "none is counted");
        Ok(())
    };
    wait_until("a failure to be counted", SOON, counted)
        .await
        .unwrap();
    server.signal(Signal::SIGCONT).unwrap();
    assert_eq!(service.ready().await.get(STRESS).await.status, 404);
}

#[tokio::test]
async fn content_that_comes_back_under_the_same_number_is_read_again() {
    let database = Database::alone().await;
    let mut loader = database.writer().await;
    loader.stress(1, &[stress("34", 1.0)]).await;
    let service = start(&database).ready().await;
    // Commits of tests are not flushed.
    database.sql("CHECKPOINT");
    database.server.kill().await.unwrap();
    assert_eq!(service.get(STRESS).await.status, 200);
    database.server.start_again().await.unwrap();
    let seen = async |index: u8| {
        let seen = async || {
            let answer = service.get("/api/v1/stress?dept=34").await;
            ensure!(answer.json()?["stressIndex"] == index, "{answer:?}");
            Ok(())
        };
        wait_until("the other record", SOON, seen).await.unwrap();
    };
    // One transaction, as a reader sees a server that was restored without a load and got another one.
    let number =
        |number| format!("UPDATE water.datasets SET version = {number} WHERE name = 'stress'");
    let restored = async |index: u8| {
        let another = format!("UPDATE water.stress SET stress_index = {index}");
        let (without, with) = (number(0), number(1));
        database.sql(&format!("BEGIN; {without}; {another}; {with}; COMMIT"));
        seen(index).await;
    };
    restored(4).await;
    // No check fails, and no connection ends.
    restored(5).await;

    database.sql("UPDATE water.stress SET stress_index = 3");
    database.writer().await.begin_epoch().await.unwrap();
    seen(3).await;
}

#[tokio::test]
async fn a_listening_connection_that_ends_is_opened_again_and_only_new_records_are_served() {
    let database = Database::new().await;
    let mut loader = database.writer().await;
    loader.risk(1, &[risk("34", 1.0)]).await;
    let service = start(&database).ready().await;
    // Waits for a session that listens and is not this one.
    let listener = async |other_than: &str| {
        let listening = async || {
            let sql = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%' \
                       AND datname = current_database() AND pid <> pg_backend_pid()";
            let pid = database.sql(sql);
            ensure!(!pid.is_empty() && pid != other_than, "{pid} listens");
            Ok(pid)
        };
        let what = "the service to listen";
        wait_until(what, SOON, listening).await.unwrap()
    };
    let first = listener("").await;
    database.sql(&format!("SELECT pg_terminate_backend({first})"));
    listener(&first).await;
    loader.risk(2, &[risk("34", 2.0)]).await;
    until(&service, RISQUE, 2).await;
    assert_eq!(service.metric("water_dataset_reads_total").await, "2");
}
