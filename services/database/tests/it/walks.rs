//! Walks through a history and through its changes: what they meet, and what ends them.

use water_database::Database;
use water_database::walk::{Entry, Start, Token, Walk, WalkError};
use water_database::writer::History::{Analyses, Audits};
use water_domain::{Fault, Timestamp};

use crate::fixture::{Fixture, Row, account, day, load, row};

/// What a walk told of one id.
#[derive(Clone, PartialEq, Debug)]
pub enum Told {
    /// It has this score.
    Row(String, f64),
    /// It is deleted.
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
    /// Walks through `acme`'s analyses in portions of 3, each a request of its own.
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
            if !portion.has_more() {
                return Ok((walk.began(), told));
            }
            let last = portion.place_before(portion.len()).unwrap();
            start = Start::At(walk.cursor(last));
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

    async fn analyses_of_acme(&mut self, rows: &[Row]) {
        self.load(Analyses, rows).await.unwrap();
    }

    pub async fn delete(&mut self, ids: &[&str]) -> u64 {
        let ids: Vec<_> = ids.iter().map(|id| (*id).to_owned()).collect();
        let acme = account("acme");
        let deleted = self.writer.delete(Analyses, &acme, &ids, &load()).await;
        deleted.unwrap().removed
    }
}

/// A walk, or a further part of one, through `acme`'s analyses.
pub async fn begin(reader: &Database, start: Start) -> Walk {
    let acme = account("acme");
    Walk::start(reader, Analyses, &acme, start).await.unwrap()
}

#[tokio::test]
async fn a_walk_meets_each_row_once_in_the_order_of_the_ids() {
    let mut fixture = Fixture::new().await;
    let rows = ["b", "é", "B", "a", "10", "9", "aa"].map(|id| row("acme", id, day(1)));
    fixture.analyses_of_acme(&rows).await;
    let expected = ["10", "9", "B", "a", "aa", "b", "é"].map(Told::row);
    assert_eq!(fixture.all().await.1, expected);
}

#[tokio::test]
async fn a_walk_meets_rows_of_its_account_and_history_only() {
    let mut fixture = Fixture::new().await;
    let rows = ["acme", "ACME", "acme.fr"].map(|account| row(account, account, day(1)));
    fixture.load(Analyses, &rows).await.unwrap();
    fixture
        .load(Audits, &[row("acme", "audit", day(1))])
        .await
        .unwrap();
    let (began, told) = fixture.all().await;
    assert_eq!(told, [Told::row("acme")]);
    fixture
        .load(Analyses, &[row("other", "x", day(1))])
        .await
        .unwrap();
    assert_eq!(fixture.since(began).await.1, []);
}

#[tokio::test]
async fn a_record_has_all_fields_of_its_row() {
    let mut fixture = Fixture::new().await;
    let rows = [row("acme", 1, day(3)).score(42.5)];
    fixture.load(Audits, &rows).await.unwrap();
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
    fixture.analyses_of_acme(&rows).await;
    let (began, _) = fixture.all().await;
    assert_eq!(fixture.since(began).await.1, []);
    fixture
        .analyses_of_acme(&[rows[4].clone().score(4.0), row("acme", "new", day(1))])
        .await;
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
}

#[tokio::test]
async fn a_file_that_says_what_is_stored_changes_nothing() {
    let mut fixture = Fixture::new().await;
    let rows: Vec<Row> = (0..9).map(|id| row("acme", id, day(id))).collect();
    fixture.analyses_of_acme(&rows).await;
    let (began, _) = fixture.all().await;
    let confirmed = fixture.load_as(Analyses, &rows, day(5), &load()).await;
    assert!(!confirmed.unwrap().changed());
    assert_eq!(fixture.since(began).await.1, []);
}

