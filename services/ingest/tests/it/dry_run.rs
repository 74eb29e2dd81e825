//! A dry run compares with what is stored, reports what a load would do, and touches no table.

use anyhow::ensure;
use serde_json::json;
use water_harness::wait_until;
use water_kit::SOON;

use crate::command::{ANALYSES, Ingest, analysis};

impl Ingest {
    /// Numbers of rows of the product's tables that were ever inserted, updated and deleted, by PostgreSQL's own count,
    /// once every writer has ended and reported.
    async fn touched(&self) -> String {
        let writers = "SELECT count(*) FROM pg_stat_activity \
                       WHERE usename = 'water_writer' AND datname = current_database()";
        let ended = async || {
            let writers = self.sql(writers);
            ensure!(writers == "0", "{writers} writers are connected");
            Ok(())
        };
        wait_until("the writers to end", SOON, ended).await.unwrap();
        self.sql(
            "SELECT sum(n_tup_ins), sum(n_tup_upd), sum(n_tup_del) FROM pg_stat_user_tables \
             WHERE schemaname = 'water'",
        )
    }

    /// Loads something into every dataset.
    fn fill(&self) {
        for (words, content) in [
            (
                "stress - --allow-missing",
                "dept,stressIndex\n01,1\n34,1\n75,2\n".to_owned(),
            ),
            (
                "risk - --allow-missing",
                "dept,flood,drought,overall\n34,1,1,10\n".to_owned(),
            ),
            (
                "analyses -",
                format!("{ANALYSES}{}{}", analysis(1, 1), analysis(2, 2)),
            ),
            (
                "vigieau - --allow-missing",
                r#"[{"code":"34","niveauGraviteMax":"crise"}]"#.to_owned(),
            ),
        ] {
            self.loads(&format!("{words} --as-of 2026-06-01"), content);
        }
    }
}

#[tokio::test]
async fn no_dry_run_inserts_updates_or_deletes_a_row_of_any_table() {
    let ingest = Ingest::new().await;
    let empty = ingest.touched().await;
    ingest.fill();
    let before = ingest.touched().await;
    assert_ne!(before, empty);
    for (words, content) in [
        (
            "stress - --allow-missing",
            "dept,stressIndex\n02,5\n34,5\n".to_owned(),
        ),
        (
            "risk - --allow-missing --max-changed 100",
            "dept,flood,drought,overall\n34,1,1,90\n".to_owned(),
        ),
        (
            "analyses -",
            format!("{ANALYSES}{}{}", analysis(1, 9), analysis(3, 3)),
        ),
        (
            "audits -",
            format!(
                "{}{}",
                ANALYSES.replace("globalScore,rating", "score,globalRating"),
                analysis(1, 1)
            ),
        ),
        (
            "vigieau - --allow-lifting",
            r#"[{"code":"34","niveauGraviteMax":null}]"#.to_owned(),
        ),
    ] {
        let words = format!("{words} --as-of 2026-07-01 --dry-run");
        let run = ingest.loads(&words, content);
        assert_eq!(run.summary["outcome"], json!("checked"));
        let moved = ["inserted", "updated", "removed"].map(|count| run.summary[count].as_u64());
        assert_ne!(moved, [Some(0); 3], "{words} would change nothing");
    }
    for words in [
        "purge --account acme --dry-run",
        "delete analyses --account acme 1 --dry-run",
    ] {
        assert_eq!(ingest.run(words).code, Some(0));
    }
    assert_eq!(ingest.touched().await, before);
}

#[tokio::test]
async fn it_tells_what_a_load_would_do_to_indices_and_levels() {
    let ingest = Ingest::new().await;
    ingest.fill();
    let words = "load stress - --as-of 2026-07-01 --allow-missing --allow-lifting --max-changed 100 --dry-run";
    let run = ingest.run_with_stdin(
        words,
        "dept,stressIndex,level\n02,1,\n34,1.5,normal\n75,4,\n",
    );
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (
            Some(0),
            "stdin: a load would insert 1, change 2 and remove 1 of 3 rows\n\
             stdin: the largest differences: 75 stressIndex 2 → 4, 34 stressIndex 1 → 1.5, \
             34 level crise → normal, 75 level alerte → crise\n"
        )
    );
    assert_eq!(
        run.summary["largest"][2],
        json!({"record": "34", "column": "level", "before": "crise", "after": "normal"})
    );
    assert_eq!(
        run.summary["largest"][0],
        json!({"record": "75", "column": "stressIndex", "before": 2, "after": 4})
    );
}

#[tokio::test]
async fn it_tells_what_a_load_would_do_to_scores_and_names_no_account() {
    let ingest = Ingest::new().await;
    ingest.fill();
    let rows = format!("{ANALYSES}{}{}", analysis(1, 9), analysis(3, 3));
    let run = ingest.run_with_stdin("load analyses - --as-of 2026-07-01 --dry-run", rows);
    assert_eq!(
        run.stderr,
        "stdin: a load would insert 1, change 1 and remove 0 of 2 rows\n\
         stdin: the largest differences: line 2 globalScore 1 → 9\n"
    );
}
