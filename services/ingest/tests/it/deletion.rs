//! Single rows of an account's history.

use serde_json::json;

use crate::command::{ANALYSES, Ingest, analysis, gzip};

impl Ingest {
    /// 130 rows of acme, and one of another account with an id of acme's.
    fn with_rows(&self) {
        let rows: String = (0..130).map(|id| analysis(id, 1)).collect();
        let other = analysis(7, 1).replace("acme", "other");
        let file = format!("{ANALYSES}{rows}{other}");
        self.loads("analyses - --as-of 2026-01-01", file);
    }
}

#[tokio::test]
async fn rows_are_deleted_by_their_ids_and_nothing_else_is() {
    let ingest = Ingest::new().await;
    ingest.with_rows();
    let run = ingest
        .run("delete analyses --account acme 7 9 nowhere --as-of 2026-01-02 --deleted-by somebody");
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (Some(0), "ids that the account does not have: 1\n")
    );
    assert_eq!(
        run.summary,
        json!({
            "dataset": "analyses", "account": "acme", "asOf": "2026-01-02T00:00:00.000Z", "ids": 3, "removed": 2, "unknown": ["nowhere"],
            "dryRun": false,
        })
    );
    let left = "SELECT count(*) FILTER (WHERE id IN ('7', '9')), count(*) FROM water.analyses";
    assert_eq!(ingest.sql(left), "1|129");
    assert_eq!(ingest.run("verify").code, Some(0));
    let noted = &ingest.run("provenance --limit 1").summary[0];
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
    let ingest = Ingest::new().await;
    ingest.with_rows();
    let before = ingest.dump();
    let ids = "1\r\n2\n\n2\n";
    let words = "delete analyses --account acme --file -";
    let dry = ingest.run_with_stdin(&format!("{words} --dry-run"), ids);
    let counts = |summary: &serde_json::Value| [summary["ids"].clone(), summary["removed"].clone()];
    assert_eq!(
        (dry.code, counts(&dry.summary)),
        (Some(0), [json!(2), json!(2)])
    );
    assert_eq!(ingest.dump(), before);
    let run = ingest.run_with_stdin(words, ids);
    assert_eq!(
        (run.code, counts(&run.summary)),
        (Some(0), [json!(2), json!(2)])
    );
    let again = ingest.run_with_stdin(words, ids);
    assert_eq!(
        (again.code, &again.summary["removed"]),
        (Some(0), &json!(0))
    );
}

#[tokio::test]
async fn a_deletion_without_a_date_describes_the_moment_of_its_command() {
    let ingest = Ingest::new().await;
    ingest.with_rows();
    let before = ingest.sql("SELECT date_trunc('milliseconds', clock_timestamp())");
    assert_eq!(ingest.run("delete analyses --account acme 7").code, Some(0));
    let moment =
        format!("SELECT as_of BETWEEN '{before}' AND deleted_at FROM water.analyses_deletions");
    assert_eq!(ingest.sql(&moment), "t");
}

#[tokio::test]
async fn a_moment_that_cannot_be_is_refused() {
    let ingest = Ingest::new().await;
    ingest.with_rows();
    let deleted = ingest.run("delete analyses --account acme 7 --as-of 2062-07-01");
    assert_eq!(deleted.code, Some(64));
    assert!(
        deleted.stderr.contains("at most a day ahead"),
        "{}",
        deleted.stderr
    );
}

#[tokio::test]
async fn a_piped_list_that_is_cut_in_its_last_id_deletes_nothing() {
    let ingest = Ingest::new().await;
    ingest.with_rows();
    let words = "delete analyses --account acme --file -";
    let cut = ingest.run_with_stdin(words, "7\n12");
    assert_eq!(cut.code, Some(2), "{}", cut.stderr);
    assert!(
        cut.stderr.contains("line 2: the last line has no end"),
        "{}",
        cut.stderr
    );
    assert_eq!(ingest.run_with_stdin(words, "12").summary["removed"], 1);
}

#[tokio::test]
async fn a_file_of_ids_is_read_as_a_load_reads_its_file() {
    let ingest = Ingest::new().await;
    ingest.with_rows();
    let words = "delete analyses --account acme --file - --dry-run";
    let marked = "\u{feff}1\r\n2\r\n";
    for ids in [marked.as_bytes().to_vec(), gzip(marked)] {
        let run = ingest.run_with_stdin(words, ids);
        assert_eq!((run.code, &run.summary["removed"]), (Some(0), &json!(2)));
    }
    for (ids, why) in [
        (&b"\xff\xfe1\0"[..], "UTF-16: save it as UTF-8"),
        (b"\xe9\n", "byte 0xE9 is not UTF-8"),
        (b"1\r2\r", "line 1: a carriage return"),
        (b"\x1f\x8b1", "the gzip data is damaged or cut off"),
        (b"1\n2 \n", "line 2: it begins or ends with white space"),
        (b"1\n#N/A\n", "line 2: #N/A is no value"),
        (
            b"1\xe2\x80\x8b\n",
            "line 1: it has the invisible character U+200B",
        ),
    ] {
        let run = ingest.run_with_stdin(words, ids);
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(run.stderr.contains(why), "{}", run.stderr);
    }
}
