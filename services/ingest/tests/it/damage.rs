//! A file with damage anywhere is refused as a whole or accepted as a whole.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::fixture::Fixture;

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

#[tokio::test]
async fn a_damaged_file_changes_nothing_unless_it_is_accepted() {
    let fixture = Fixture::new().await;
    let stored =
        || fixture.sql("SELECT string_agg(s::text, ' ' ORDER BY dept) FROM water.stress AS s");
    // Each case is a process of its own: few of them, where the readers' own properties have many.
    let mut runner = TestRunner::new(Config {
        cases: 40,
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = runner.run(&damaged(), |bytes| {
        let before = stored();
        let run =
            fixture.run_with_stdin("load stress - --as-of 2026-01-01 --allow-missing", &bytes);
        match run.code {
            Some(0) => prop_assert_eq!(&run.summary["problems"], 0),
            Some(2) => prop_assert_eq!(stored(), before),
            other => prop_assert!(false, "exit {:?}: {}", other, run.stderr),
        }
        Ok(())
    });
    outcome.unwrap();
}
