//! The slowest compilations of the newest report that `cargo --timings` wrote.

use std::fs;

use serde::Deserialize;

use crate::project::project;

/// Cargo's page about its newest build; the data of its chart is one line of JSON in it.
const REPORT: &str = "target/cargo-timings/cargo-timing.html";
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

/// Returns the slowest of the report, the slowest first; none where there is no report.
pub fn slowest(most: usize) -> Vec<Compilation> {
    let report = fs::read_to_string(project().join(REPORT)).unwrap_or_default();
    let mut compilations = read(&report);
    compilations.truncate(most);
    compilations
}

fn read(report: &str) -> Vec<Compilation> {
    let Some((_, data)) = report.split_once(DATA) else {
        return Vec::new();
    };
    // The array ends where JavaScript goes on.
    let mut values = serde_json::Deserializer::from_str(data).into_iter::<Vec<Unit>>();
    let mut units = values.next().and_then(Result::ok).unwrap_or_default();
    units.sort_by(|one, other| other.duration.total_cmp(&one.duration));
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
    fn the_slowest_compilation_comes_first() {
        let report = r#"<script>const UNIT_DATA = [
          {"i":0,"name":"serde","version":"1.0.1","mode":"todo","target":"","start":0.1,"duration":1.5},
          {"i":1,"name":"kube","version":"5.0.0","mode":"todo","target":" lib (test)","start":0.1,"duration":9.0}];
        const CONCURRENCY_DATA = [];</script>"#;
        let names: Vec<_> = read(report).into_iter().map(|unit| unit.name).collect();
        assert_eq!(names, ["kube 5.0.0 lib (test)", "serde 1.0.1"]);
        assert_eq!(read("no report"), []);
    }
}
