//! Loads that wait for each other, and a connection that ends while a load is committed.

use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::ensure;
use water_database::Writer;
use water_database::writer::LoadError;
use water_harness::wait_until;

use crate::SOON;
use crate::fixture::{Fixture, day, load, stress};

#[tokio::test]
async fn a_load_that_must_wait_says_so() {
    static WAITED: AtomicU32 = AtomicU32::new(0);
    let fixture = Fixture::new().await;
    let lock = "SELECT pg_advisory_xact_lock(hashtext('water.stress'))";
    let other = fixture.hold(lock).await;
    let url = fixture.own.url_as("water_writer");
    let mut writer = Writer::connect(&url, None)
        .await
        .unwrap()
        .when_waiting(|dataset| {
            assert_eq!(dataset, "stress");
            WAITED.fetch_add(1, Ordering::Release);
        });
    let waiting = tokio::spawn(async move {
        let index = [stress("34", 1.0, None)];
        writer.replace_stress(&index, day(1), &load()).await
    });
    wait_until("the load to wait", SOON, async || {
        ensure!(WAITED.load(Ordering::Acquire) == 1, "it does not wait");
        Ok(())
    })
    .await
    .unwrap();
    other.batch_execute("COMMIT").await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().inserted, 1);
}

#[tokio::test]
async fn a_connection_that_ends_at_the_commit_is_not_reported_as_a_failure_that_is_known() {
    let mut fixture = Fixture::new().await;
    fixture.sql(
        "CREATE FUNCTION public.fall() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS \
         $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$; \
         CREATE CONSTRAINT TRIGGER falls AFTER INSERT ON water.loads \
         DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.fall()",
    );
    let index = [stress("34", 1.0, None)];
    let error = fixture
        .writer
        .replace_stress(&index, day(1), &load())
        .await
        .unwrap_err();
    assert!(matches!(error, LoadError::Uncertain(_)), "{error:?}");
}
