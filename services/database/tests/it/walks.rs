//! Walks through a history and through its changes: their entries, and the causes of their end.

use water_database::Database;
use water_database::walk::{Entry, Start, Token, Walk, WalkError};
use water_database::writer::History::{Analyses, Audits};

use crate::fixture::{Fixture, Row, account, day, load, row};

/// An entry of a walk, by id.
#[derive(Clone, PartialEq, Debug)]
pub enum Told {
    /// A row with this score.
    Row(String, f64),
    /// A deleted row.
    Gone(String),
}

impl Told {
    pub fn row(id: impl ToString) -> Self {
        Self::Row(id.to_string(), 1.0)
    }

    fn gone(id: impl ToString) -> Self {
        Self::Gone(id.to_string())
    }
}

impl Fixture {
    /// Walks through `acme`'s analyses in portions of 3, each a separate request.
    async fn walk(&self, start: Start) -> Result<(Token, Vec<Told>), WalkError> {
        let (mut told, mut start) = (Vec::new(), start);
        loop {
            let walk = Walk::start(&self.reader, Analyses, &account("acme"), start).await?;
            let (walk, portion) = walk.portion(3).await?;
            for entry in portion.entries() {
                told.push(match entry.unwrap() {
                    Entry::Row(record) => Told::Row(record.id.to_owned(), record.score.get()),
                    Entry::Deleted(id) => Told::gone(id),
                });
            }
            let last = portion.place_before(portion.len());
            let (token, next) = walk.end(last.filter(|_| portion.has_more())).await?;
            let Some(next) = next else {
                return Ok((token, told));
            };
            start = Start::At(next);
        }
    }

    pub async fn all(&self) -> (Token, Vec<Told>) {
        self.walk(Start::Rows).await.unwrap()
    }

    pub async fn since(&self, known: Token) -> (Token, Vec<Told>) {
        self.walk(Start::Changes(known)).await.unwrap()
    }

    async fn refusal(&self, known: Token) -> WalkError {
        self.walk(Start::Changes(known)).await.unwrap_err()
    }

    pub async fn delete(&mut self, ids: &[&str]) -> u64 {
        let ids: Vec<_> = ids.iter().map(|id| (*id).to_owned()).collect();
        let acme = account("acme");
        let deleted = self
            .writer
            .delete(Analyses, &acme, &ids, day(-1), &load())
            .await;
        deleted.unwrap().removed
    }
}

/// Begins or continues a walk through `acme`'s analyses.
async fn begin(reader: &Database, start: Start) -> Walk {
    let acme = account("acme");
    Walk::start(reader, Analyses, &acme, start).await.unwrap()
}

#[tokio::test]
async fn a_walk_meets_each_row_of_its_account_and_history_once_in_the_order_of_the_ids() {
    let mut fixture = Fixture::new().await;
    let rows = ["b", "é", "B", "a", "10", "9", "aa"].map(|id| row("acme", id, day(1)));
    let others = ["ACME", "acme.fr"].map(|account| row(account, account, day(1)));
    fixture.load(Analyses, &rows).await;
    fixture.load(Analyses, &others).await;
    fixture.load(Audits, &[row("acme", "audit", day(1))]).await;
    let (began, told) = fixture.all().await;
    assert_eq!(told, ["10", "9", "B", "a", "aa", "b", "é"].map(Told::row));
    fixture.load(Analyses, &[row("other", "x", day(1))]).await;
    assert_eq!(fixture.since(began).await.1, []);
}

#[tokio::test]
async fn only_the_beginning_of_a_walk_through_all_rows_tells_their_number() {
    let mut fixture = Fixture::new().await;
    let rows = [("acme", 1), ("acme", 2), ("other", 1)];
    let rows = rows.map(|(account, id)| row(account, id, day(id)));
    fixture.load(Analyses, &rows).await;
    let walk = begin(&fixture.reader, Start::Rows).await;
    assert_eq!(walk.total(), Some(2));
    let (walk, first) = walk.portion(1).await.unwrap();
    let (token, rest) = walk.end(first.place_before(1)).await.unwrap();
    for start in [Start::Changes(token), Start::At(rest.unwrap())] {
        assert_eq!(begin(&fixture.reader, start).await.total(), None);
    }
}

