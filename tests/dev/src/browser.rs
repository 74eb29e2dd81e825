//! The browser tests: Playwright clicks through the portal of a cluster in Debian's Chromium.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::process::{run_reporting, under};
use crate::progress::{Progress, Step};
use crate::stalls::is_stall;
use crate::suites::{Results, Selection, TestTime, Tier};
use crate::{confidential, environment, web};

/// Characters of an ordinary text that mean something in a regular expression.
const SPECIAL: &str = r"\^$.*+?()[]{}|/";

/// Words before Playwright's. It ends with this process, its workers end with it, and each Chromium with its worker, to
/// which it has a pipe. No namespace holds them: tests end the portal's processes by the machine's ids. Chromium, as
/// root, raises its own priority above all that it is tested with, unless it must not.
const LAUNCHER: [&str; 4] = ["setpriv", "--pdeathsig", "KILL", "--bounding-set=-sys_nice"];

/// A choice of browser tests.
pub struct BrowserTests {
    /// Arguments for Playwright.
    arguments: Vec<String>,
}

impl BrowserTests {
    /// Chooses the browser tests whose file or title has the selection's text.
    pub fn of(selection: &Selection) -> Self {
        let mut projects = vec!["beside", "alone"];
        if selection.tier >= Tier::Long {
            projects.push("long");
        }
        let mut arguments: Vec<_> = projects
            .iter()
            .map(|project| format!("--project={project}"))
            .collect();
        if let Some(text) = &selection.text {
            // Without dependencies, of which every test would run; so none may run beside another.
            arguments.extend(["--no-deps", "--workers=1"].map(str::to_owned));
            // What it searches begins with the project's name.
            arguments.push(format!(r"--grep=/^\S+ .*{}/", escaped(text)));
        }
        Self { arguments }
    }

    /// Chooses as [`Self::of`] does; none if there is no such test.
    pub fn find(selection: &Selection, step: &Step) -> Result<Option<Self>> {
        let tests = Self::of(selection);
        let node_js = web::install_packages(step)?;
        let mut arguments = vec!["--silent", "test", "--", "--list", "--reporter=json"];
        arguments.push("--pass-with-no-tests");
        arguments.extend(tests.arguments.iter().map(String::as_str));
        let mut npm = node_js.npm(&web::folder(), &arguments);
        let mut printed = String::new();
        // It prints its errors where it prints its list.
        run_reporting(&mut npm, &mut |line| printed.push_str(line))?;
        let report: Value = serde_json::from_str(&printed).context("Playwright's list")?;
        let found = specs(&report);
        Ok((!found.is_empty()).then_some(tests))
    }

    /// Runs the tests; their output and the files that they leave are searched for API keys. Playwright runs each that
    /// fails once more; those that pass then are flaky, unless a wrong value was why they failed.
    pub fn run(&self, cluster: &Cluster, results: &mut Results) -> Result<()> {
        let node_js =
            Progress::new().step("Packages of the browser tests", web::install_packages)?;
        let folder = cluster.file("browser");
        if folder.exists() {
            fs::remove_dir_all(&folder).context("cannot remove what earlier browser tests left")?;
        }
        fs::create_dir(&folder).context("cannot make the folder of the browser tests")?;
        let mut playwright = node_js.program(&web::folder(), "playwright");
        playwright.arg("test").args(&self.arguments);
        let mut playwright = under(&LAUNCHER, &playwright);
        playwright.envs(environment::variables(cluster)?);
        let status =
            confidential::run_searched(&mut playwright).context("the browser tests' output")?;
        let report = folder.join("report.json");
        let report =
            fs::read(&report).with_context(|| format!("cannot read {}", report.display()))?;
        let report = serde_json::from_slice(&report).context("Playwright's report is no JSON")?;
        let specs = specs(&report);
        results.count += specs.len();
        results.flaky.extend(titles(&specs, "flaky"));
        results.times.extend(specs.iter().map(time));
        if !status.success() {
            let failed = titles(&specs, "unexpected").join("; ");
            bail!("the browser tests ended with {status}: {failed}");
        }
        let wrong: Vec<_> = specs
            .iter()
            .filter(|spec| has_erred(spec))
            .map(title)
            .collect();
        ensure!(
            wrong.is_empty(),
            "failed, though no standstill was why, and passed then: {}",
            wrong.join("; ")
        );
        confidential::check(cluster)
    }
}

