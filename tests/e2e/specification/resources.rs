//! §1 to §3: what the service does, and its resources with their fields.

use anyhow::{Context, Result};
use water_e2e::Cluster;

use super::{
    ENDPOINTS, HISTORIES, assert_refused, get, get_history, is_between, is_timestamp, json_of, rows,
};

#[tokio::test]
async fn s1_the_service_exposes_water_data_over_http_and_json() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let answer = cluster
        .water
        .get("/api/v1/stress", &cluster.key().await?)
        .await?;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert!(json_of(&answer)?.is_object());
    Ok(())
}

#[tokio::test]
async fn s1_two_operations_return_data_per_french_departement() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let stress = get(&cluster, "/api/v1/stress?dept=34").await?;
    let risk = get(&cluster, "/api/v1/risque?dept=34").await?;
    assert_eq!(
        (&stress["data"][0]["name"], &risk["name"]),
        (&"Hérault".into(), &"Hérault".into())
    );
    assert!(stress["data"][0]["level"].is_string() && risk["flood"].is_number());
    Ok(())
}

#[tokio::test]
async fn s1_two_operations_return_the_calling_accounts_own_history() -> Result<()> {
    let cluster = Cluster::shared().await?;
    for target in HISTORIES {
        assert!(
            get_history(&cluster, target).await?["total"].as_u64() > Some(1000),
            "{target}"
        );
        assert_eq!(
            get(&cluster, target).await?["total"],
            0,
            "another account at {target}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn s1_access_needs_an_api_key() -> Result<()> {
    let cluster = Cluster::shared().await?;
    for target in ENDPOINTS {
        assert_refused(&cluster, cluster.water.get_without_key(target).await?, 401)?;
    }
    Ok(())
}

#[tokio::test]
async fn s1_keys_are_available_to_accounts_on_the_enterprise_plan_only() -> Result<()> {
    let cluster = Cluster::shared().await?;
    for target in ENDPOINTS {
        let answer = cluster
            .water
            .get(target, &cluster.environment.free_api_key)
            .await?;
        assert!(
            answer.json()?["title"]
                .as_str()
                .context("a title")?
                .contains("Enterprise")
        );
        assert_refused(&cluster, answer, 403)?;
    }
    Ok(())
}

#[tokio::test]
async fn s2_1_a_stress_record_has_these_fields() -> Result<()> {
    let cluster = Cluster::shared().await?;
    for record in rows(&get(&cluster, "/api/v1/stress").await?)? {
        assert_eq!(
            record.as_object().context("an object")?.len(),
            4,
            "{record}"
        );
        assert!(
            record["dept"].is_string() && record["name"].is_string(),
            "{record}"
        );
        assert!(is_between(&record["stressIndex"], 0.0, 5.0), "{record}");
        assert!(record["level"].is_string(), "{record}");
    }
    Ok(())
}

#[tokio::test]
async fn s2_1_crise_is_a_level() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let stress = get(&cluster, "/api/v1/stress").await?;
    assert!(
        rows(&stress)?
            .iter()
            .any(|record| record["level"] == "crise"),
        "{stress}"
    );
    Ok(())
}

#[tokio::test]
async fn s2_2_a_risk_record_has_these_fields() -> Result<()> {
    let cluster = Cluster::shared().await?;
    for record in rows(&get(&cluster, "/api/v1/risque").await?)? {
        assert_eq!(
            record.as_object().context("an object")?.len(),
            7,
            "{record}"
        );
        assert!(
            record["dept"].is_string() && record["name"].is_string(),
            "{record}"
        );
        for score in ["flood", "drought", "overall"] {
            assert!(
                is_between(&record[score], 0.0, 100.0),
                "{score} of {record}"
            );
        }
        assert!(
            matches!(record["rating"].as_str(), Some("A" | "B" | "C" | "D" | "E")),
            "{record}"
        );
        assert!(is_timestamp(&record["updatedAt"]), "{record}");
    }
    Ok(())
}

async fn assert_history_item(target: &str, score: &str, rating: &str) -> Result<()> {
    let cluster = Cluster::shared().await?;
    for item in rows(&get_history(&cluster, &format!("{target}?limit=100")).await?)? {
        let fields = ["id", "companyName", "sectorCode", "deptCode", rating];
        assert!(
            fields.iter().all(|field| item[*field].is_string()),
            "{item}"
        );
        assert!(
            item[score].is_number() && is_timestamp(&item["createdAt"]),
            "{item}"
        );
        assert_eq!(item.as_object().context("an object")?.len(), 7, "{item}");
    }
    Ok(())
}

#[tokio::test]
async fn s2_3_a_risk_analysis_has_these_fields() -> Result<()> {
    assert_history_item("/api/v1/hydrorisk", "globalScore", "rating").await
}

#[tokio::test]
async fn s2_4_a_compliance_audit_has_these_fields() -> Result<()> {
    assert_history_item("/api/v1/conformite", "score", "globalRating").await
}

#[tokio::test]
async fn s3_the_resources_are_read_only() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let answer = cluster
            .water
            .request(method, "/api/v1/stress", &key, &[])
            .await?;
        assert_eq!(
            (answer.status, answer.header("allow")),
            (405, Some("GET, HEAD")),
            "{method}"
        );
    }
    Ok(())
}
