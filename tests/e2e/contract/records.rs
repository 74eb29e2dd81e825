//! Records: fields, order, forms of numbers and times, one snapshot.

use anyhow::{Context, Result};
use serde_json::Value;
use water_e2e::{Cluster, ordered_fields};

use super::{get, history};

/// The text of the first object inside `data`.
fn first_row(body: &str) -> Result<&str> {
    let start = body.find("\"data\":[").context("no data")? + "\"data\":[".len();
    let end = body[start..].find('}').context("no row")? + start;
    Ok(&body[start..=end])
}

fn column<'a>(body: &'a Value, field: &str) -> Vec<&'a str> {
    let rows = body["data"].as_array().into_iter().flatten();
    rows.filter_map(|row| row[field].as_str()).collect()
}

#[tokio::test]
async fn stress_of_one_departement_is_the_list_and_the_record_at_once() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let answer = cluster
        .water
        .get("/api/v1/stress?dept=34", &cluster.key().await?)
        .await?;
    let body = answer.json()?;
    for field in ["dept", "name", "stressIndex", "level"] {
        assert!(!body[field].is_null(), "{body}");
        assert_eq!(body[field], body["data"][0][field], "{field}");
    }
    assert_eq!(body["count"], 1);
    Ok(())
}

#[tokio::test]
async fn lists_of_departements_have_their_fields_in_this_order() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let stress = ["dept", "name", "stressIndex", "level"].as_slice();
    let risk = [
        "dept",
        "name",
        "flood",
        "drought",
        "overall",
        "rating",
        "updatedAt",
    ]
    .as_slice();
    for (target, fields) in [("/api/v1/stress", stress), ("/api/v1/risque", risk)] {
        let answer = cluster.water.get(target, &cluster.key().await?).await?;
        assert_eq!(
            ordered_fields(answer.text()?)?,
            ["count", "updatedAt", "data"]
        );
        assert_eq!(ordered_fields(first_row(answer.text()?)?)?, fields);
    }
    Ok(())
}

#[tokio::test]
async fn histories_have_their_fields_in_this_order() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let scores = [
        ("/api/v1/hydrorisk?limit=1", ["globalScore", "rating"]),
        ("/api/v1/conformite?limit=1", ["score", "globalRating"]),
    ];
    for (target, [score, rating]) in scores {
        let answer = history(&cluster, target).await?;
        let fields = [
            "id",
            "companyName",
            "sectorCode",
            "deptCode",
            score,
            rating,
            "createdAt",
        ];
        assert_eq!(
            ordered_fields(answer.text()?)?,
            ["total", "limit", "offset", "data"]
        );
        assert_eq!(ordered_fields(first_row(answer.text()?)?)?, fields);
    }
    Ok(())
}

#[tokio::test]
async fn no_field_is_null_or_missing() -> Result<()> {
    let cluster = Cluster::shared().await?;
    for target in ["/api/v1/stress", "/api/v1/risque"] {
        assert!(!get(&cluster, target).await?.to_string().contains("null"));
    }
    for target in [
        "/api/v1/hydrorisk?limit=100",
        "/api/v1/conformite?limit=100",
    ] {
        assert!(!history(&cluster, target).await?.text()?.contains("null"));
    }
    Ok(())
}

#[tokio::test]
async fn levels_are_spelled_as_the_national_register_spells_them() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let levels = ["normal", "vigilance", "alerte", "alerte_renforcee", "crise"];
    let stress = get(&cluster, "/api/v1/stress").await?;
    assert!(
        column(&stress, "level")
            .iter()
            .all(|level| levels.contains(level)),
        "{stress}"
    );
    Ok(())
}

#[tokio::test]
async fn departements_come_in_the_order_of_their_codes() -> Result<()> {
    let cluster = Cluster::shared().await?;
    for target in ["/api/v1/stress", "/api/v1/risque"] {
        let body = get(&cluster, target).await?;
        let codes = column(&body, "dept");
        assert_eq!(codes.len(), 101);
        assert!(codes.is_sorted(), "{codes:?}");
        assert_eq!(codes[18..22], ["19", "21", "22", "23"]);
    }
    Ok(())
}

#[tokio::test]
async fn histories_come_newest_first_then_by_id() -> Result<()> {
    let cluster = Cluster::shared().await?;
    for target in [
        "/api/v1/hydrorisk?limit=100",
        "/api/v1/conformite?limit=100",
    ] {
        let body = history(&cluster, target).await?.json()?;
        let times = column(&body, "createdAt")
            .into_iter()
            .zip(column(&body, "id"));
        let order: Vec<_> = times.collect();
        assert_eq!(order.len(), 100);
        assert!(
            order.is_sorted_by(|newer, older| newer > older),
            "{order:?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn ratings_and_sectors_are_opaque_codes_of_a_known_form() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let ratings = [
        ("/api/v1/hydrorisk?limit=100", "rating"),
        ("/api/v1/conformite?limit=100", "globalRating"),
    ];
    for (target, field) in ratings {
        let page = history(&cluster, target).await?.json()?;
        for rating in column(&page, field) {
            assert!(
                rating.starts_with(|first: char| first.is_ascii_uppercase()),
                "{rating}"
            );
            let more = |letter: char| matches!(letter, 'A'..='Z' | '0'..='9' | '+' | '-');
            assert!(rating.len() <= 8 && rating.chars().all(more), "{rating}");
        }
        for sector in column(&page, "sectorCode") {
            let allowed = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
            assert!(
                (1..=16).contains(&sector.len()) && sector.chars().all(allowed),
                "{sector}"
            );
        }
    }
    Ok(())
}

#[tokio::test]
async fn numbers_have_no_needless_digits() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    for target in ["/api/v1/stress", "/api/v1/risque"] {
        let answer = cluster.water.get(target, &key).await?;
        let text = answer.text()?;
        assert!(!text.contains(".0,") && !text.contains(".0}"), "{text}");
    }
    Ok(())
}

#[tokio::test]
async fn names_are_utf_8_and_not_escaped() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let answer = cluster
        .water
        .get("/api/v1/stress?dept=974", &cluster.key().await?)
        .await?;
    assert!(
        answer.text()?.contains(r#""name":"La Réunion""#),
        "{answer:?}"
    );
    Ok(())
}

#[tokio::test]
async fn a_history_without_rows_is_an_empty_page() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let answer = cluster
        .water
        .get("/api/v1/hydrorisk", &cluster.key().await?)
        .await?;
    assert_eq!(
        answer.text()?,
        r#"{"total":0,"limit":20,"offset":0,"data":[]}"#
    );
    Ok(())
}
