//! Loads of histories: upserted, all or nothing, noted, and purged.

use water_database::history;
use water_database::writer::History::{Analyses, Audits};
use water_database::writer::{Conflict, Load, LoadError, Purged};

use crate::fixture::{Fixture, Row, account, day, load, page, row, stress};

#[tokio::test]
async fn the_same_history_twice_changes_nothing() {
    let mut fixture = Fixture::new().await;
    let rows: Vec<Row> = (0..200).map(|n| row("acme", n, day(n))).collect();
    let first = fixture.load(Analyses, &rows).await.unwrap();
    assert_eq!((first.rows, first.inserted), (200, 200));
    let before = fixture.dump();
    let second = fixture.load(Analyses, &rows).await.unwrap();
    assert_eq!((second.changed(), second.unchanged()), (false, 200));
    assert_eq!(fixture.dump(), before);
}

#[tokio::test]
async fn a_history_is_upserted_by_account_and_id() {
    let mut fixture = Fixture::new().await;
    fixture
        .load(
            Audits,
            &[
                row("acme", 1, day(1)),
                row("acme", 2, day(2)),
                row("other", 1, day(1)),
            ],
        )
        .await
        .unwrap();
    let changed = [
        row("acme", 2, day(2)).score(9.0),
        row("acme", 3, day(3)),
        row("acme", 1, day(1)),
    ];
    let outcome = fixture.load(Audits, &changed).await.unwrap();
    assert_eq!(
        (outcome.inserted, outcome.updated, outcome.unchanged()),
        (1, 1, 1)
    );
    let slice = history::audits(&fixture.reader, &account("acme"), page(20, 0))
        .await
        .unwrap();
    let seen: Vec<_> = slice
        .rows
        .iter()
        .map(|row| (row.id.as_str(), row.score.get()))
        .collect();
    assert_eq!(
        (slice.total, seen),
        (3, vec![("3", 1.0), ("2", 9.0), ("1", 1.0)])
    );
}

#[tokio::test]
async fn a_repeated_row_counts_once() {
    let mut fixture = Fixture::new().await;
    fixture
        .load(Analyses, &[row("acme", 0, day(0))])
        .await
        .unwrap();
    let rows = [
        row("acme", 1, day(1)),
        row("acme", 1, day(1)),
        row("acme", 0, day(0)),
        row("acme", 0, day(0)),
    ];
    let outcome = fixture.load(Analyses, &rows).await.unwrap();
    assert_eq!((outcome.rows, outcome.inserted, outcome.updated), (4, 1, 0));
    assert_eq!(
        fixture.sql("SELECT total FROM water.analyses_accounts"),
        "2"
    );
}

#[tokio::test]
async fn a_row_repeated_with_different_content_is_refused_with_its_lines() {
    let mut fixture = Fixture::new().await;
    fixture
        .load(Analyses, &[row("acme", 0, day(0))])
        .await
        .unwrap();
    let before = fixture.dump();
    for id in [0, 1] {
        let rows = [
            row("acme", id, day(1)),
            row("acme", id, day(1)),
            row("acme", id, day(1)).score(7.0),
        ];
        let error = fixture.load(Analyses, &rows).await.unwrap_err();
        let LoadError::Conflicts { first, total } = error else {
            panic!("{error}")
        };
        assert_eq!(
            (first, total),
            (
                vec![Conflict {
                    line: 4,
                    first_line: 2
                }],
                1
            )
        );
    }
    assert_eq!(fixture.dump(), before);
}

#[tokio::test]
async fn a_dry_run_says_what_would_happen_and_changes_nothing() {
    let mut fixture = Fixture::new().await;
    let before = fixture.dump();
    let dry = Load {
        dry_run: true,
        ..load()
    };
    let stress = fixture
        .writer
        .replace_stress(&[stress("34", 1.0, None)], day(1), &dry)
        .await
        .unwrap();
    let analyses = fixture
        .load_as(Analyses, &[row("acme", 1, day(1))], day(0), &dry)
        .await
        .unwrap();
    assert_eq!((stress.inserted, analyses.inserted), (1, 1));
    assert_eq!(fixture.dump(), before);
}

#[tokio::test]
async fn a_load_that_is_dropped_leaves_nothing() {
    let mut fixture = Fixture::new().await;
    let before = fixture.dump();
    let staging = fixture.writer.stage(Analyses).await.unwrap();
    drop(staging);
    assert_eq!(fixture.dump(), before);
    assert_eq!(
        fixture
            .load(Analyses, &[row("acme", 1, day(1))])
            .await
            .unwrap()
            .inserted,
        1
    );
}

#[tokio::test]
async fn a_purged_account_is_gone_and_the_others_stay() {
    let mut fixture = Fixture::new().await;
    let rows: Vec<Row> = (0..100)
        .flat_map(|n| [row("acme", n, day(n)), row("other", n, day(n))])
        .collect();
    fixture.load(Analyses, &rows).await.unwrap();
    fixture.load(Audits, &rows[..2]).await.unwrap();
    let acme = account("acme");
    let kept = fixture.writer.purge(&acme, "nobody", true).await.unwrap();
    let purged = fixture.writer.purge(&acme, "nobody", false).await.unwrap();
    assert_eq!(
        (kept, purged),
        (
            purged,
            Purged {
                analyses: 100,
                audits: 1
            }
        )
    );
    assert!(!fixture.dump().contains("acme"));
    let other = history::analyses(&fixture.reader, &account("other"), page(20, 0))
        .await
        .unwrap();
    assert_eq!(other.total, 100);
}

#[tokio::test]
async fn each_load_is_noted_with_where_it_came_from() {
    let mut fixture = Fixture::new().await;
    fixture
        .writer
        .replace_stress(&[stress("34", 1.0, None)], day(1), &load())
        .await
        .unwrap();
    fixture
        .load(Analyses, &[row("acme", 1, day(1))])
        .await
        .unwrap();
    let loads = fixture.writer.provenance(10).await.unwrap();
    let seen: Vec<_> = loads
        .iter()
        .map(|load| (load.dataset.as_str(), load.as_of, load.rows))
        .collect();
    assert_eq!(
        seen,
        [("analyses", Some(day(0)), 1), ("stress", Some(day(1)), 1)]
    );
    let stress = &loads[1];
    assert_eq!(
        (
            stress.synthetic,
            stress.source.as_str(),
            stress.loaded_by.as_str()
        ),
        (true, "a test", "nobody")
    );
    assert_eq!(
        (stress.sha256.clone(), stress.derived.clone()),
        ("07".repeat(32), vec!["34".to_owned()])
    );
}

#[tokio::test]
async fn a_merge_sorts_in_memory_and_its_hash_tables_get_no_more_than_a_sort() {
    let mut fixture = Fixture::new().await;
    fixture.sql(
        "CREATE FUNCTION public.memory() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             NEW.source := current_setting('work_mem') || ' ' || current_setting('hash_mem_multiplier'); \
             RETURN NEW; END $$; \
         CREATE TRIGGER memory BEFORE INSERT ON water.loads FOR EACH ROW EXECUTE FUNCTION public.memory()",
    );
    fixture
        .load(Analyses, &[row("acme", 1, day(1))])
        .await
        .unwrap();
    assert_eq!(fixture.sql("SELECT source FROM water.loads"), "128MB 1");
}
