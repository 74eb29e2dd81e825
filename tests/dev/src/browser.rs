//! The browser tests: Playwright clicks through the portal of a cluster in Debian's Chromium.

use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::process::under;
use crate::progress::Progress;
use crate::{confidential, environment, web};

/// Runs the browser tests; their output and the files that they leave are searched for API keys. Playwright runs each
/// that fails once more; those that pass then are added to `flaky`.
pub fn run(cluster: &Cluster, flaky: &mut Vec<String>) -> Result<()> {
    let node_js = Progress::new().step("Packages of the browser tests", web::install_packages)?;
    let folder = cluster.file("browser");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot remove what earlier browser tests left")?;
    }
    fs::create_dir(&folder).context("cannot make the folder of the browser tests")?;
    // Chromium, as root, raises its own priority above all that it is tested with, unless it must not.
    let weak = ["setpriv", "--bounding-set=-sys_nice"];
    let mut npm = under(&weak, &node_js.npm(&web::folder(), &["test"]));
    npm.envs(environment::variables(cluster)?);
    let status =
        confidential::run_searched(&mut npm, |_| {}).context("the browser tests' output")?;
    let report = folder.join("report.json");
    let report = fs::read(&report).with_context(|| format!("cannot read {}", report.display()))?;
    let report = serde_json::from_slice(&report).context("Playwright's report is no JSON")?;
    flaky.extend(titles(&report, "flaky"));
    if !status.success() {
        let failed = titles(&report, "unexpected").join("; ");
        bail!("the browser tests ended with {status}: {failed}");
    }
    confidential::check(cluster)
}

/// Returns the files and titles of the tests that Playwright reports with this status.
fn titles(report: &Value, status: &str) -> Vec<String> {
    let items = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let mut found = Vec::new();
    for suite in items(report, "suites") {
        for spec in items(&suite, "specs") {
            let tests = items(&spec, "tests");
            if tests.iter().any(|test| test["status"] == status) {
                let text = |name: &str| spec[name].as_str().unwrap_or_default().to_owned();
                found.push(format!("{} {}", text("file"), text("title")));
            }
        }
        // A file's `describe` blocks.
        found.extend(titles(&suite, status));
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tests_are_found_by_their_status_in_every_block() {
        let spec = |title, status| json!({ "file": "a.spec.ts", "title": title, "tests": [{ "status": status }] });
        let inner = json!({ "specs": [spec("within", "flaky")] });
        let specs = [
            spec("good", "expected"),
            spec("again", "flaky"),
            spec("bad", "unexpected"),
        ];
        let report = json!({ "suites": [{ "specs": specs, "suites": [inner] }] });
        assert_eq!(
            titles(&report, "flaky"),
            ["a.spec.ts again", "a.spec.ts within"]
        );
        assert_eq!(titles(&report, "unexpected"), ["a.spec.ts bad"]);
    }
}
