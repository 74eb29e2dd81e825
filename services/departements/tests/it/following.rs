//! How the database is followed: a silent server, a listening connection that ends, and values of
//! a newer version.

use anyhow::ensure;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use water_harness::{Answer, Database, HttpClient, Port, Postgres, Process, Program, wait_until};
use water_kit::CURRENT;

use crate::fixture::{SOON, Signature, day, load, migrated, ready, risk, start, stress, writer};
use crate::reloads::until;

const LIST: &str = "/api/v1/stress";

/// The service's binary, whose log can be read.
struct Binary {
    process: Process,
    http: Port,
    admin: Port,
}

impl Binary {
    /// It is ready.
    async fn ready(database: &Database) -> Self {
        let (http, admin) = (Port::reserve().unwrap(), Port::reserve().unwrap());
        let program = Program::new(env!("CARGO_BIN_EXE_water-departements"))
            .env("WATER_LISTEN_ADDRESS", http.address().to_string())
            .env("WATER_ADMIN_ADDRESS", admin.address().to_string())
            .env("WATER_POSTGRES_URL", database.url_as("water_reader"))
            .env("WATER_IDENTITY_CURRENT", CURRENT);
        let process = program.start().unwrap();
        let binary = Self {
            process,
            http,
            admin,
        };
        let ready = async || {
            let mut client = HttpClient::connect(binary.admin.address()).await?;
            let answer = client.request("GET", "/ready", &[]).await?;
            ensure!(answer.status == 200, "{answer:?}");
            Ok(())
        };
        binary.process.ready(SOON, ready).await.unwrap();
        binary
    }

    async fn metrics(&self) -> anyhow::Result<String> {
        let mut client = HttpClient::connect(self.admin.address()).await?;
        let answer = client.request("GET", "/metrics", &[]).await?;
        Ok(answer.text()?.to_owned())
    }

    async fn list(&self) -> Answer {
        let identity = Signature::default().value("GET", LIST);
        let fields = [("X-Water-Identity", identity.as_str())];
        let mut client = HttpClient::connect(self.http.address()).await.unwrap();
        client.request("GET", LIST, &fields).await.unwrap()
    }
}

/// Sends a signal to the server and to the processes of its readers' sessions.
fn signal(postgres: &Postgres, sessions: &[Pid], signal: Signal) {
    postgres.process().signal(signal).unwrap();
    for &session in sessions {
        kill(session, signal).unwrap();
    }
}

#[tokio::test]
async fn a_server_that_falls_silent_is_told_of_and_followed_again_when_it_speaks() {
    let postgres = Postgres::start().await.unwrap();
    let database = migrated(&postgres).await;
    let mut writer = writer(&database).await;
    let first = [stress("34", 1.0)];
    writer
        .replace_stress(&first, day(1), &load())
        .await
        .unwrap();
    let service = Binary::ready(&database).await;
    let sessions = "SELECT pid FROM pg_stat_activity WHERE usename = 'water_reader'";
    let sessions = postgres.sql(database.name(), sessions).unwrap();
    let sessions = sessions
        .lines()
        .map(|pid| Pid::from_raw(pid.parse().unwrap()));
    let sessions: Vec<Pid> = sessions.collect();

    signal(&postgres, &sessions, Signal::SIGSTOP);
    let told = async || {
        let metrics = service.metrics().await?;
        let none = "\nwater_dataset_failures_total 0\n";
        ensure!(!metrics.contains(none), "{metrics}");
        let log = service.process.log();
        let warning = "cannot read the datasets; answering from memory";
        ensure!(log.contains(warning), "{log}");
        Ok(())
    };
    wait_until("a failure to be counted and told", SOON, told)
        .await
        .unwrap();
    let list = service.list().await;
    assert_eq!(
        (list.status, &list.json().unwrap()["count"]),
        (200, &1.into())
    );

    signal(&postgres, &sessions, Signal::SIGCONT);
    let second = [stress("34", 2.0), stress("75", 2.0)];
    writer
        .replace_stress(&second, day(2), &load())
        .await
        .unwrap();
    let served = async || {
        let list = service.list().await;
        ensure!(list.json()?["count"] == 2, "{list:?}");
        Ok(())
    };
    wait_until("the new load", SOON, served).await.unwrap();
}