#[tokio::test]
async fn a_record_has_all_fields_of_its_row() {
    let mut fixture = Fixture::new().await;
    let rows = [row("acme", 1, day(3)).score(42.5)];
    fixture.load(Audits, &rows).await;
    let acme = account("acme");
    let walk = Walk::start(&fixture.reader, Audits, &acme, Start::Rows);
    let (_, portion) = walk.await.unwrap().portion(10).await.unwrap();
    let Entry::Row(record) = portion.entries().next().unwrap().unwrap() else {
        panic!("a deletion");
    };
    let texts = [
        record.id,
        record.company_name,
        record.sector_code,
        record.dept_code,
        record.rating,
    ];
    assert_eq!(texts, ["1", "Société Test", "36.00Z", "34", "B+"]);
    assert_eq!((record.score.get(), record.created_at), (42.5, day(3)));
}

#[tokio::test]
async fn changes_are_the_rows_that_came_changed_or_went_since() {
    let mut fixture = Fixture::new().await;
    let rows: Vec<Row> = (0..9).map(|id| row("acme", id, day(id))).collect();
    fixture.load(Analyses, &rows).await;
    let (began, _) = fixture.all().await;
    // A file that repeats the stored rows changes nothing.
    let confirmed = fixture.load_as(Analyses, &rows, day(5), &load()).await;
    assert!(!confirmed.unwrap().changed());
    assert_eq!(fixture.since(began).await.1, []);
    let changed = [rows[4].clone().score(4.0), row("acme", "new", day(1))];
    let changed = fixture.load_as(Analyses, &changed, day(5), &load()).await;
    assert_eq!(changed.unwrap().updated, 1);
    assert_eq!(fixture.delete(&["2", "7"]).await, 2);
    let (now, told) = fixture.since(began).await;
    let expected = [
        Told::Row("4".to_owned(), 4.0),
        Told::row("new"),
        Told::gone(2),
        Told::gone(7),
    ];
    assert_eq!(told, expected);
    assert_eq!(fixture.since(now).await.1, []);
    // A row that was deleted and came back is a row.
    fixture.load(Analyses, &rows[2..3]).await;
    assert_eq!(fixture.since(now).await.1, [Told::row(2)]);
    fixture.delete(&["2"]).await;
    assert_eq!(fixture.since(now).await.1, [Told::gone(2)]);
}

#[tokio::test]
async fn what_changes_during_a_walk_belongs_to_the_next() {
    let mut fixture = Fixture::new().await;
    fixture.load(Analyses, &[row("acme", 0, day(0))]).await;
    let (known, _) = fixture.all().await;
    let rows: Vec<Row> = (1..6).map(|id| row("acme", id, day(id))).collect();
    fixture.load(Analyses, &rows).await;
    let reader = fixture.reader.clone();
    let walk = begin(&reader, Start::Changes(known)).await;
    let (walk, first) = walk.portion(2).await.unwrap();
    let (_, rest) = walk.end(first.place_before(2)).await.unwrap();
    // One was sent before, one not yet, and one is new.
    let later = [1, 4, 7].map(|id| row("acme", id, day(id)).score(9.0));
    fixture.load(Analyses, &later).await;
    fixture.delete(&["5"]).await;
    let rest = Start::At(rest.unwrap());
    let (began, rest) = fixture.walk(rest).await.unwrap();
    assert_eq!(rest, [Told::row(3)]);
    let expected = ["1", "4", "7"].map(|id| Told::Row(id.to_owned(), 9.0));
    let expected = [expected.as_slice(), &[Told::gone(5)]].concat();
    assert_eq!(fixture.since(began).await.1, expected);
}

#[tokio::test]
async fn a_page_knows_of_a_load_that_came_after_its_beginning() {
    let mut fixture = Fixture::new().await;
    fixture.load(Analyses, &[row("acme", 1, day(1))]).await;
    let reader = fixture.reader.clone();
    let walk = begin(&reader, Start::Rows).await;
    fixture.load(Analyses, &[row("acme", 2, day(2))]).await;
    let (walk, portion) = walk.portion(3).await.unwrap();
    assert_eq!(portion.len(), 2);
    let (token, _) = walk.end(None).await.unwrap();
    assert_eq!((token.version, token.seen.number), (1, 2));
    assert_eq!(fixture.since(token).await.1, [Told::row(2)]);
    // Another load has got the number, as after a restore.
    fixture.sql(
        "UPDATE water.versions SET id = gen_random_uuid() WHERE dataset = 'analyses' AND version = 2",
    );
    assert!(matches!(fixture.refusal(token).await, WalkError::Expired));
}

