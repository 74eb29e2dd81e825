//! Walks while loads, changes and deletions go on: nothing is missed, and nothing is sent twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::ensure;
use tokio::time::Instant;
use water_database::walk::{Cursor, Entry, Portion, Start, Token, Walk, WalkError};
use water_database::writer::History::Analyses;
use water_database::{Database, Writer};
use water_domain::Fault;
use water_harness::wait_until;

use crate::SOON;
use crate::fixture::{Fixture, Row, account, batch, day, load, row};

/// Number of rows that remain stored throughout.
const STORED: usize = 20_000;

/// Permanent row `n` of `acme`. Temporary rows have ids between those of permanent ones.
fn stored(n: usize) -> Row {
    row("acme", format!("{n:06}"), day(n as i64 % 1000))
}

fn passing(n: usize) -> Row {
    row("acme", format!("{n:06}-passing"), day(n as i64 % 1000))
}

async fn load_all(writer: &mut Writer, rows: &[Row]) {
    let mut staging = writer.stage(Analyses).await.unwrap();
    for (number, chunk) in (0..).zip(rows.chunks(1000)) {
        staging.push(batch(chunk, 2 + number * 1000)).await.unwrap();
    }
    staging.finish(day(0), &load()).await.unwrap();
}

/// Inserts, changes and deletes, round after round, until `end` is set.
async fn churn(mut writer: Writer, end: Arc<AtomicBool>) -> usize {
    let mut round = 0;
    while !end.load(Ordering::Acquire) {
        let start = round * 7919 % STORED;
        let some = |step: usize| (0..50).map(move |n| (start + n * step) % STORED);
        let rows = some(101).map(passing).chain(some(37).map(stored));
        let rows: Vec<Row> = rows.map(|row| row.score(round as f64 + 0.5)).collect();
        load_all(&mut writer, &rows).await;
        let gone: Vec<String> = some(101).take(25).map(|n| passing(n).id).collect();
        let acme = account("acme");
        let deleted = writer
            .delete(Analyses, &acme, &gone, day(-1), &load())
            .await;
        assert!(deleted.unwrap().removed > 0);
        round += 1;
    }
    round
}

/// Reads a page of 500 rows on any connection of the pool, with its token and the cursor of the next one. One that the
/// busy server did not read in time is asked for again, as a client does.
async fn read(reader: &Database, start: &Start) -> (Portion, Token, Option<Cursor>) {
    let acme = account("acme");
    let asked = Instant::now();
    loop {
        let page = async {
            let walk = Walk::start(reader, Analyses, &acme, start.clone()).await?;
            let (walk, portion) = walk.portion(500).await?;
            let last = portion.place_before(portion.len());
            let (token, next) = walk.end(last.filter(|_| portion.has_more())).await?;
            Ok::<_, WalkError>((portion, token, next))
        };
        match page.await {
            Err(WalkError::Database(error)) if error.is_transient() && asked.elapsed() < SOON => {}
            page => return page.unwrap(),
        }
    }
}

