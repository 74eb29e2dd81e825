//! Pages of a history: order, totals, deep offsets, and rows of the account only.

use water_database::history::{self, Slice};
use water_database::writer::History::{Analyses, Audits};
use water_database::{Database, Writer};
use water_domain::{ComplianceAudit, RiskAnalysis};
use water_harness::wait_until;

use crate::SOON;
use crate::fixture::{Fixture, Row, account, day, page, row};

impl Fixture {
    async fn analyses(&self, id: &str, limit: u8, offset: u64) -> Slice<RiskAnalysis> {
        history::analyses(&self.reader, &account(id), page(limit, offset))
            .await
            .unwrap()
    }

    /// Fails unless every page of every size equals the sorted rows.
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
            "2" => Ok(()), // the new writer and this query
            more => anyhow::bail!("{more} sessions"),
        };
        wait_until("the first sessions to end", SOON, ended)
            .await
            .unwrap();
        self.sql("SELECT pg_stat_reset()");
    }

    /// Rows of the analyses that were read since, once the server has counted them.
    pub async fn fetched_rows(&self) -> u32 {
        let sql = "SELECT coalesce(idx_tup_fetch, 0) + seq_tup_read FROM pg_stat_user_tables WHERE relname = 'analyses'";
        let counted = async || match self.sql(sql).parse()? {
            0 => anyhow::bail!("none yet"),
            rows => Ok(rows),
        };
        wait_until("the server to count", SOON, counted)
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn a_page_shows_the_accounts_own_rows_only() {
    let mut fixture = Fixture::new().await;
    let rows = ["acme", "acme.fr", "ACME"].map(|account| row(account, account, day(1)));
    fixture.load(Analyses, &rows).await;
    fixture.assert_pages("acme", rows[..1].to_vec()).await;
    fixture.assert_pages("nobody", vec![]).await;
}

#[tokio::test]
async fn the_two_histories_are_apart_and_keep_every_field() {
    let mut fixture = Fixture::new().await;
    let rows = [row("acme", "1", day(1)).score(42.5)];
    fixture.load(Audits, &rows).await;
    assert_eq!(fixture.analyses("acme", 20, 0).await.total, 0);
    let acme = account("acme");
    let audits = history::audits(&fixture.reader, &acme, page(20, 0)).await;
    let audit = audits.unwrap().rows.remove(0);
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
async fn pages_stay_right_whatever_rows_come_move_and_go() {
    let mut fixture = Fixture::new().await;
    // Rows of one day are ordered by the bytes of their ids.
    let ids = ["a", "B", "é", "z"].map(|id| row("acme", id, day(1)));
    let many = (0..150).map(|n| row("acme", format!("{n:03}"), day(n % 100)));
    let mut rows: Vec<Row> = many.chain(ids).collect();
    fixture.load(Analyses, &rows).await;
    fixture.assert_pages("acme", rows.clone()).await;
    let beyond = fixture.analyses("acme", 20, (1 << 53) - 1).await;
    assert_eq!((beyond.total, beyond.rows.len()), (154, 0));

    // Newest rows, rows older than all, rows in between; then one moves far back and one forward.
    for new in [vec![500, 501], vec![-9, -5, -3], vec![50, 50, 50, 120]] {
        let new = (0..).zip(&new);
        let new = new.map(|(n, at): (u32, _)| row("acme", format!("n{at}.{n}"), day(*at)));
        let new: Vec<Row> = new.collect();
        fixture.load(Analyses, &new).await;
        rows.extend(new);
        fixture.assert_pages("acme", rows.clone()).await;
    }
    for (index, to) in [(140, -20), (3, 700)] {
        rows[index].created_at = day(to);
        fixture.load(Analyses, &rows[index..=index]).await;
        fixture.assert_pages("acme", rows.clone()).await;
    }
    for ids in [
        &["003", "n501.1"][..],
        &["140", "n-9.0"],
        &["064", "100", "101"],
    ] {
        assert_eq!(fixture.delete(ids).await, ids.len() as u64);
        rows.retain(|row| !ids.contains(&row.id.as_str()));
        fixture.assert_pages("acme", rows.clone()).await;
    }
    let all: Vec<_> = rows.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(fixture.delete(&all).await, rows.len() as u64);
    fixture.assert_pages("acme", vec![]).await;
    let anchors = "SELECT count(*) FROM water.analyses_anchors";
    assert_eq!(fixture.sql(anchors), "0");
    fixture.load(Analyses, &rows[..3]).await;
    fixture.assert_pages("acme", rows[..3].to_vec()).await;
}

#[tokio::test]
async fn a_page_far_into_a_long_history_reads_few_rows() {
    let mut fixture = Fixture::new().await;
    let rows: Vec<Row> = (0..20_000).map(|n| row("acme", n, day(n))).collect();
    fixture.load(Analyses, &rows).await;
    fixture.forget_statistics().await;
    assert_eq!(fixture.analyses("acme", 20, 19_000).await.rows[0].id, "999");
    // 63 rows skipped, 20 read, and one to see that the anchor's row is the first.
    let fetched = fixture.fetched_rows().await;
    assert!(fetched <= 84, "{fetched} rows fetched");
}
