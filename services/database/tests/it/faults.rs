//! Messages of errors, and whether a retry may help.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::time::timeout;
use water_database::writer::History;
use water_database::{Changes, Database, Writer, departements, history, migrations};
use water_domain::Fault;
use water_harness::{Port, Postgres};

use crate::SOON;
use crate::abandoned::abandon;
use crate::fixture::{Fixture, account, day, page, risk, row, stress};

/// Returns whether the error of reading the versions is transient, and its text with all causes.
async fn failure(url: &str) -> (bool, String) {
    let database = Database::connect(url, None, 2).unwrap();
    let error = departements::versions(&database).await.unwrap_err();
    let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| {
        error.source()
    });
    (
        error.is_transient(),
        causes
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(": "),
    )
}

/// A reader with one connection.
async fn one_connection() -> (Fixture, Database) {
    let fixture = Fixture::new().await;
    let reader = Database::connect(&fixture.own.url_as("water_reader"), None, 1);
    (fixture, reader.unwrap())
}

#[tokio::test]
async fn a_server_that_is_away_is_transient_and_its_url_is_not_told() {
    let port = Port::reserve().unwrap();
    let (transient, message) = failure(&format!(
        "postgresql://water_reader:secret@127.0.0.1:{}/water",
        port.number()
    ))
    .await;
    assert!(transient, "{message}");
    assert!(
        message.starts_with("connecting to PostgreSQL: PostgreSQL cannot be reached"),
        "{message}"
    );
    assert!(!message.contains("secret"), "{message}");
}

#[tokio::test]
async fn a_database_that_is_not_migrated_yet_is_transient() {
    let database = Postgres::shared().await.unwrap().create_database().unwrap();
    let (transient, message) = failure(&database.url()).await;
    assert!(transient, "{message}");
    assert_eq!(
        message,
        "reading the versions of the datasets: PostgreSQL answered 42P01: relation \"water.datasets\" does not exist"
    );
}

#[tokio::test]
async fn a_missing_right_is_not_transient() {
    let fixture = Fixture::new().await;
    fixture.sql("REVOKE SELECT ON water.datasets FROM water_reader");
    let (transient, message) = failure(&fixture.own.url_as("water_reader")).await;
    assert!(!transient, "{message}");
}

#[tokio::test]
async fn a_query_that_waits_too_long_is_transient() {
    let fixture = Fixture::new().await;
    let _lock = fixture.hold("LOCK TABLE water.datasets").await;
    let (transient, message) = failure(&fixture.own.url_as("water_reader")).await;
    assert!(transient && message.contains("57014"), "{message}");
}

#[tokio::test]
async fn an_unknown_stored_value_stops_its_own_record_only() {
    let mut fixture = Fixture::new().await;
    let rows = ["01", "34"].map(|code| stress(code, 1.0, None));
    fixture.stress(&rows, 1).await;
    let risks = [risk("34", 1.0)];
    fixture.risk(&risks, 1).await;
    // The next version's loader may write this before this one is replaced.
    fixture.sql("ALTER TABLE water.stress DROP CONSTRAINT stress_level_check");
    fixture.sql("UPDATE water.stress SET level = 'catastrophe' WHERE dept = '34'");
    fixture.sql("INSERT INTO water.risk VALUES ('99', 1, 1, 1, 'A', now())");
    let snapshot = departements::snapshot(&fixture.reader).await.unwrap();
    assert_eq!(snapshot.skipped(), ["stress 34", "risk 99"]);
    let stress = snapshot.stress.unwrap().records;
    assert_eq!((stress.len(), stress[0].departement.code), (1, "01"));
    assert_eq!(snapshot.risk.unwrap().records.len(), 1);
}

#[tokio::test]
async fn stored_codes_of_a_history_are_handed_on_unparsed() {
    let mut fixture = Fixture::new().await;
    let rows = [row("acme", 1, day(1)), row("acme", 2, day(2))];
    fixture.load(History::Analyses, &rows).await;
    fixture.sql("UPDATE water.analyses SET rating = 'a/1', sector_code = '§' WHERE id = '2'");
    let acme = account("acme");
    let slice = history::analyses(&fixture.reader, &acme, page(20, 0)).await;
    let rows = slice.unwrap().rows;
    assert_eq!((&*rows[0].rating, &*rows[0].sector_code), ("a/1", "§"));
    assert_eq!(rows.len(), 2);
}

#[tokio::test]
async fn a_connection_whose_plan_or_statements_are_gone_is_replaced() {
    let outdate = "ALTER TABLE water.datasets ALTER COLUMN updated_at TYPE timestamp";
    // Each query removes the session's prepared statements, as a pooler of transactions does.
    let forget = "ALTER TABLE water.datasets RENAME TO stored; \
         CREATE FUNCTION public.forget() RETURNS bigint LANGUAGE plpgsql AS \
             $$ BEGIN DEALLOCATE ALL; RETURN 7; END $$; \
         CREATE VIEW water.datasets AS SELECT name, updated_at, public.forget() AS version FROM water.stored; \
         GRANT SELECT ON water.datasets TO water_reader";
    for (before, after) in [("SELECT 1", outdate), (forget, "SELECT 1")] {
        let (fixture, reader) = one_connection().await;
        fixture.sql(before);
        departements::versions(&reader).await.unwrap();
        fixture.sql(after);
        let error = departements::versions(&reader).await.unwrap_err();
        assert!(error.is_transient(), "{error:?}");
        departements::versions(&reader).await.unwrap();
    }
}