#[tokio::test]
async fn a_purge_ends_what_its_account_knew_and_nothing_of_others() {
    let mut fixture = Fixture::new().await;
    fixture.load(Analyses, &[row("acme", 1, day(1))]).await;
    let (known, _) = fixture.all().await;
    let other = account("other");
    fixture.writer.purge(&other, "nobody", false).await.unwrap();
    assert_eq!(fixture.since(known).await.1, []);
    let acme = account("acme");
    fixture.writer.purge(&acme, "nobody", false).await.unwrap();
    assert!(matches!(fixture.refusal(known).await, WalkError::Expired));
    fixture.writer.lift_purge(&acme).await.unwrap();
    assert!(matches!(fixture.refusal(known).await, WalkError::Expired));
    fixture.load(Analyses, &[row("acme", 2, day(1))]).await;
    let (known, told) = fixture.all().await;
    assert_eq!(told, [Told::row(2)]);
    assert_eq!(fixture.since(known).await.1, []);
}

#[tokio::test]
async fn a_page_within_which_its_account_was_purged_has_expired() {
    let mut fixture = Fixture::new().await;
    fixture.load(Analyses, &[row("acme", 1, day(1))]).await;
    let (known, _) = fixture.all().await;
    let reader = fixture.reader.clone();
    let rows = begin(&reader, Start::Rows).await;
    let changes = begin(&reader, Start::Changes(known)).await;
    let acme = account("acme");
    fixture.writer.purge(&acme, "nobody", false).await.unwrap();
    let (rows, portion) = rows.portion(3).await.unwrap();
    assert!(portion.is_empty());
    for walk in [rows, changes] {
        assert!(matches!(walk.end(None).await, Err(WalkError::Expired)));
    }
}

#[tokio::test]
async fn a_version_keeps_its_id_for_91_days_after_the_next_one() {
    let mut fixture = Fixture::new().await;
    for id in 1..=3 {
        fixture.load(Analyses, &[row("acme", id, day(1))]).await;
    }
    fixture.sql(
        "UPDATE water.versions SET at = now() - interval '1 day' * CASE version \
             WHEN 1 THEN 200 WHEN 2 THEN 92 ELSE 90 END \
         WHERE dataset = 'analyses' AND version > 0",
    );
    // The loader of the version before writes no id.
    fixture.sql("UPDATE water.datasets SET version = version + 1 WHERE name = 'analyses'");
    let kept = "SELECT version FROM water.versions WHERE dataset = 'analyses' ORDER BY version";
    assert_eq!(fixture.sql(kept), "2\n3\n4");
}

#[tokio::test]
async fn a_portion_reads_few_rows_wherever_it_stands() {
    let mut fixture = Fixture::new().await;
    let rows = (10_000..16_000).map(|id| row("acme", id, day(id)));
    let rows: Vec<Row> = rows.collect();
    fixture.load(Analyses, &rows).await;
    let walk = begin(&fixture.reader, Start::Rows).await;
    let (known, _) = walk.end(None).await.unwrap();
    let changed: Vec<Row> = rows.iter().map(|row| row.clone().score(2.0)).collect();
    fixture.load(Analyses, &changed).await;
    let starts = [Start::Rows, Start::Changes(known)];
    for start in starts {
        fixture.forget_statistics().await;
        let (mut walk, mut told) = (begin(&fixture.reader, start).await, 0);
        for _ in 0..20 {
            let (next, portion) = walk.portion(50).await.unwrap();
            (walk, told) = (next, told + portion.len());
        }
        drop(walk);
        let fetched = fixture.fetched_rows().await;
        assert!(
            told == 1000 && fetched <= 1100,
            "{fetched} rows fetched for {told}"
        );
    }
}
