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
