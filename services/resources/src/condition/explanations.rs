//! Explanations of reasons: severity, meaning and remedy. The chart's README shows them as tables, made by its test.

mod api_keys;
mod water_data_apis;

use super::Reason;

pub use api_keys::OF_API_KEYS;
pub use water_data_apis::OF_WATER_DATA_APIS;

/// Severity of a reason.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// No action is needed.
    Fine,
    /// The state arrives by itself, or after another try.
    Waiting,
    /// The resource works, and somebody should act. Its begin is an event.
    Warning,
    /// Somebody has to act. Its begin is an event.
    Stalled,
}

/// Explanation of a reason, or of several that have one remedy.
#[derive(Clone, Copy, Debug)]
pub struct Explanation {
    /// The reasons.
    pub reasons: &'static [Reason],
    /// Severity of the reasons.
    pub severity: Severity,
    /// Meaning, as Markdown of one line.
    pub meaning: &'static str,
    /// Remedy, as Markdown of one line; links are relative to the chart's README.
    pub remedy: &'static str,
}

impl Reason {
    /// Returns the severity in conditions of the kind with these explanations; `None` if they lack the reason.
    pub fn severity(self, explanations: &[Explanation]) -> Option<Severity> {
        let mut explained = explanations.iter();
        let explained = explained.find(|explanation| explanation.reasons.contains(&self));
        explained.map(|explanation| explanation.severity)
    }
}

/// Reasons for which Redis does not do what the operator asks.
const STORE: &[Reason] = &[
    Reason::StoreUnavailable,
    Reason::StoreReadOnly,
    Reason::StoreOutOfMemory,
    Reason::StoreLoading,
    Reason::StoreWrongPassword,
    Reason::StoreClusterDown,
    Reason::StoreDenied,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::{env, fs};

    use super::*;

    fn table(explanations: &[Explanation]) -> String {
        let mut table = String::from("| reason | meaning | remedy |\n|---|---|---|\n");
        for Explanation {
            reasons,
            meaning,
            remedy,
            ..
        } in explanations
        {
            let words = reasons
                .iter()
                .map(|reason| format!("`{}`", reason.as_str()));
            let words = words.collect::<Vec<_>>().join(", ");
            table += &format!("| {words} | {meaning} | {remedy} |\n");
        }
        table
    }

    /// Returns the text with another table behind a heading.
    fn with_table(text: &str, heading: &str, table: &str) -> String {
        let begin = text.find(heading).expect(heading);
        let begin = begin + text[begin..].find("| reason |").expect("a table");
        let end = text[begin..]
            .find("\n\n")
            .map_or(text.len(), |end| begin + end + 1);
        [&text[..begin], table, &text[end..]].concat()
    }

    #[test]
    fn the_tables_in_the_charts_readme_are_these() {
        let readme =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/water-data/README.md");
        let text = fs::read_to_string(&readme).unwrap();
        let keys = with_table(&text, "\n### ApiKey\n", &table(OF_API_KEYS));
        let both = with_table(&keys, "\n### WaterDataApi\n", &table(OF_WATER_DATA_APIS));
        if env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&readme, &both).unwrap();
        }
        let text = fs::read_to_string(&readme).unwrap();
        assert!(
            text == both,
            "the tables are stale; `UPDATE_GOLDEN=1` writes them"
        );
    }

    #[test]
    fn each_reason_is_explained_once_for_each_kind_that_it_is_shown_for() {
        for reason in Reason::ALL {
            let times = |table: &[Explanation]| {
                let reasons = table.iter().flat_map(|explanation| explanation.reasons);
                reasons.filter(|explained| *explained == reason).count()
            };
            let counts = [times(OF_API_KEYS), times(OF_WATER_DATA_APIS)];
            assert!(counts.iter().all(|count| *count <= 1), "{reason:?} twice");
            assert!(counts.contains(&1), "{reason:?} is not explained");
        }
    }

    #[test]
    fn the_charts_readme_lists_each_warning_about_a_water_data_api_as_an_event() {
        let readme = include_str!("../../../../charts/water-data/README.md");
        let is_row =
            |line: &&str| line.ends_with(" (warnings) | WaterDataApi | as the reason above |");
        let row = readme.lines().find(is_row).expect("a row");
        let listed: BTreeSet<&str> = row.split('`').skip(1).step_by(2).collect();
        let warnings = OF_WATER_DATA_APIS.iter();
        let warnings = warnings.filter(|explanation| explanation.severity == Severity::Warning);
        let warnings = warnings.flat_map(|explanation| explanation.reasons);
        let warnings: BTreeSet<&str> = warnings.map(|reason| reason.as_str()).collect();
        assert_eq!(listed, warnings);
    }

    #[test]
    fn a_word_is_read_as_it_is_written() {
        for reason in Reason::ALL {
            assert_eq!(Reason::parse(reason.as_str()), Some(*reason));
        }
        assert_eq!(Reason::parse("Somebodys"), None);
    }
}
