//! Sentences of the specification, each a test that is named by its section.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use water_e2e::{ApiKey, Cluster, ordered_fields};

use crate::requests::{ENDPOINTS, HISTORIES, assert_problem, get, get_history, json_of};

fn rows(envelope: &Value) -> Result<&Vec<Value>> {
    envelope["data"].as_array().context("data is a list")
}

fn is_timestamp(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    // `2026-07-02T00:00:00.000Z`
    let parsed = chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.3fZ");
    text.len() == 24 && parsed.is_ok()
}

/// Checks that a record has these fields in this order, and the form of each value by its name.
fn assert_record(record: &str, fields: [&str; 7]) -> Result<()> {
    let fields: Vec<_> = fields.into_iter().filter(|name| !name.is_empty()).collect();
    assert_eq!(ordered_fields(record)?, fields, "{record}");
    let record: Value = serde_json::from_str(record)?;
    for name in fields {
        let value = &record[name];
        let within = |most: f64| value.as_f64().is_some_and(|is| (0.0..=most).contains(&is));
        let good = match name {
            "stressIndex" => within(5.0),
            "flood" | "drought" | "overall" => within(100.0),
            "score" | "globalScore" => value.is_number(),
            "updatedAt" | "createdAt" | "levelAsOf" => is_timestamp(value),
            _ => value.as_str().is_some_and(|text| !text.is_empty()),
        };
        assert!(good, "{name} of {record}");
    }
    Ok(())
}

/// Checks all records of a list, which has these fields itself.
async fn assert_records(target: &str, envelope: &[&str], fields: [&str; 7]) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = &cluster.environment.api_key;
    let answer = cluster.water.get(target, key).await?;
    assert_eq!(ordered_fields(answer.text()?)?, envelope, "{target}");
    let (_, data) = answer.text()?.split_once("\"data\":[").context("no data")?;
    let (data, _) = data.rsplit_once(']').context("no end")?;
    // No value holds a brace.
    let records: Vec<_> = data.split_inclusive('}').collect();
    assert_eq!(records.len(), rows(&answer.json()?)?.len());
    let mut records = records.iter().map(|record| record.trim_start_matches(','));
    records.try_for_each(|record| assert_record(record, fields))
}

#[tokio::test]
async fn s1_s4_every_endpoint_answers_json_to_a_key_of_the_enterprise_plan_only() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let (key, free) = (cluster.key().await?, &cluster.environment.free_api_key);
    for target in ENDPOINTS {
        let answer = cluster.water.get(target, &key).await?;
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert!(json_of(&answer)?.is_object());
        let nobody = cluster.water.get_without_key(target).await?;
        assert_problem(&nobody, 401, "missing_credentials", "")?;
        let free = cluster.water.get(target, free).await?;
        assert_problem(&free, 403, "plan_insufficient", "")?;
        let title = &free.json()?["title"];
        assert!(
            title
                .as_str()
                .is_some_and(|title| title.contains("Enterprise"))
        );
    }
    Ok(())
}

#[tokio::test]
async fn s1_two_operations_return_data_per_departement() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let stress = get(&cluster, "/api/v1/stress?dept=34").await?;
    let risk = get(&cluster, "/api/v1/risque?dept=34").await?;
    assert_eq!(
        (&stress["data"][0]["name"], &risk["name"]),
        (&json!("Hérault"), &json!("Hérault"))
    );
    assert!(stress["data"][0]["level"].is_string() && risk["flood"].is_number());
    Ok(())
}