/// Returns a regular expression that finds the text as it is.
fn escaped(text: &str) -> String {
    let escape = |character: char| {
        let special = SPECIAL.contains(character).then_some('\\');
        special.into_iter().chain([character])
    };
    text.chars().flat_map(escape).collect()
}

/// Returns the tests of Playwright's report.
fn specs(report: &Value) -> Vec<Value> {
    let items = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let mut found = Vec::new();
    for suite in items(report, "suites") {
        found.extend(items(&suite, "specs"));
        // A file's `describe` blocks.
        found.extend(specs(&suite));
    }
    found
}

/// Returns the files and titles of the tests with this status.
fn titles(specs: &[Value], status: &str) -> Vec<String> {
    let has_it = |spec: &&Value| tests(spec).any(|test| test["status"] == status);
    specs.iter().filter(has_it).map(title).collect()
}

/// Returns the file and title of a test.
fn title(spec: &Value) -> String {
    let text = |name: &str| spec[name].as_str().unwrap_or_default();
    format!("{} {}", text("file"), text("title"))
}

/// Returns the time that a test has taken, with all its tries.
fn time(spec: &Value) -> TestTime {
    let tries = tests(spec).flat_map(|test| test["results"].as_array().into_iter().flatten());
    let millis: f64 = tries.filter_map(|one| one["duration"].as_f64()).sum();
    TestTime {
        suite: "browser".to_owned(),
        name: title(spec),
        seconds: millis / 1000.0,
    }
}

/// Whether a try of a flaky test failed for another reason than a standstill of the machine.
fn has_erred(spec: &Value) -> bool {
    let flaky = tests(spec).filter(|test| test["status"] == "flaky");
    let tries = flaky.flat_map(|test| test["results"].as_array().into_iter().flatten());
    tries.filter(|one| one["status"] != "passed").any(|one| {
        let errors = one["errors"].as_array().into_iter().flatten();
        let mut said = errors.filter_map(|error| error["message"].as_str());
        !said.any(is_stall)
    })
}

/// Returns the results of a test: one for each of its projects.
fn tests(spec: &Value) -> impl Iterator<Item = &Value> {
    spec["tests"].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tests_are_found_by_their_status_in_every_block() {
        let spec = |title, status| json!({ "file": "a.spec.ts", "title": title, "tests": [{ "status": status }] });
        let inner = json!({ "specs": [spec("within", "flaky")] });
        let some = [
            spec("good", "expected"),
            spec("again", "flaky"),
            spec("bad", "unexpected"),
        ];
        let report = json!({ "suites": [{ "specs": some, "suites": [inner] }] });
        let specs = specs(&report);
        assert_eq!(specs.len(), 4);
        let flaky = ["a.spec.ts again", "a.spec.ts within"];
        assert_eq!(titles(&specs, "flaky"), flaky);
        assert_eq!(titles(&specs, "unexpected"), ["a.spec.ts bad"]);
    }

    #[test]
    fn a_wrong_value_is_no_flaky_test() {
        let flaky = |status, said| {
            let tries = json!([{ "status": status, "errors": [{ "message": said }] }, { "status": "passed" }]);
            json!({ "tests": [{ "status": "flaky", "results": tries }] })
        };
        let timeout = "Error: expect(locator).toBeVisible() failed\n\nTimeout: 60000ms";
        assert!(!has_erred(&flaky("failed", timeout)));
        assert!(!has_erred(&flaky(
            "timedOut",
            "Test timeout of 180000ms exceeded."
        )));
        assert!(has_erred(&flaky(
            "failed",
            "Error: expect(received).toBe(expected)"
        )));
    }

    #[test]
    fn a_tests_time_is_that_of_all_its_tries() {
        let results = json!([{ "duration": 1500 }, { "duration": 250 }]);
        let spec =
            json!({ "file": "a.spec.ts", "title": "again", "tests": [{ "results": results }] });
        let TestTime { name, seconds, .. } = time(&spec);
        assert_eq!((name.as_str(), seconds), ("a.spec.ts again", 1.75));
    }

    #[test]
    fn a_text_is_searched_as_it_is() {
        let selection = Selection {
            tier: Tier::Long,
            text: Some("a.b (c)".to_owned()),
        };
        let BrowserTests { arguments } = BrowserTests::of(&selection);
        assert_eq!(arguments.last().unwrap(), r"--grep=/^\S+ .*a\.b \(c\)/");
        assert!(arguments.contains(&"--project=long".to_owned()));
    }
}
