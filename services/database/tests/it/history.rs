//! Pages of a history: order, totals, deep offsets, and whose rows they are.

use std::time::Duration;

use water_database::history::{self, Slice};
use water_database::writer::History::{Analyses, Audits};
use water_database::{Database, Writer};
use water_domain::{ComplianceAudit, RiskAnalysis};
use water_harness::wait_until;

use crate::fixture::{Fixture, Row, account, day, page, row};

impl Fixture {
    async fn analyses(&self, id: &str, limit: u8, offset: u64) -> Slice<RiskAnalysis> {
        history::analyses(&self.reader, &account(id), page(limit, offset))
            .await
            .unwrap()
    }

    async fn audits(&self, id: &str) -> Slice<ComplianceAudit> {
        history::audits(&self.reader, &account(id), page(20, 0))
            .await
            .unwrap()
    }

    /// Every page of every size must be what sorting the rows gives.
    pub async fn assert_pages(&self, id: &'static str, mut rows: Vec<Row>) {
        rows.sort_by(|one, other| (other.created_at, &other.id).cmp(&(one.created_at, &one.id)));
        let total = rows.len() as u64;
        for offset in 0..=total {
            let slice = self.analyses(id, 7, offset).await;
            let found: Vec<_> = slice
                .rows
                .iter()
                .map(|row| (row.id.as_str(), row.created_at))
                .collect();
            let wanted = rows.iter().skip(offset as usize).take(7);
            let wanted: Vec<_> = wanted
                .map(|row| (row.id.as_str(), row.created_at))
                .collect();
            assert_eq!((slice.total, found), (total, wanted), "offset {offset}");
        }
    }
}

impl Fixture {
    /// Ends all sessions, whose own reads would count, and sets the server's counters to zero.
    pub async fn forget_statistics(&mut self) {
        self.reader = Database::connect(&self.own.url_as("water_reader"), None, 2).unwrap();
        self.writer = Writer::connect(&self.own.url_as("water_writer"), None)
            .await
            .unwrap();
        let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()";
        let ended = async || match self.sql(sessions).as_str() {
            "2" => Ok(()), // the new writer and this question
            more => anyhow::bail!("{more} sessions"),
        };
        wait_until("the first sessions to end", Duration::from_secs(10), ended)
            .await
            .unwrap();
        self.sql("SELECT pg_stat_reset()");
    }

    /// Rows of the analyses that were read since, as soon as the server has counted them.
    pub async fn fetched_rows(&self) -> u32 {
        let sql = "SELECT coalesce(idx_tup_fetch, 0) + seq_tup_read FROM pg_stat_user_tables WHERE relname = 'analyses'";
        let counted = async || match self.sql(sql).parse()? {
            0 => anyhow::bail!("none yet"),
            rows => Ok(rows),
        };
        wait_until("the server to count", Duration::from_secs(20), counted)
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn an_account_without_rows_has_an_empty_page() {
    let fixture = Fixture::new().await;
    assert_eq!(
        fixture.analyses("acme", 20, 0).await,
        Slice {
            total: 0,
            rows: vec![]
        }
    );
}

#[tokio::test]
async fn rows_come_newest_first_then_by_id_in_byte_order() {
    let mut fixture = Fixture::new().await;
    let rows = [
        row("acme", "a", day(1)),
        row("acme", "B", day(1)),
        row("acme", "é", day(1)),
        row("acme", "z", day(0)),
    ];
    fixture.load(Analyses, &rows).await.unwrap();
    let slice = fixture.analyses("acme", 20, 0).await;
    let ids: Vec<_> = slice.rows.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids, ["é", "a", "B", "z"]);
}

#[tokio::test]
async fn a_page_shows_the_accounts_own_rows_only() {
    let mut fixture = Fixture::new().await;
    fixture
        .load(
            Analyses,
            &[
                row("acme", "1", day(1)),
                row("acme.fr", "2", day(1)),
                row("ACME", "3", day(1)),
            ],
        )
        .await
        .unwrap();
    let slice = fixture.analyses("acme", 20, 0).await;
    assert_eq!(
        (slice.total, slice.rows.len(), slice.rows[0].id.as_str()),
        (1, 1, "1")
    );
}

#[tokio::test]
async fn the_two_histories_are_apart_and_keep_every_field() {
    let mut fixture = Fixture::new().await;
    fixture
        .load(Audits, &[row("acme", "1", day(1)).score(42.5)])
        .await
        .unwrap();
    assert_eq!(fixture.analyses("acme", 20, 0).await.total, 0);
    let audit = fixture.audits("acme").await.rows.remove(0);
    assert_eq!(
        audit,
        ComplianceAudit {
            id: "1".to_owned(),
            company_name: "Société Test".to_owned(),
            sector_code: "36.00Z".parse().unwrap(),
            dept_code: "34".to_owned(),
            score: water_domain::Number::try_from(42.5).unwrap(),
            global_rating: "B+".parse().unwrap(),
            created_at: day(1),
        }
    );
}

#[tokio::test]
async fn every_offset_gives_its_page_and_one_beyond_the_total_none() {
    let mut fixture = Fixture::new().await;
    let rows: Vec<Row> = (0..300).map(|n| row("acme", n, day(n % 100))).collect();
    fixture.load(Analyses, &rows).await.unwrap();
    fixture.assert_pages("acme", rows).await;
    let beyond = fixture.analyses("acme", 20, (1 << 53) - 1).await;
    assert_eq!((beyond.total, beyond.rows.len()), (300, 0));
}

#[tokio::test]
async fn pages_stay_right_when_old_rows_are_added_moved_and_changed() {
    let mut fixture = Fixture::new().await;
    let mut rows: Vec<Row> = (0..200).map(|n| row("acme", n, day(n))).collect();
    fixture.load(Analyses, &rows).await.unwrap();
    // Newest rows, rows older than all, rows in between; then one moves far back and one forth.
    for new in [vec![500, 501], vec![-9, -5, -3], vec![50, 50, 50, 120]] {
        let new: Vec<Row> = new
            .iter()
            .enumerate()
            .map(|(n, at)| row("acme", format!("n{at}.{n}"), day(*at)))
            .collect();
        fixture.load(Analyses, &new).await.unwrap();
        rows.extend(new);
        fixture.assert_pages("acme", rows.clone()).await;
    }
    for (index, to) in [(150, -20), (3, 700)] {
        rows[index].created_at = day(to);
        fixture.load(Analyses, &rows[index..=index]).await.unwrap();
        fixture.assert_pages("acme", rows.clone()).await;
    }
}

#[tokio::test]
async fn a_page_far_into_a_long_history_reads_few_rows() {
    let mut fixture = Fixture::new().await;
    let rows: Vec<Row> = (0..20_000).map(|n| row("acme", n, day(n))).collect();
    fixture.load(Analyses, &rows).await.unwrap();
    fixture.forget_statistics().await;
    assert_eq!(fixture.analyses("acme", 20, 19_000).await.rows[0].id, "999");
    // 63 rows skipped, 20 read, and one to see that the anchor's row is the first.
    let fetched = fixture.fetched_rows().await;
    assert!(fetched <= 84, "{fetched} rows fetched");
}