#[tokio::test]
async fn s1_two_operations_return_the_calling_accounts_own_history() -> Result<()> {
    let cluster = Cluster::shared().await?;
    for target in HISTORIES {
        let own = get_history(&cluster, target).await?;
        assert!(own["total"].as_u64() > Some(1000), "{target}");
        assert_eq!(
            get(&cluster, target).await?["total"],
            0,
            "another account at {target}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn s2_1_s4_1_stress_returns_index_and_level_of_all_departements() -> Result<()> {
    // The origin of the level and its date are ours, after the fields of the specification.
    let fields = [
        "dept",
        "name",
        "stressIndex",
        "level",
        "levelSource",
        "levelAsOf",
        "",
    ];
    assert_records("/api/v1/stress", &["count", "updatedAt", "data"], fields).await?;
    let cluster = Cluster::shared().await?;
    let stress = get(&cluster, "/api/v1/stress").await?;
    assert_eq!((&stress["count"], rows(&stress)?.len()), (&json!(101), 101));
    assert!(is_timestamp(&stress["updatedAt"]), "{stress}");
    let mut levels = rows(&stress)?.iter().map(|record| &record["level"]);
    assert!(levels.any(|level| level == "crise"), "{stress}");
    Ok(())
}

#[tokio::test]
async fn s2_2_s4_2_risque_returns_scores_and_rating_of_all_departements() -> Result<()> {
    let fields = [
        "dept",
        "name",
        "flood",
        "drought",
        "overall",
        "rating",
        "updatedAt",
    ];
    assert_records("/api/v1/risque", &["count", "updatedAt", "data"], fields).await?;
    let cluster = Cluster::shared().await?;
    let risk = get(&cluster, "/api/v1/risque").await?;
    assert_eq!(rows(&risk)?.len(), 101);
    let ratings = rows(&risk)?.iter().map(|record| &record["rating"]);
    let mut ratings = ratings.map(|rating| rating.as_str().unwrap_or_default());
    assert!(
        ratings.all(|rating| ["A", "B", "C", "D", "E"].contains(&rating)),
        "{risk}"
    );
    Ok(())
}

/// Checks a history whose records have these names of score and rating.
async fn assert_history(path: &str, score: &str, rating: &str) -> Result<()> {
    let fields = [
        "id",
        "companyName",
        "sectorCode",
        "deptCode",
        score,
        rating,
        "createdAt",
    ];
    assert_records(path, &["total", "limit", "offset", "data"], fields).await
}

#[tokio::test]
async fn s2_3_a_risk_analysis_has_these_fields() -> Result<()> {
    assert_history("/api/v1/hydrorisk?limit=100", "globalScore", "rating").await
}

#[tokio::test]
async fn s2_4_a_compliance_audit_has_these_fields() -> Result<()> {
    assert_history("/api/v1/conformite?limit=100", "score", "globalRating").await
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
        assert_problem(&answer, 405, "method_not_allowed", "")?;
        assert_eq!(answer.header("allow"), Some("GET, HEAD"), "{method}");
    }
    Ok(())
}

#[tokio::test]
async fn s4_1_s4_2_dept_chooses_one_departement() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let stress = get(&cluster, "/api/v1/stress?dept=2A").await?;
    assert_eq!((&stress["count"], rows(&stress)?.len()), (&json!(1), 1));
    // Both readings of the specification: in the list, and at top level.
    for field in ["dept", "name", "stressIndex", "level"] {
        assert!(!stress[field].is_null(), "{stress}");
        assert_eq!(stress[field], stress["data"][0][field], "{field}");
    }
    let risk = cluster
        .water
        .get("/api/v1/risque?dept=974", &cluster.key().await?)
        .await?;
    assert_eq!(risk.json()?["dept"], "974");
    let fields = [
        "dept",
        "name",
        "flood",
        "drought",
        "overall",
        "rating",
        "updatedAt",
    ];
    assert_record(risk.text()?, fields)
}

#[tokio::test]
async fn s4_3_s4_4_histories_are_paged_by_limit_and_offset() -> Result<()> {
    let cluster = Cluster::shared().await?;
    for target in HISTORIES {
        let page = get_history(&cluster, &format!("{target}?limit=2&offset=3")).await?;
        let from_the_start = get_history(&cluster, &format!("{target}?limit=5")).await?;
        assert_eq!((&page["limit"], &page["offset"]), (&json!(2), &json!(3)));
        assert_eq!(page["total"], from_the_start["total"]);
        assert_eq!(rows(&page)?[..], rows(&from_the_start)?[3..]);
    }
    Ok(())
}

