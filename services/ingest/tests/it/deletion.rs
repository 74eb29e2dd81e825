//! Single rows of an account's history.

use serde_json::json;

use crate::fixture::Fixture;

const ANALYSES: &str =
    "accountId,id,companyName,sectorCode,deptCode,globalScore,rating,createdAt\n";

impl Fixture {
    /// 130 rows of acme, and one of another account with an id of acme's.
    fn with_rows(&self) {
        let row = |account: &str, id: usize| {
            format!("{account},{id},Eaux,36.00Z,34,1,A,2026-01-01T00:00:00Z\n")
        };
        let rows: String = (0..130).map(|id| row("acme", id)).collect();
        let file = format!("{ANALYSES}{rows}{}", row("other", 7));
        let run = self.run_with_stdin("load analyses - --as-of 2026-01-01", file);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
    }
}

#[tokio::test]
async fn rows_are_deleted_by_their_ids_and_nothing_else_is() {
    let fixture = Fixture::new().await;
    fixture.with_rows();
    let run = fixture.run("delete analyses --account acme 7 9 nowhere --deleted-by somebody");
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (Some(0), "ids that the account does not have: 1\n")
    );
    assert_eq!(
        run.summary,
        json!({
            "dataset": "analyses", "account": "acme", "ids": 3, "removed": 2, "unknown": ["nowhere"],
            "dryRun": false,
        })
    );
    let left = "SELECT count(*) FILTER (WHERE id IN ('7', '9')), count(*) FROM water.analyses";
    assert_eq!(fixture.sql(left), "1|129");
    assert_eq!(fixture.run("verify").code, Some(0));
    let noted = &fixture.run("provenance --limit 1").summary[0];
    assert_eq!(
        [&noted["removed"], &noted["source"], &noted["loadedBy"]],
        [
            &json!(2),
            &json!("deletion: the command line"),
            &json!("somebody")
        ]
    );
}

#[tokio::test]
async fn a_file_of_ids_is_read_and_a_dry_run_only_counts() {
    let fixture = Fixture::new().await;
    fixture.with_rows();
    let before = fixture.dump();
    let ids = "1\r\n2\n\n2\n";
    let words = "delete analyses --account acme --file -";
    let dry = fixture.run_with_stdin(&format!("{words} --dry-run"), ids);
    let counts = |summary: &serde_json::Value| [summary["ids"].clone(), summary["removed"].clone()];
    assert_eq!(
        (dry.code, counts(&dry.summary)),
        (Some(0), [json!(2), json!(2)])
    );
    assert_eq!(fixture.dump(), before);
    let run = fixture.run_with_stdin(words, ids);
    assert_eq!(
        (run.code, counts(&run.summary)),
        (Some(0), [json!(2), json!(2)])
    );
    let again = fixture.run_with_stdin(words, ids);
    assert_eq!(
        (again.code, &again.summary["removed"]),
        (Some(0), &json!(0))
    );
}
