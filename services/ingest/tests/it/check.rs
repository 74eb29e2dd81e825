//! Files checked without a database, and problems reported to programs.

use serde_json::{Value, json};

use crate::command::{gzip, say};

#[test]
fn a_good_file_is_checked_without_a_database() {
    let checked = say("check stress -", "dept,stressIndex\n34,1\n75,2\n");
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
fn people_get_fifty_problems_or_all_and_a_program_each_as_json() {
    let rows = "34,x,\n".repeat(60);
    let file = format!("dept,stressIndex,name\n75,1,Yonne\n{rows}");
    // 60 indices that are no numbers, 59 départements that were given already, and a warning.
    for (flag, lines) in [("", 53), (" --all-problems", 121)] {
        let checked = say(&format!("check stress -{flag}"), &file);
        let last = checked.stderr.lines().last();
        assert_eq!(checked.code, Some(2));
        assert_eq!(
            last,
            Some("stdin: nothing was loaded, for the problems above")
        );
        assert_eq!(checked.stderr.lines().count(), lines, "{}", checked.stderr);
        let counted = ["outcome", "problems", "warnings"].map(|name| &checked.summary[name]);
        assert_eq!(counted, [&json!("refused"), &json!(119), &json!(1)]);
    }
    let checked = say("check stress - --report json", &file);
    let remarks: Vec<Value> = checked
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let count = |severity: &str| {
        let severity = remarks
            .iter()
            .filter(|remark| remark["severity"] == severity);
        severity.count()
    };
    let counts = ["problem", "warning", "failure"].map(count);
    assert_eq!(counts, [119, 1, 1]);
    assert_eq!(
        remarks[1],
        json!({"severity": "problem", "file": "stdin", "line": 3, "column": "stressIndex", "message": "x is no number"})
    );
}

#[test]
fn a_table_whose_last_line_has_no_end_is_refused_from_a_pipe_and_a_warning_from_a_file() {
    let cut = "dept,stressIndex\n34,1\n75,2";
    // A pipe that has a name is a pipe.
    for path in ["-", "/dev/stdin"] {
        let piped = say(&format!("check stress {path}"), cut);
        assert_eq!(piped.code, Some(2));
        assert!(
            piped
                .stderr
                .starts_with("stdin:3: the last line has no end"),
            "{}",
            piped.stderr
        );
    }
    let braced = say("check stress -", "dept,stressIndex\n34,1\n{75,2");
    assert!(
        braced.stderr.contains("stdin:3: the last line has no end"),
        "{}",
        braced.stderr
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stress.csv");
    std::fs::write(&path, cut).unwrap();
    let read = say(&format!("check stress {}", path.display()), "");
    assert_eq!(
        (read.code, read.stderr.as_str()),
        (
            Some(0),
            "stress.csv:3: warning: the last line has no end, so it may be cut off: 75,2\n"
        )
    );
    let object = r#"{"dept":"34","stressIndex":1}"#;
    let complete = say(
        "check stress -",
        format!("{object}\n{}", object.replace("34", "75")),
    );
    assert_eq!(complete.code, Some(0), "{}", complete.stderr);
}

#[test]
fn another_number_of_rows_than_the_command_line_says_is_refused() {
    for (rows, code) in [(1, 2), (2, 0), (3, 2)] {
        let checked = say(
            &format!("check stress - --rows {rows}"),
            "dept,stressIndex\n34,1\n75,2\n",
        );
        assert_eq!(checked.code, Some(code), "{}", checked.stderr);
    }
}

#[test]
fn gzip_that_is_cut_between_two_members_is_refused_by_its_number_of_rows_only() {
    let first = gzip("dept,stressIndex\n34,1\n");
    for (words, code) in [("check stress -", 0), ("check stress - --rows 2", 2)] {
        let checked = say(words, &first);
        assert_eq!(checked.code, Some(code), "{}", checked.stderr);
    }
}
