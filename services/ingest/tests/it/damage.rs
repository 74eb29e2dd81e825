//! A file with damage anywhere is refused as a whole or accepted as a whole.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::fixture::Fixture;
use crate::strict;

const GOOD: &str = "dept;name;stressIndex;level\r\n\
                    01;Ain;0,5;normal\r\n2A;\"Corse-du-Sud\";5;crise\r\n34;Hérault;3,25;Alerte renforcée\r\n";

/// One byte replaced, put in or taken out, or the end cut off, a few times.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let damage = (0_u8..4, any::<prop::sample::Index>(), any::<u8>());
    proptest::collection::vec(damage, 1..4).prop_map(|damages| {
        let mut bytes = GOOD.as_bytes().to_vec();
        for (kind, at, byte) in damages {
            let at = at.index(bytes.len().max(1));
            match kind {
                0 if at < bytes.len() => bytes[at] = byte,
                1 => bytes.insert(at.min(bytes.len()), byte),
                2 if at < bytes.len() => drop(bytes.remove(at)),
                _ => bytes.truncate(at),
            }
        }
        bytes
    })
}

/// Without the guards, which know nothing of damage.
const LOAD: &str = "load stress - --as-of 2026-01-01 --allow-missing --max-changed 100";

/// The index of each département as the file says it.
fn said(bytes: &[u8]) -> BTreeMap<String, f64> {
    let text = std::str::from_utf8(bytes).unwrap();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let semicolons = text.lines().next().unwrap().contains(';');
    let records = strict::records(text, if semicolons { ';' } else { ',' });
    let records = records.expect("an accepted file is CSV");
    let column = |name| records[0].iter().position(|column| column == name).unwrap();
    let (dept, index) = (column("dept"), column("stressIndex"));
    let rows = records[1..].iter().map(|record| {
        let code = format!("{:0>2}", record[dept].to_uppercase());
        (code, record[index].replace(',', ".").parse().unwrap())
    });
    rows.collect()
}

#[tokio::test]
async fn a_damaged_file_changes_nothing_or_is_stored_as_it_says() {
    let fixture = Fixture::new().await;
    let stored =
        || fixture.sql("SELECT string_agg(s::text, ' ' ORDER BY dept) FROM water.stress AS s");
    let indices =
        || fixture.sql("SELECT concat(dept, ' ', stress_index) FROM water.stress ORDER BY dept");
    // Each case is a process of its own: few of them, where the readers' own properties have many.
    let mut runner = TestRunner::new(Config {
        cases: 200,
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = runner.run(&damaged(), |bytes| {
        let before = stored();
        let run = fixture.run_with_stdin(LOAD, &bytes);
        match run.code {
            Some(0) => {
                let loaded = indices();
                let rows = loaded.lines().map(|row| row.split_once(' ').unwrap());
                let rows = rows.map(|(code, index)| (code.to_owned(), index.parse().unwrap()));
                prop_assert_eq!(rows.collect::<BTreeMap<String, f64>>(), said(&bytes));
            }
            Some(2) => prop_assert_eq!(stored(), before),
            other => prop_assert!(false, "exit {:?}: {}", other, run.stderr),
        }
        Ok(())
    });
    outcome.unwrap();
}