/// Platform teams' way. The account holder's own, the settings, is clicked through in a browser by the tests of §5.5 in
/// `services/portal/web/tests/keys.spec.ts`. What §5.1 to §5.4 say of credentials is tested by [`crate::contract`] too.
#[tokio::test]
async fn s5_keys_are_generated_listed_and_revoked() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = ApiKey::named("settings")
        .of_account("settings-account")
        .on_plan("Enterprise");
    let key = cluster.issue(&key).await?;
    assert_eq!(cluster.water.get("/api/v1/stress", &key).await?.status, 200);
    let listed = cluster.kubectl.run(&["get", "apikeys"])?;
    let mut lines = listed.lines();
    let is_listed = |line: &str| line.starts_with("settings ") && line.contains("settings-account");
    assert!(lines.any(is_listed), "{listed}");
    cluster.delete("settings")?;
    let revoked = cluster.water.get("/api/v1/stress", &key).await?;
    assert_problem(&revoked, 401, "invalid_key", "")?;
    let free = cluster
        .issue(&ApiKey::named("insufficient").on_plan("Free"))
        .await?;
    let insufficient = cluster.water.get("/api/v1/stress", &free).await?;
    assert_problem(&insufficient, 403, "plan_insufficient", "")
}

#[tokio::test]
async fn s7_s9_a_resource_that_does_not_exist_gives_404_and_the_path_carries_the_version()
-> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    for target in [
        "/api/v1/unknown",
        "/stress",
        "/api/stress",
        "/api/v2/stress",
    ] {
        let answer = cluster.water.get(target, &key).await?;
        assert_problem(&answer, 404, "not_found", "")?;
    }
    Ok(())
}

/// 500 says that there is a bug, so no request can be made that gives it: the published contract names it.
#[tokio::test]
async fn s7_s9_the_published_contract_has_the_version_and_all_five_errors_for_each_endpoint()
-> Result<()> {
    let cluster = Cluster::shared().await?;
    let contract = json_of(
        &cluster
            .water
            .get_without_key("/api/v1/openapi.json")
            .await?,
    )?;
    for target in ENDPOINTS {
        let answers = &contract["paths"][target]["get"]["responses"];
        for status in ["401", "403", "404", "429", "500"] {
            // The list of sources is there whatever was loaded.
            let is_named =
                answers[status].is_object() || (target, status) == ("/api/v1/sources", "404");
            assert!(is_named, "{target} {status}: {answers}");
        }
    }
    let version = contract["info"]["version"].as_str().context("a version")?;
    assert!(version.starts_with("1.0"), "{version}");
    Ok(())
}

#[tokio::test]
async fn s8_enterprise_allows_120_requests_a_minute_and_50000_a_day() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let answer = cluster
        .water
        .get("/api/v1/stress", &cluster.key().await?)
        .await?;
    let policy = r#""minute";q=120;w=60, "day";q=50000;w=86400"#;
    assert_eq!(answer.header("ratelimit-policy"), Some(policy));
    Ok(())
}

#[tokio::test]
async fn s8_a_page_has_20_items_by_default_and_100_at_most_and_starts_at_0() -> Result<()> {
    let cluster = Cluster::shared().await?;
    for target in HISTORIES {
        let page = get_history(&cluster, target).await?;
        assert_eq!((&page["limit"], &page["offset"]), (&json!(20), &json!(0)));
        assert_eq!(rows(&page)?.len(), 20);
        let page = get_history(&cluster, &format!("{target}?limit=101")).await?;
        assert_eq!((&page["limit"], rows(&page)?.len()), (&json!(100), 100));
    }
    Ok(())
}
