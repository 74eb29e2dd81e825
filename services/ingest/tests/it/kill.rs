//! A load that is killed leaves the old data, and nothing that stands in the next one's way.

use std::io::Write;
use std::time::Duration;

use serde_json::json;
use water_harness::wait_until;

use crate::fixture::Fixture;

const HEADER: &str = "accountId,id,companyName,sectorCode,deptCode,globalScore,rating,createdAt\n";

fn rows(count: usize) -> String {
    (0..count)
        .map(|n| format!("acme,{n},Eaux,36.00Z,34,1,A,2026-01-01T00:00:00Z\n"))
        .collect()
}

#[tokio::test]
async fn a_load_killed_in_the_middle_of_a_statement_keeps_no_lock() {
    let fixture = Fixture::new().await;
    fixture.sql(
        "CREATE FUNCTION public.tarry() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN PERFORM pg_sleep(600); RETURN NEW; END $$; \
         CREATE TRIGGER tarries BEFORE INSERT ON water.loads FOR EACH ROW EXECUTE FUNCTION public.tarry()",
    );
    let mut load = fixture.command("load analyses - --as-of 2026-01-01");
    let mut load = load.spawn().unwrap();
    let file = format!("{HEADER}{}", rows(10));
    load.stdin
        .take()
        .unwrap()
        .write_all(file.as_bytes())
        .unwrap();
    let writers = |wanted: &'static str| {
        let fixture = &fixture;
        async move || {
            let tarrying = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                            AND usename = 'water_writer' AND wait_event = 'PgSleep'";
            let found = fixture.sql(tarrying);
            anyhow::ensure!(found == wanted, "{found} writers are in a statement");
            Ok(())
        }
    };
    wait_until(
        "the load to be in a statement",
        Duration::from_secs(20),
        writers("1"),
    )
    .await
    .unwrap();
    load.kill().unwrap();
    load.wait().unwrap();
    // The server looks every ten seconds whether the client is there.
    wait_until(
        "the server to notice",
        Duration::from_secs(40),
        writers("0"),
    )
    .await
    .unwrap();
    fixture.sql("DROP TRIGGER tarries ON water.loads");
    let next = fixture.run_with_stdin("load analyses - --as-of 2026-01-01", file);
    assert_eq!((next.code, next.stderr.as_str()), (Some(0), ""));
}

#[tokio::test]
async fn a_load_killed_while_it_reads_leaves_the_old_data() {
    let fixture = Fixture::new().await;
    fixture.run_with_stdin(
        "load analyses - --as-of 2026-01-01",
        format!("{HEADER}{}", rows(10)),
    );
    let before = fixture.dump();
    let mut child = fixture
        .command("load analyses - --as-of 2026-01-01")
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(format!("{HEADER}{}", rows(20_000)).as_bytes())
        .unwrap();
    let staging = "SELECT count(*) FROM pg_stat_activity \
                   WHERE usename = 'water_writer' AND datname = current_database() AND query LIKE 'COPY staged%'";
    let begun = async || match fixture.sql(staging).as_str() {
        "1" => Ok(()),
        other => anyhow::bail!("{other} loads are staging"),
    };
    wait_until("the load to stage rows", Duration::from_secs(20), begun)
        .await
        .unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(fixture.dump(), before);
    let next = fixture.run_with_stdin(
        "load analyses - --as-of 2026-01-01",
        format!("{HEADER}{}", rows(20_000)),
    );
    assert_eq!(
        (next.code, &next.summary["inserted"]),
        (Some(0), &json!(19_990))
    );
}