#[tokio::test]
async fn a_server_that_accepts_and_says_nothing_is_noticed_and_needs_no_restart_of_the_service() {
    let postgres = Postgres::start().await.unwrap();
    let database = migrated(&postgres).await;
    postgres.process().signal(Signal::SIGSTOP).unwrap();
    let service = start(&database.url_as("water_reader"));
    let counted = async || {
        let metrics = service.admin("/metrics").await;
        let none = "\nwater_dataset_failures_total 0\n";
        ensure!(!metrics.text()?.contains(none), "{metrics:?}");
        Ok(())
    };
    wait_until("a failure to be counted", SOON, counted)
        .await
        .unwrap();
    let unready = service.admin("/ready").await;
    assert_eq!(
        (
            unready.status,
            unready.json().unwrap()["missing"][0].clone()
        ),
        (503, "datasets".into())
    );
    postgres.process().signal(Signal::SIGCONT).unwrap();
    let back = async || {
        ensure!(service.admin("/ready").await.status == 200, "not ready");
        Ok(())
    };
    wait_until("the service to be ready", SOON, back)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_listening_connection_that_ends_serves_nothing_anew() {
    let postgres = Postgres::shared().await.unwrap();
    let database = migrated(postgres).await;
    let mut writer = writer(&database).await;
    let risks = [risk("34", 1.0)];
    writer.replace_risk(&risks, day(1), &load()).await.unwrap();
    let service = ready(&database.url_as("water_reader")).await;
    let listening = async || {
        let sql = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%' \
                   AND datname = current_database() AND pid <> pg_backend_pid()";
        let pid = postgres.sql(database.name(), sql)?;
        ensure!(!pid.is_empty(), "nobody listens");
        Ok(pid)
    };
    let first = wait_until("the service to listen", SOON, listening)
        .await
        .unwrap();
    postgres
        .sql(
            database.name(),
            &format!("SELECT pg_terminate_backend({first})"),
        )
        .unwrap();
    let again = async || {
        let pid = listening().await?;
        ensure!(pid != first, "the old session");
        Ok(())
    };
    wait_until("the service to listen again", SOON, again)
        .await
        .unwrap();
    let risks = [risk("34", 2.0)];
    writer.replace_risk(&risks, day(2), &load()).await.unwrap();
    until(&service, "/api/v1/risque", 2).await;
    let metrics = service.admin("/metrics").await;
    assert!(
        metrics
            .text()
            .unwrap()
            .contains("\nwater_dataset_reads_total 2\n"),
        "{metrics:?}"
    );
}

#[tokio::test]
async fn a_stored_value_of_a_newer_version_stops_its_own_record_only() {
    let postgres = Postgres::shared().await.unwrap();
    let database = migrated(postgres).await;
    let rows = [stress("01", 1.0), stress("34", 1.0)];
    let mut writer = writer(&database).await;
    writer.replace_stress(&rows, day(1), &load()).await.unwrap();
    let newer = "ALTER TABLE water.stress DROP CONSTRAINT stress_level_check; \
                 UPDATE water.stress SET level = 'catastrophe' WHERE dept = '34'";
    postgres.sql(database.name(), newer).unwrap();
    let service = ready(&database.url_as("water_reader")).await;
    assert_eq!(service.get("/api/v1/stress?dept=01").await.status, 200);
    assert_eq!(service.get("/api/v1/stress?dept=34").await.status, 404);
    let metrics = service.admin("/metrics").await;
    assert!(
        metrics
            .text()
            .unwrap()
            .contains("\nwater_dataset_records_skipped 1\n"),
        "{metrics:?}"
    );
}