#[tokio::test]
async fn what_changes_during_a_walk_belongs_to_the_next() {
    let mut fixture = Fixture::new().await;
    fixture.analyses_of_acme(&[row("acme", 0, day(0))]).await;
    let (known, _) = fixture.all().await;
    let rows: Vec<Row> = (1..6).map(|id| row("acme", id, day(id))).collect();
    fixture.analyses_of_acme(&rows).await;
    let reader = fixture.reader.clone();
    let walk = begin(&reader, Start::Changes(known)).await;
    let (walk, first) = walk.portion(2).await.unwrap();
    // One was told before, one not yet, and one is new.
    let later = [1, 4, 7].map(|id| row("acme", id, day(id)).score(9.0));
    fixture.analyses_of_acme(&later).await;
    fixture.delete(&["5"]).await;
    let rest = Start::At(walk.cursor(first.place_before(2).unwrap()));
    let (began, rest) = fixture.walk(rest).await.unwrap();
    assert_eq!(rest, [Told::row(3)]);
    let expected = ["1", "4", "7"].map(|id| Told::Row(id.to_owned(), 9.0));
    let expected = [expected.as_slice(), &[Told::gone(5)]].concat();
    assert_eq!(fixture.since(began).await.1, expected);
}

#[tokio::test]
async fn a_row_that_was_deleted_and_came_back_is_a_row() {
    let mut fixture = Fixture::new().await;
    fixture.analyses_of_acme(&[row("acme", 1, day(1))]).await;
    let (began, _) = fixture.all().await;
    fixture.delete(&["1"]).await;
    fixture.analyses_of_acme(&[row("acme", 1, day(1))]).await;
    assert_eq!(fixture.since(began).await.1, [Told::row(1)]);
    fixture.delete(&["1"]).await;
    assert_eq!(fixture.since(began).await.1, [Told::gone(1)]);
}

#[tokio::test]
async fn a_purge_ends_what_its_account_knew_and_nothing_of_others() {
    let mut fixture = Fixture::new().await;
    fixture.analyses_of_acme(&[row("acme", 1, day(1))]).await;
    let (known, _) = fixture.all().await;
    let other = account("other");
    fixture.writer.purge(&other, "nobody", false).await.unwrap();
    assert_eq!(fixture.since(known).await.1, []);
    let acme = account("acme");
    fixture.writer.purge(&acme, "nobody", false).await.unwrap();
    assert!(matches!(fixture.refusal(known).await, WalkError::Expired));
    fixture.writer.lift_purge(&acme).await.unwrap();
    assert!(matches!(fixture.refusal(known).await, WalkError::Expired));
    fixture.analyses_of_acme(&[row("acme", 2, day(1))]).await;
    let (known, told) = fixture.all().await;
    assert_eq!(told, [Told::row(2)]);
    assert_eq!(fixture.since(known).await.1, []);
}

#[tokio::test]
async fn what_is_older_than_90_days_has_expired() {
    let fixture = Fixture::new().await;
    let (known, _) = fixture.all().await;
    let days_before = |days: i64| Token {
        at: Timestamp::from_millis(known.at.as_millis() - days * 86_400_000).unwrap(),
        ..known
    };
    assert_eq!(fixture.since(days_before(89)).await.1, []);
    let refusal = fixture.refusal(days_before(91)).await;
    assert!(matches!(refusal, WalkError::Expired));
}

#[tokio::test]
async fn a_server_that_is_behind_what_was_shown_may_catch_up() {
    let fixture = Fixture::new().await;
    let (known, _) = fixture.all().await;
    let ahead = Token {
        version: known.version + 1,
        ..known
    };
    let WalkError::Database(error) = fixture.refusal(ahead).await else {
        panic!("it has not expired");
    };
    assert!(error.is_transient());
    let told = "this replica is behind what was asked for";
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), told);
}

#[tokio::test]
async fn a_portion_reads_few_rows_wherever_it_stands() {
    let mut fixture = Fixture::new().await;
    let rows: Vec<Row> = (10_000..30_000)
        .map(|id| row("acme", id, day(id)))
        .collect();
    fixture.analyses_of_acme(&rows).await;
    let known = begin(&fixture.reader, Start::Rows).await.began();
    let changed: Vec<Row> = rows.iter().map(|row| row.clone().score(2.0)).collect();
    fixture.analyses_of_acme(&changed).await;
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
