//! A load that is killed in the middle of a statement leaves nothing that blocks the next one.

use std::io::Write;

use anyhow::ensure;
use water_harness::postgres_proxy::PostgresProxy;
use water_harness::wait_until;
use water_kit::SOON;

use crate::command::{ANALYSES, Ingest, analysis};

#[tokio::test]
async fn a_load_killed_in_the_middle_of_a_statement_keeps_no_lock() {
    let ingest = Ingest::new().await;
    ingest.sql(
        "CREATE FUNCTION public.tarry() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN PERFORM pg_sleep(600); RETURN NEW; END $$; \
         CREATE TRIGGER tarries BEFORE INSERT ON water.loads FOR EACH ROW EXECUTE FUNCTION public.tarry()",
    );
    let proxy = PostgresProxy::before(ingest.address()).await.unwrap();
    // The server checks each second, and not every ten, that its client is there.
    proxy.rewrite(
        "client_connection_check_interval = '10s'",
        "client_connection_check_interval =  '1s'",
    );
    let words = "load analyses - --as-of 2026-01-01";
    let mut load = ingest
        .command_through(proxy.address(), words)
        .spawn()
        .unwrap();
    let file = format!("{ANALYSES}{}", analysis(1, 1));
    let mut stdin = load.stdin.take().unwrap();
    stdin.write_all(file.as_bytes()).unwrap();
    drop(stdin);
    let in_a_statement = async |wanted: &str| {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                   AND usename = 'water_writer' AND wait_event = 'PgSleep'";
        let writers = async || {
            let found = ingest.sql(sql);
            ensure!(found == wanted, "{found} writers are in a statement");
            Ok(())
        };
        wait_until("the writer's statement", SOON, writers)
            .await
            .unwrap();
    };
    in_a_statement("1").await;
    load.kill().unwrap();
    load.wait().unwrap();
    in_a_statement("0").await;
    ingest.sql("DROP TRIGGER tarries ON water.loads");
    ingest.loads("analyses - --as-of 2026-01-01", file);
}