/// Walks from `start` to the end, page by page. What the walk has met never goes back.
async fn walk(reader: &Database, start: Start, mut told: impl FnMut(Entry<'_>)) -> Token {
    let (mut start, mut seen) = (start, 0);
    loop {
        let (portion, token, next) = read(reader, &start).await;
        let met = token.seen.number;
        assert!(met >= token.version.max(seen), "{token:?} after {seen}");
        seen = met;
        portion.entries().for_each(|entry| told(entry.unwrap()));
        let Some(next) = next else {
            return token;
        };
        start = Start::At(next);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_are_stored_throughout_a_walk_are_met_exactly_once() {
    let mut fixture = Fixture::new().await;
    let rows: Vec<Row> = (0..STORED).map(stored).collect();
    load_all(&mut fixture.writer, &rows).await;
    let end = Arc::new(AtomicBool::new(false));
    let churning = tokio::spawn(churn(fixture.writer, Arc::clone(&end)));
    let version = "SELECT version >= 20 FROM water.datasets WHERE name = 'analyses'";
    let mut walks = 0;
    while fixture.postgres.sql(fixture.own.name(), version).unwrap() != "t" || walks < 3 {
        let mut met = BTreeSet::new();
        let mut twice = Vec::new();
        walk(&fixture.reader, Start::Rows, |entry| {
            let Entry::Row(record) = entry else {
                panic!("a deletion");
            };
            if !met.insert(record.id.to_owned()) {
                twice.push(record.id.to_owned());
            }
        })
        .await;
        let missed = (0..STORED)
            .filter(|n| !met.contains(&stored(*n).id))
            .count();
        assert_eq!((missed, twice), (0, vec![]));
        walks += 1;
    }
    end.store(true, Ordering::Release);
    assert!(churning.await.unwrap() >= 10);
}

/// Copy of the history at a client that follows changes.
#[derive(Default)]
struct Copy {
    scores: BTreeMap<String, f64>,
    /// Changes that repeat a row as the copy had it.
    repeated: Vec<String>,
}

impl Copy {
    fn apply(&mut self, entry: Entry<'_>) {
        match entry {
            Entry::Row(record) => {
                let score = record.score.get();
                if self.scores.insert(record.id.to_owned(), score) == Some(score) {
                    self.repeated.push(record.id.to_owned());
                }
            }
            Entry::Deleted(id) => {
                self.scores.remove(id);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_of_changes_misses_nothing_and_is_told_nothing_twice() {
    let mut fixture = Fixture::new().await;
    let rows: Vec<Row> = (0..STORED)
        .step_by(10)
        .map(|n| stored(n).score(-1.0))
        .collect();
    load_all(&mut fixture.writer, &rows).await;
    let mut copy = Copy::default();
    let mut known = walk(&fixture.reader, Start::Rows, |entry| copy.apply(entry)).await;
    let end = Arc::new(AtomicBool::new(false));
    let churning = tokio::spawn(churn(fixture.writer, Arc::clone(&end)));
    let mut walks = 0;
    while known.version < 60 {
        known = walk(&fixture.reader, Start::Changes(known), |entry| {
            copy.apply(entry)
        })
        .await;
        walks += 1;
    }
    end.store(true, Ordering::Release);
    churning.await.unwrap();
    walk(&fixture.reader, Start::Changes(known), |entry| {
        copy.apply(entry)
    })
    .await;
    let stored =
        "SELECT id || ' ' || score FROM water.analyses WHERE account_id = 'acme' ORDER BY id";
    let stored = fixture.postgres.sql(fixture.own.name(), stored).unwrap();
    let copied = copy
        .scores
        .iter()
        .map(|(id, score)| format!("{id} {score}"));
    assert!(
        copied.eq(stored.lines().map(str::to_owned)),
        "after {walks} walks"
    );
    assert_eq!(copy.repeated, Vec::<String>::new());
}

#[tokio::test]
async fn changes_that_commit_late_are_told_once_they_are_there() {
    let mut fixture = Fixture::new().await;
    load_all(&mut fixture.writer, &[stored(1)]).await;
    // Each load's commit waits until the test releases it.
    fixture.sql(
        "CREATE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN PERFORM pg_advisory_xact_lock(42); RETURN NULL; END $$; \
         CREATE CONSTRAINT TRIGGER holds AFTER INSERT ON water.loads \
         DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.hold()",
    );
    let holder = fixture.hold("SELECT pg_advisory_xact_lock(42)").await;
    let mut writer = fixture.writer;
    let loading = tokio::spawn(async move { load_all(&mut writer, &[stored(2)]).await });
    let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 42 AND NOT granted \
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let commits = async || {
        let count = fixture.postgres.sql(fixture.own.name(), held)?;
        ensure!(count == "1", "{count} wait");
        Ok(())
    };
    wait_until("the load to commit", SOON, commits)
        .await
        .unwrap();

    // The client asks while the load is written and not committed, and again when it is.
    let mut told = Vec::new();
    let mut tell = |entry: Entry<'_>| match entry {
        Entry::Row(record) => told.push(record.id.to_owned()),
        Entry::Deleted(id) => panic!("{id} was not deleted"),
    };
    let known = walk(&fixture.reader, Start::Rows, &mut tell).await;
    let known = walk(&fixture.reader, Start::Changes(known), &mut tell).await;
    holder.batch_execute("COMMIT").await.unwrap();
    loading.await.unwrap();
    let known = walk(&fixture.reader, Start::Changes(known), &mut tell).await;
    walk(&fixture.reader, Start::Changes(known), &mut tell).await;
    assert_eq!(told, [stored(1).id, stored(2).id]);
}
