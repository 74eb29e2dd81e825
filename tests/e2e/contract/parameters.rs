//! Parameters: what is accepted, normalised, clamped and refused.

use anyhow::Result;
use water_e2e::Cluster;

use super::{HISTORIES, assert_problem, get, history};

async fn assert_invalid(parameter: &str, targets: &[String]) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    for target in targets {
        let answer = cluster.water.get(target, &key).await?;
        assert_problem(&answer, 400, "invalid_parameter")?;
        assert_eq!(answer.json()?["parameter"], parameter, "{target}");
    }
    Ok(())
}

#[tokio::test]
async fn dept_is_normalised() -> Result<()> {
    let cluster = Cluster::shared().await?;
    for (given, code) in [("1", "01"), ("2a", "2A"), ("2b", "2B"), ("976", "976")] {
        let body = get(&cluster, &format!("/api/v1/stress?dept={given}")).await?;
        assert_eq!(body["dept"], code);
    }
    Ok(())
}

#[tokio::test]
async fn a_well_formed_dept_that_does_not_exist_is_not_found() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    for code in ["00", "20", "96", "975", "987"] {
        for path in ["stress", "risque"] {
            let answer = cluster
                .water
                .get(&format!("/api/v1/{path}?dept={code}"), &key)
                .await?;
            assert_problem(&answer, 404, "not_found")?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_former_corsica_and_overseas_collectivities_get_a_hint() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    let corsica = cluster
        .water
        .get("/api/v1/stress?dept=20", &key)
        .await?
        .json()?;
    assert!(
        corsica["detail"]
            .as_str()
            .is_some_and(|text| text.contains("2A")),
        "{corsica}"
    );
    let overseas = cluster
        .water
        .get("/api/v1/stress?dept=987", &key)
        .await?
        .json()?;
    assert!(
        overseas["detail"]
            .as_str()
            .is_some_and(|text| text.contains("collectivit")),
        "{overseas}"
    );
    Ok(())
}

#[tokio::test]
async fn a_malformed_empty_or_repeated_dept_is_invalid() -> Result<()> {
    let wrong = ["abc", "", "034", "2C", "34&dept=34", "+5", "3.4"];
    assert_invalid(
        "dept",
        &wrong.map(|dept| format!("/api/v1/stress?dept={dept}")),
    )
    .await
}

#[tokio::test]
async fn a_limit_that_is_no_whole_number_from_1_is_invalid() -> Result<()> {
    let wrong = [
        "0",
        "-1",
        "%2B5",
        "+5",
        "5.0",
        "1e2",
        "",
        "ten",
        "5&limit=5",
    ];
    assert_invalid(
        "limit",
        &wrong.map(|limit| format!("/api/v1/hydrorisk?limit={limit}")),
    )
    .await
}

#[tokio::test]
async fn an_offset_that_is_no_whole_number_up_to_2_to_the_53_is_invalid() -> Result<()> {
    let wrong = [
        "-1",
        "%2B5",
        "1.5",
        "",
        "x",
        "9007199254740992",
        "0&offset=0",
    ];
    assert_invalid(
        "offset",
        &wrong.map(|offset| format!("/api/v1/conformite?offset={offset}")),
    )
    .await
}

#[tokio::test]
async fn a_limit_above_100_is_clamped_and_shown() -> Result<()> {
    let cluster = Cluster::shared().await?;
    for limit in ["101", "000101", "999999999999999999999999999999"] {
        let page = get(&cluster, &format!("/api/v1/hydrorisk?limit={limit}")).await?;
        assert_eq!(page["limit"], 100);
    }
    assert_eq!(
        get(&cluster, "/api/v1/hydrorisk?limit=05").await?["limit"],
        5
    );
    Ok(())
}

#[tokio::test]
async fn an_offset_beyond_the_total_is_an_empty_page_with_the_true_total() -> Result<()> {
    let cluster = Cluster::shared().await?;
    for target in HISTORIES {
        let first = history(&cluster, &format!("{target}?limit=1"))
            .await?
            .json()?;
        let beyond = history(&cluster, &format!("{target}?offset=9007199254740991"))
            .await?
            .json()?;
        assert_eq!(beyond["data"], serde_json::json!([]));
        assert_eq!(beyond["total"], first["total"]);
    }
    Ok(())
}

#[tokio::test]
async fn other_parameters_are_ignored() -> Result<()> {
    let cluster = Cluster::shared().await?;
    assert_eq!(
        get(&cluster, "/api/v1/stress?dept=34&unknown=1&unknown=2").await?["dept"],
        "34"
    );
    Ok(())
}

#[tokio::test]
async fn a_query_that_cannot_be_decoded_is_invalid() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    for query in ["dept=%zz", "x=%ff", "x=%c0%80", "dept=34&%"] {
        let answer = cluster
            .water
            .get(&format!("/api/v1/stress?{query}"), &key)
            .await?;
        assert_problem(&answer, 400, "invalid_query")?;
    }
    Ok(())
}

#[tokio::test]
async fn history_pages_are_linked() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let answer = history(&cluster, "/api/v1/hydrorisk?limit=10&offset=20").await?;
    let total = answer.json()?["total"].as_u64().unwrap_or_default();
    let last = (total - 1) / 10 * 10;
    let link =
        |offset, name| format!("</api/v1/hydrorisk?limit=10&offset={offset}>; rel=\"{name}\"");
    let expected = [
        link(0, "first"),
        link(10, "prev"),
        link(30, "next"),
        link(last, "last"),
        "</api/v1/sources>; rel=\"describedby\"".to_owned(),
    ];
    assert_eq!(answer.header("link"), Some(expected.join(", ").as_str()));
    Ok(())
}
