//! Everything through PgBouncer, which pools sessions.

use tokio::time::timeout;
use water_database::writer::History::Analyses;
use water_database::{Changes, Database, Writer, departements, history, migrations};
use water_harness::PgBouncer;

use crate::SOON;
use crate::abandoned::abandon;
use crate::fixture::{Fixture, account, batch, day, load, page, row, stress};

async fn pooled(fixture: &Fixture) -> (PgBouncer, impl Fn(&str) -> String + use<>) {
    let roles = ["water_owner", "water_writer", "water_reader"];
    let pooler = PgBouncer::before(fixture.own.address(), &roles)
        .await
        .unwrap();
    let (way, own) = (pooler.address(), fixture.own.clone());
    (pooler, move |role: &str| own.url_through(way, role))
}

#[tokio::test]
async fn loads_reads_and_migrations_go_through_a_pooler_of_sessions() {
    let fixture = Fixture::new().await;
    let (_pooler, url) = pooled(&fixture).await;
    assert_eq!(
        migrations::migrate(&url("water_owner"), None)
            .await
            .unwrap(),
        [""; 0]
    );
    let mut writer = Writer::connect(&url("water_writer"), None).await.unwrap();
    let reader = Database::connect(&url("water_reader"), None, 2).unwrap();
    for number in 1..=3 {
        let mut staging = writer.stage(Analyses).await.unwrap();
        let rows = [row("acme", number, day(number))];
        staging.push(batch(&rows, 2)).await.unwrap();
        staging.finish(day(number), &load()).await.unwrap();
        let slice = history::analyses(&reader, &account("acme"), page(20, 0))
            .await
            .unwrap();
        assert_eq!(slice.total, number as u64);
    }
    let index = [stress("34", 1.0, None)];
    writer
        .replace_stress(&index, day(1), &load())
        .await
        .unwrap();
    let snapshot = departements::snapshot(&reader).await.unwrap();
    assert_eq!(snapshot.stress.unwrap().records.len(), 1);
}

#[tokio::test]
async fn a_session_through_a_pooler_has_the_settings_that_it_asked_for() {
    let fixture = Fixture::new().await;
    let (_pooler, url) = pooled(&fixture).await;
    // The version that the reader sees is the number of its settings that are in force.
    fixture.sql(
        "ALTER TABLE water.datasets RENAME TO stored; \
         CREATE VIEW water.datasets AS SELECT name, updated_at, \
             ((current_setting('plan_cache_mode') = 'force_generic_plan')::int \
            + (current_setting('enable_seqscan') = 'off')::int \
            + (current_setting('enable_bitmapscan') = 'off')::int \
            + (current_setting('jit') = 'off')::int \
            + (current_setting('statement_timeout') = '2s')::int)::bigint AS version \
         FROM water.stored; \
         GRANT SELECT ON water.datasets TO water_reader",
    );
    let reader = Database::connect(&url("water_reader"), None, 1).unwrap();
    for _ in 0..2 {
        let versions = departements::versions(&reader).await.unwrap();
        assert_eq!((versions.stress.number, versions.risk.number), (5, 5));
    }
}

#[tokio::test]
async fn a_query_whose_asker_left_ends_and_its_connection_is_replaced() {
    let fixture = Fixture::new().await;
    let (_pooler, url) = pooled(&fixture).await;
    let reader = Database::connect(&url("water_reader"), None, 1).unwrap();
    departements::versions(&reader).await.unwrap();
    abandon(&fixture, &reader).await;
    departements::versions(&reader).await.unwrap();
}

#[tokio::test]
async fn a_load_is_heard_of_through_a_pooler_of_sessions() {
    let mut fixture = Fixture::new().await;
    let (_pooler, url) = pooled(&fixture).await;
    let reader = Database::connect(&url("water_reader"), None, 1).unwrap();
    let mut changes = Changes::listen(&reader).await.unwrap();
    let index = [stress("34", 1.0, None)];
    fixture.stress(&index, 1).await;
    let heard = timeout(SOON, changes.next()).await;
    assert!(heard.unwrap());
}
