//! The record of the last run of all long tests, which is committed, and its age.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::process::run;
use crate::project::project;

/// Path of the record, from the checkout's root.
pub const RECORD: &str = "tests/e2e/results/long.json";

/// Folders whose commits count: the product's.
const COUNTED: [&str; 3] = ["operator", "services", "charts"];
/// Most commits to them above the one that the long tests passed on.
const MOST_COMMITS: u32 = 60;

/// A run in which all long tests passed.
#[derive(Serialize, Deserialize)]
struct Record {
    /// Hash of the commit that was tested.
    commit: String,
    /// Date of the run, in UTC.
    date: String,
    /// Time of the whole run.
    seconds: u64,
    /// Number of tests that ran, the short ones included.
    tests: usize,
    /// Tests that failed once, and passed when they ran again.
    flaky: Vec<String>,
}

/// Commit that is tested; none if the sources are another's.
pub struct Tested(Option<String>);

impl Tested {
    /// Reads the commit of the checkout. Only results of tests may differ from it.
    pub fn now() -> Result<Self> {
        let project = project();
        let changed = ["status", "--porcelain", "--", ".", ":!tests/*/results"];
        let changed = git(&project, &changed)?;
        let commit = git(&project, &["rev-parse", "HEAD"])?;
        Ok(Self(changed.is_empty().then_some(commit)))
    }

    /// Returns why a run of this is not recorded, if it is not.
    pub fn refusal(&self) -> Option<&'static str> {
        let refusal =
            "long tests: not recorded, since the checkout has changes that are not committed";
        self.0.is_none().then_some(refusal)
    }

    /// Writes the record of a run that has passed. What was not committed is not recorded.
    pub fn record(self, taken: Duration, tests: usize, flaky: &[String]) -> Result<()> {
        let Some(commit) = self.0 else { return Ok(()) };
        let record = Record {
            commit,
            date: run(Command::new("date").args(["--utc", "+%FT%TZ"]))?
                .trim()
                .to_owned(),
            seconds: taken.as_secs(),
            tests,
            flaky: flaky.to_vec(),
        };
        let file = project().join(RECORD);
        let text = serde_json::to_string_pretty(&record)? + "\n";
        fs::write(&file, text).with_context(|| format!("write {}", file.display()))
    }
}

/// Returns the age of the record, in words. An error says that the long tests have to run again.
pub fn age() -> Result<String> {
    age_in(&project(), MOST_COMMITS)
}

fn age_in(checkout: &Path, most: u32) -> Result<String> {
    let remedy = format!("run `cargo dev test --long`, and commit {RECORD}");
    let text = fs::read(checkout.join(RECORD));
    let text = text.with_context(|| format!("no run of all long tests is recorded: {remedy}"))?;
    let Record { commit, date, .. } = serde_json::from_slice(&text)
        .with_context(|| format!("{RECORD} is no record: {remedy}"))?;
    let passed = format!("long tests: passed on {date} at {commit}");
    let git = |arguments: &[&str]| git(checkout, arguments);
    match git(&["rev-parse", "--is-shallow-repository"]).as_deref() {
        Ok("false") => {}
        Ok(_) => {
            return Ok(format!(
                "{passed}; a shallow clone cannot count the commits since"
            ));
        }
        Err(_) => {
            return Ok(format!(
                "{passed}; without git nobody can count the commits since"
            ));
        }
    }
    if git(&["merge-base", "--is-ancestor", &commit, "HEAD"]).is_err() {
        bail!("{passed}, which is not below this commit: {remedy}");
    }
    let range = format!("{commit}..HEAD");
    let count = ["rev-list", "--count", &range, "--"].into_iter();
    let count: Vec<_> = count.chain(COUNTED).collect();
    let since: u32 = git(&count)?.parse().context("git counts commits")?;
    let age = format!("{passed}, {since} commits to the product ago, of at most {most}");
    ensure!(since <= most, "{age}: {remedy}");
    Ok(age)
}

fn git(checkout: &Path, arguments: &[&str]) -> Result<String> {
    let mut git = Command::new("git");
    git.args(arguments).current_dir(checkout);
    // No other repository than the checkout's own: neither that of a hook nor one further up.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        git.env_remove(variable);
    }
    git.env(
        "GIT_CEILING_DIRECTORIES",
        checkout.parent().unwrap_or(checkout),
    );
    let printed = run(&mut git)?;
    Ok(printed.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A checkout with a commit.
    struct Checkout(TempDir);

    impl Checkout {
        fn new() -> Self {
            let checkout = Self(tempfile::tempdir().unwrap());
            checkout.git(&["init", "--quiet"]);
            checkout.commit("README.md");
            checkout
        }

        fn git(&self, arguments: &[&str]) -> String {
            let author = [
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@water.example",
                "-c",
                "commit.gpgsign=false",
            ];
            git(self.0.path(), &[&author, arguments].concat()).unwrap()
        }

        fn head(&self) -> String {
            self.git(&["rev-parse", "HEAD"])
        }

        /// Commits a change of a file.
        fn commit(&self, file: &str) {
            let file = self.0.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            let before = fs::read_to_string(&file).unwrap_or_default();
            fs::write(&file, before + "x").unwrap();
            self.git(&["add", "."]);
            self.git(&["commit", "--quiet", "--message", "Change"]);
        }

        /// Commits a record of that commit.
        fn record(&self, commit: &str) {
            let record = Record {
                commit: commit.to_owned(),
                date: "2026-01-01T00:00:00Z".to_owned(),
                seconds: 1,
                tests: 1,
                flaky: Vec::new(),
            };
            let file = self.0.path().join(RECORD);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, serde_json::to_string(&record).unwrap()).unwrap();
            self.git(&["add", "."]);
            self.git(&["commit", "--quiet", "--message", "Record"]);
        }

        /// The age where one commit may lie above the record's.
        fn age(&self) -> Result<String> {
            age_in(self.0.path(), 1)
        }

        fn refusal(&self) -> String {
            self.age().unwrap_err().to_string()
        }
    }

    #[test]
    fn a_record_ages_with_each_commit_to_the_product() {
        let checkout = Checkout::new();
        checkout.record(&checkout.head());
        for (file, since) in [("README.md", 0), ("charts/values.yaml", 1)] {
            checkout.commit(file);
            let age = checkout.age().unwrap();
            assert!(age.contains(&format!(", {since} commits")), "{age}");
        }
        checkout.commit("operator/src/main.rs");
        let refusal = checkout.refusal();
        let words = ", 2 commits to the product ago, of at most 1: run `cargo dev test --long`";
        assert!(refusal.contains(words), "{refusal}");
    }

    #[test]
    fn no_record_and_one_of_another_history_are_refused() {
        let checkout = Checkout::new();
        assert!(checkout.refusal().starts_with("no run of all long tests"));
        let another = Checkout::new();
        another.commit("README.md");
        checkout.record(&another.head());
        let refusal = checkout.refusal();
        assert!(refusal.contains("not below this commit"), "{refusal}");
    }

    #[test]
    fn where_commits_cannot_be_counted_the_record_is_named() {
        let checkout = Checkout::new();
        checkout.record(&checkout.head());
        let shallow = Checkout(tempfile::tempdir().unwrap());
        let origin = format!("file://{}", checkout.0.path().display());
        shallow.git(&["clone", "--quiet", "--depth=1", &origin, "."]);
        assert!(shallow.age().unwrap().contains("a shallow clone"));
        fs::remove_dir_all(shallow.0.path().join(".git")).unwrap();
        assert!(shallow.age().unwrap().contains("without git"));
    }
}