#[tokio::test]
async fn a_connection_that_answers_too_late_is_replaced() {
    let (fixture, reader) = one_connection().await;
    departements::versions(&reader).await.unwrap();
    for in_transaction in [false, true] {
        let session = "SELECT pid FROM pg_stat_activity WHERE usename = 'water_reader' \
                       AND datname = current_database() ORDER BY backend_start DESC LIMIT 1";
        let session = Pid::from_raw(fixture.sql(session).parse().unwrap());
        kill(session, Signal::SIGSTOP).unwrap();
        let late = if in_transaction {
            departements::snapshot(&reader).await.err()
        } else {
            departements::versions(&reader).await.err()
        };
        let next = departements::versions(&reader).await;
        kill(session, Signal::SIGCONT).unwrap();
        assert!(late.unwrap().is_transient());
        next.unwrap();
    }
}

#[tokio::test]
async fn a_column_that_is_missing_is_transient_and_read_when_it_is_there() {
    let (fixture, reader) = one_connection().await;
    departements::versions(&reader).await.unwrap();
    fixture.sql("ALTER TABLE water.datasets DROP COLUMN updated_at CASCADE");
    for _ in 0..2 {
        let error = departements::versions(&reader).await.unwrap_err();
        assert!(error.is_transient(), "{error:?}");
    }
    let (transient, message) = failure(&fixture.own.url_as("water_reader")).await;
    assert!(transient && message.contains("42703"), "{message}");
    fixture.sql("ALTER TABLE water.datasets ADD COLUMN updated_at timestamptz");
    departements::versions(&reader).await.unwrap();
}

#[tokio::test]
async fn a_query_whose_asker_left_is_cancelled_and_its_connection_kept() {
    let (fixture, reader) = one_connection().await;
    departements::versions(&reader).await.unwrap();
    abandon(&fixture, &reader).await;
    departements::versions(&reader).await.unwrap();
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'water_reader' \
                    AND datname = current_database()";
    assert_eq!(fixture.sql(sessions), "1");
}

#[tokio::test]
async fn a_session_sends_no_startup_options_which_a_pooler_would_refuse() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgresql://u@{}/water", listener.local_addr().unwrap());
    let database = Database::connect(&url, None, 1).unwrap();
    let asking = tokio::spawn(async move { departements::versions(&database).await });
    let (mut asked, _) = listener.accept().await.unwrap();
    let length = asked.read_u32().await.unwrap();
    let mut message = vec![0; length as usize - 4];
    asked.read_exact(&mut message).await.unwrap();
    let message = String::from_utf8_lossy(&message).into_owned();
    assert!(
        message.contains("user\0u\0") && !message.contains("options"),
        "{message:?}"
    );
    asking.abort();
}

#[tokio::test]
async fn a_restarted_server_is_read_again() {
    let server = Postgres::start().await.unwrap();
    let own = server.create_database().unwrap();
    server.sql(own.name(), migrations::ROLES_SQL).unwrap();
    migrations::migrate(&own.url(), None).await.unwrap();
    let database = Database::connect(&own.url_as("water_reader"), None, 2).unwrap();
    departements::versions(&database).await.unwrap();
    // SIGINT is PostgreSQL's fast shutdown: it does not wait for its clients.
    server.process().signal(Signal::SIGINT).unwrap();
    server.process().ended(SOON).await.unwrap();
    let away = departements::versions(&database).await.unwrap_err();
    assert!(away.is_transient());
    server.start_again().await.unwrap();
    departements::versions(&database).await.unwrap();
}

async fn gives_up(query: &str) {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let url = format!("postgresql://u@{address}/water{query}");
    let database = Database::connect(&url, None, 1).unwrap();
    let (reading, listening, writing, migrating) = tokio::join!(
        timeout(SOON, departements::versions(&database)),
        timeout(SOON, Changes::listen(&database)),
        timeout(SOON, Writer::connect(&url, None)),
        timeout(SOON, migrations::migrate(&url, None)),
    );
    let error = reading.expect("the reader gives up").unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    assert!(listening.expect("the listener gives up").is_err());
    assert!(writing.expect("the writer gives up").is_err());
    assert!(migrating.expect("the migration gives up").is_err());
}

#[tokio::test]
async fn a_server_that_accepts_and_never_answers_or_begins_no_tls_is_not_waited_for() {
    tokio::join!(gives_up(""), gives_up("?sslmode=require"));
}
