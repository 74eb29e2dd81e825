//! Loads of histories: upserted, all or nothing, recorded, and purged.

use tokio::time::timeout;
use water_database::history;
use water_database::writer::History::{Analyses, Audits};
use water_database::writer::{Conflict, LoadError, PurgeCounts};

use crate::SOON;
use crate::fixture::{Fixture, Row, account, batch, day, load, page, row, stress};

#[tokio::test]
async fn the_same_history_twice_changes_nothing() {
    let mut fixture = Fixture::new().await;
    let rows: Vec<Row> = (0..200).map(|n| row("acme", n, day(n))).collect();
    let first = fixture.load(Analyses, &rows).await;
    assert_eq!((first.rows, first.inserted), (200, 200));
    let before = fixture.dump();
    let second = fixture.load(Analyses, &rows).await;
    assert_eq!((second.changed(), second.unchanged()), (false, 200));
    assert_eq!(fixture.dump(), before);
}

#[tokio::test]
async fn a_history_is_upserted_by_account_and_id() {
    let mut fixture = Fixture::new().await;
    let rows = [("acme", 1), ("acme", 2), ("other", 1), ("other", 2)];
    let rows = rows.map(|(account, id)| row(account, id, day(id)));
    fixture.load(Audits, &rows).await;
    let changed = [
        row("acme", 2, day(2)).score(9.0),
        row("acme", 3, day(3)),
        row("acme", 1, day(1)),
    ];
    let outcome = fixture.load(Audits, &changed).await;
    assert_eq!(
        (outcome.inserted, outcome.updated, outcome.unchanged()),
        (1, 1, 1)
    );
    let acme = account("acme");
    let slice = history::audits(&fixture.reader, &acme, page(20, 0)).await;
    let slice = slice.unwrap();
    let seen = slice.rows.iter().map(|row| (&*row.id, row.score.get()));
    assert!(seen.eq([("3", 1.0), ("2", 9.0), ("1", 1.0)]), "{slice:?}");
    assert_eq!(slice.total, 3);
    let others = "SELECT score FROM water.audits WHERE account_id = 'other'";
    assert_eq!(fixture.sql(others), "1\n1");
}

#[tokio::test]
async fn a_repeated_row_counts_once_and_costs_no_more_than_as_many_rows() {
    let mut fixture = Fixture::new().await;
    let (known, new) = (row("acme", 0, day(0)), row("acme", 1, day(1)));
    fixture.load(Analyses, std::slice::from_ref(&known)).await;
    // A row of another account with the same id is not repeated.
    let other = row("other", 1, day(1));
    let rows = [known.clone(), new.clone(), other, known, new];
    let outcome = fixture.load(Analyses, &rows).await;
    assert_eq!((outcome.rows, outcome.inserted, outcome.updated), (5, 2, 0));
    let total = "SELECT total FROM water.analyses_accounts WHERE account_id = 'acme'";
    assert_eq!(fixture.sql(total), "2");
    // Comparing all pairs of them would take minutes.
    let rows = vec![row("acme", 2, day(1)); 40_000];
    let loaded = timeout(SOON, fixture.load(Analyses, &rows)).await;
    assert_eq!(loaded.unwrap().inserted, 1);
}

#[tokio::test]
async fn a_row_repeated_with_different_content_is_refused_with_its_lines() {
    let mut fixture = Fixture::new().await;
    fixture.load(Analyses, &[row("acme", 0, day(0))]).await;
    let before = fixture.dump();
    for id in [0, 1] {
        let row = row("acme", id, day(1));
        let rows = [row.clone(), row.clone(), row.score(7.0)];
        let refused = fixture.load_as(Analyses, &rows, day(0), &load()).await;
        let Err(LoadError::Conflicts { first, total }) = refused else {
            panic!("{refused:?}")
        };
        let conflict = Conflict {
            line: 4,
            first_line: 2,
        };
        assert_eq!((first, total), (vec![conflict], 1));
    }
    assert_eq!(fixture.dump(), before);
}

#[tokio::test]
async fn rows_that_wait_hold_no_snapshot_and_when_they_are_dropped_leave_nothing() {
    let mut fixture = Fixture::new().await;
    let before = fixture.dump();
    let rows: Vec<Row> = (0..100).map(|id| row("acme", id, day(id))).collect();
    for is_dropped in [true, false] {
        let mut staging = fixture.writer.stage(Analyses).await.unwrap();
        staging.push(batch(&rows, 2)).await.unwrap();
        if is_dropped {
            drop(staging);
            assert_eq!(fixture.dump(), before);
            continue;
        }
        let holding = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'water_writer' \
                       AND datname = current_database() \
                       AND (backend_xmin IS NOT NULL OR xact_start IS NOT NULL)";
        let held = fixture.postgres.sql(fixture.own.name(), holding).unwrap();
        assert_eq!(held, "0");
        let outcome = staging.finish(day(1), &load()).await.unwrap();
        assert_eq!((outcome.rows, outcome.inserted), (100, 100));
    }
}

#[tokio::test]
async fn a_purged_account_is_gone_and_stays_away_until_its_purge_is_lifted() {
    let mut fixture = Fixture::new().await;
    let rows: Vec<Row> = (0..100)
        .flat_map(|n| [row("acme", n, day(n)), row("other", n, day(n))])
        .collect();
    fixture.load(Analyses, &rows).await;
    fixture.load(Audits, &rows[..2]).await;
    let acme = account("acme");
    let expected = PurgeCounts {
        analyses: 100,
        audits: 1,
    };
    for is_dry in [true, false] {
        let purged = fixture.writer.purge(&acme, "somebody", is_dry).await;
        assert_eq!(purged.unwrap(), expected);
    }
    let noted =
        "SELECT purged_by, analyses, audits, account_sha256 = sha256('acme') FROM water.purges";
    assert_eq!(fixture.sql(noted), "somebody|100|1|t");
    let again = fixture.load(Analyses, &rows).await;
    assert_eq!(
        (again.inserted, again.purged, again.unchanged()),
        (0, 100, 100)
    );
    assert!(!fixture.dump().contains("acme"));
    let other: Vec<Row> = rows.iter().skip(1).step_by(2).cloned().collect();
    fixture.assert_pages("other", other).await;
    for was_purged in [true, false] {
        let lifted = fixture.writer.lift_purge(&acme).await;
        assert_eq!(lifted.unwrap(), was_purged);
    }
    let back = fixture.load(Analyses, &rows).await;
    assert_eq!((back.inserted, back.purged), (100, 0));
}

#[tokio::test]
async fn each_load_is_noted_with_where_it_came_from() {
    let mut fixture = Fixture::new().await;
    fixture.stress(&[stress("34", 1.0, None)], 1).await;
    fixture.load(Analyses, &[row("acme", 1, day(1))]).await;
    let loads = fixture.writer.provenance(10).await.unwrap();
    let seen = loads
        .iter()
        .map(|load| (&*load.dataset, load.as_of, load.rows));
    let expected = [("analyses", Some(day(0)), 1), ("stress", Some(day(1)), 1)];
    assert!(seen.eq(expected), "{loads:?}");
    let stress = &loads[1];
    assert_eq!(
        (stress.synthetic, &*stress.source, &*stress.loaded_by),
        (true, "a test", "nobody")
    );
    assert_eq!(stress.sha256, "07".repeat(32));
    assert_eq!(stress.derived, ["34"]);
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
    fixture.load(Analyses, &[row("acme", 1, day(1))]).await;
    assert_eq!(fixture.sql("SELECT source FROM water.loads"), "128MB 1");
}
