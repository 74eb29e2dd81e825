//! Files judged without a database, and problems told to programs.

use serde_json::{Value, json};

use crate::fixture::{command, run};

const ANALYSES: &str =
    "accountId,id,companyName,sectorCode,deptCode,globalScore,rating,createdAt\n";

#[test]
fn a_good_file_is_checked_without_a_database() {
    let checked = run(command("check stress -"), b"dept,stressIndex\n34,1\n75,2\n");
    assert_eq!((checked.code, checked.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        checked.summary,
        json!({
            "dataset": "stress", "file": "stdin", "outcome": "checked", "rows": 2, "problems": 0,
            "warnings": 0, "sha256": checked.summary["sha256"], "synthetic": false,
        })
    );
}

#[test]
fn every_dataset_is_checked_as_a_load_would() {
    for (words, bytes, problem) in [
        (
            "check risk -",
            "dept,flood,drought,overall\n34,101,1,1\n".to_owned(),
            "stdin:2: flood: 101 is outside 0..100\n",
        ),
        (
            "check vigieau -",
            r#"[{"code":"34"}]"#.to_owned(),
            "stdin:1: niveauGraviteMax: the member is missing\n",
        ),
        (
            "check analyses -",
            format!(
                "{ANALYSES}acme,1,Eaux,36.00Z,34,1,A,2026-01-01T00:00:00Z\n\
                 acme,1,Eaux,36.00Z,34,1,A,2026-01-01T00:00:00Z\n\
                 acme,1,Eaux,36.00Z,34,2,A,2026-01-01T00:00:00Z\n"
            ),
            "stdin:4: id: the record of line 2 is there again with different content\n",
        ),
    ] {
        let checked = run(command(words), bytes.as_bytes());
        assert_eq!(checked.code, Some(2), "{}", checked.stderr);
        let last = "stdin: nothing was loaded, for the problems above\n";
        assert_eq!(checked.stderr, format!("{problem}{last}"));
        assert_eq!(checked.summary["outcome"], json!("refused"));
    }
}

#[test]
fn a_program_gets_every_problem_as_json() {
    let rows = "34,x\n".repeat(60);
    let file = format!(
        "dept,stressIndex,name\n75,1,Yonne\n{}",
        rows.replace(",x", ",x,")
    );
    let checked = run(command("check stress - --report json"), file.as_bytes());
    assert_eq!(checked.code, Some(2));
    let remarks: Vec<Value> = checked
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |severity: &str| {
        remarks
            .iter()
            .filter(|remark| remark["severity"] == severity)
            .count()
    };
    // 60 indices that are no numbers, 59 départements that were given already.
    assert_eq!((of("problem"), of("warning"), of("failure")), (119, 1, 1));
    assert_eq!(
        remarks[1],
        json!({"severity": "problem", "file": "stdin", "line": 3, "column": "stressIndex", "message": "x is no number"})
    );
}

#[test]
fn all_problems_are_printed_when_they_are_asked_for() {
    let file = format!("dept,stressIndex\n{}", "34\n".repeat(60));
    let first = run(command("check stress -"), file.as_bytes());
    assert_eq!(first.stderr.lines().count(), 52);
    let all = run(command("check stress - --all-problems"), file.as_bytes());
    assert_eq!(all.stderr.lines().count(), 61);
}
