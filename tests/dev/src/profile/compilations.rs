//! The slowest compilations of the reports that `cargo --timings` writes, one for each build.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

use crate::project::project;

/// Folder of cargo's pages about its builds; the data of a page's chart is one line of JSON in it.
const REPORTS: &str = "target/cargo-timings";
/// File of the newest page, which has a file of its own as well.
const NEWEST: &str = "cargo-timing.html";
const DATA: &str = "const UNIT_DATA = ";

/// A compiler's run.
#[derive(Debug, PartialEq)]
pub struct Compilation {
    pub name: String,
    pub seconds: f64,
}

#[derive(Deserialize)]
struct Unit {
    name: String,
    version: String,
    target: String,
    duration: f64,
}

/// Returns the files of the reports that there are.
pub fn reports() -> BTreeSet<PathBuf> {
    let folder = fs::read_dir(project().join(REPORTS));
    let files = folder.into_iter().flatten();
    let files = files.filter_map(|file| Some(file.ok()?.path()));
    files.filter(|file| !file.ends_with(NEWEST)).collect()
}

/// Returns the slowest of all reports but the `earlier` ones, the slowest first; none where there is no report.
pub fn slowest(most: usize, earlier: &BTreeSet<PathBuf>) -> Vec<Compilation> {
    let reports = reports();
    let reports = reports.difference(earlier);
    let mut compilations =
        sorted(reports.map(|report| fs::read_to_string(report).unwrap_or_default()));
    compilations.truncate(most);
    compilations
}

/// Returns the compilations of these reports, the slowest first.
fn sorted(reports: impl Iterator<Item = String>) -> Vec<Compilation> {
    let mut compilations: Vec<_> = reports.flat_map(|report| read(&report)).collect();
    compilations.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    compilations
}

fn read(report: &str) -> Vec<Compilation> {
    let Some((_, data)) = report.split_once(DATA) else {
        return Vec::new();
    };
    // The array ends where JavaScript goes on.
    let mut values = serde_json::Deserializer::from_str(data).into_iter::<Vec<Unit>>();
    let units = values.next().and_then(Result::ok).unwrap_or_default();
    let compilation = |unit: Unit| Compilation {
        name: format!("{} {}{}", unit.name, unit.version, unit.target),
        seconds: unit.duration,
    };
    units.into_iter().map(compilation).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_compilation_of_all_reports_comes_first() {
        let report = r#"<script>const UNIT_DATA = [
          {"i":0,"name":"serde","version":"1.0.1","mode":"todo","target":"","start":0.1,"duration":1.5},
          {"i":1,"name":"kube","version":"5.0.0","mode":"todo","target":" lib (test)","start":0.1,"duration":9.0}];
        const CONCURRENCY_DATA = [];</script>"#;
        let other = r#"const UNIT_DATA = [
          {"i":0,"name":"water-e2e","version":"0.1.0","mode":"todo","target":" e2e (test)",
           "start":0.1,"duration":4.0}];"#;
        let reports = [report, other].map(str::to_owned).into_iter();
        let names: Vec<_> = sorted(reports).into_iter().map(|unit| unit.name).collect();
        let slowest_first = [
            "kube 5.0.0 lib (test)",
            "water-e2e 0.1.0 e2e (test)",
            "serde 1.0.1",
        ];
        assert_eq!(names, slowest_first);
        assert_eq!(read("no report"), []);
    }
}
