//! §4: the four endpoints.

use anyhow::Result;
use water_e2e::{Cluster, ordered_fields};

use super::{ENDPOINTS, get, get_history, is_timestamp, rows};

#[tokio::test]
async fn s4_all_endpoints_use_get_need_the_authorization_header_and_return_json() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    for target in ENDPOINTS {
        let answer = cluster.water.get(target, &key).await?;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some("application/json"))
        );
        assert_eq!(cluster.water.get_without_key(target).await?.status, 401);
    }
    Ok(())
}

#[tokio::test]
async fn s4_1_stress_returns_the_index_and_level_of_all_departements() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let stress = get(&cluster, "/api/v1/stress").await?;
    assert_eq!(stress["count"], 101);
    assert_eq!(rows(&stress)?.len(), 101);
    assert!(
        is_timestamp(&stress["updatedAt"]),
        "{}",
        stress["updatedAt"]
    );
    Ok(())
}

#[tokio::test]
async fn s4_1_dept_chooses_one_departement() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let stress = get(&cluster, "/api/v1/stress?dept=2A").await?;
    assert_eq!(
        (&stress["count"], &stress["data"][0]["dept"]),
        (&1.into(), &"2A".into())
    );
    assert_eq!(rows(&stress)?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn s4_2_risque_returns_scores_and_rating_per_departement() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let risk = get(&cluster, "/api/v1/risque").await?;
    assert_eq!(rows(&risk)?.len(), 101);
    Ok(())
}

#[tokio::test]
async fn s4_2_dept_answers_a_single_risk_record() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let answer = cluster
        .water
        .get("/api/v1/risque?dept=974", &cluster.key().await?)
        .await?;
    let fields = [
        "dept",
        "name",
        "flood",
        "drought",
        "overall",
        "rating",
        "updatedAt",
    ];
    assert_eq!(ordered_fields(answer.text()?)?, fields);
    Ok(())
}

async fn assert_history_page(target: &str) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let page = get_history(&cluster, &format!("{target}?limit=2&offset=3")).await?;
    let from_the_start = get_history(&cluster, &format!("{target}?limit=5")).await?;
    assert_eq!((&page["limit"], &page["offset"]), (&2.into(), &3.into()));
    assert_eq!(page["total"], from_the_start["total"]);
    assert_eq!(rows(&page)?[..], rows(&from_the_start)?[3..]);
    Ok(())
}

#[tokio::test]
async fn s4_3_hydrorisk_pages_through_the_accounts_risk_analyses() -> Result<()> {
    assert_history_page("/api/v1/hydrorisk").await
}

#[tokio::test]
async fn s4_4_conformite_pages_through_the_accounts_compliance_audits() -> Result<()> {
    assert_history_page("/api/v1/conformite").await
}
