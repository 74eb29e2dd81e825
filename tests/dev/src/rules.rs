//! `tests/rules.md` names tests that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process::run;
use crate::project::project;

const RULES: &str = include_str!("../../rules.md");

/// Returns the names of tests and of their modules in the table's second column: the last part of each path.
fn names(rules: &str) -> Vec<&str> {
    let rows = rules.lines().filter_map(|line| line.strip_prefix("| "));
    let tests = rows.filter_map(|row| row.split(" | ").nth(1));
    tests
        .flat_map(|tests| tests.split([' ', ',', '|', '`', '(', ')', '{', '}', ';', '.']))
        .filter_map(|path| path.rsplit_once("::"))
        .map(|(_, name)| name.trim_end_matches(['…', '*', '_']))
        .filter(|name| !["tests", ""].contains(name))
        .collect()
}

/// Returns the names of all functions and modules in Rust sources.
fn sources() -> BTreeSet<String> {
    let mut git = Command::new("git");
    git.args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "*.rs",
    ])
    .current_dir(project());
    let files = run(&mut git).unwrap();
    let mut names = BTreeSet::new();
    for file in files.lines().map(Path::new) {
        names.insert(file.file_stem().unwrap().display().to_string());
        // One that is deleted is still listed until the next commit.
        let text = fs::read_to_string(project().join(file)).unwrap_or_default();
        for line in text.lines() {
            let item = line.split_once("fn ").or_else(|| line.split_once("mod "));
            let name = item.and_then(|(_, item)| item.split(['(', '<', ';', ' ']).next());
            names.extend(name.map(str::to_owned));
        }
    }
    names
}

#[test]
fn the_list_of_rules_names_tests_that_exist() {
    let sources = sources();
    // A long name may be cut off by an ellipsis.
    let exists = |name: &str| {
        let next = sources.range(name.to_owned()..).next();
        next.is_some_and(|found| found.starts_with(name))
    };
    let names = names(RULES);
    assert!(names.len() > 100, "the table is not read: {names:?}");
    let missing: Vec<_> = names.iter().filter(|name| !exists(name)).collect();
    assert!(
        missing.is_empty(),
        "tests/rules.md names {missing:?}, which no source has"
    );
}

#[test]
fn a_name_is_the_last_part_of_a_path_in_the_second_column() {
    let table = "| a::rule | tests |\n| A rule of a::b | gate it::paths::only_exact (two tests), http unit::query::tests |";
    assert_eq!(names(table), ["only_exact"]);
}
