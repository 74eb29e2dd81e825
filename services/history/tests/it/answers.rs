//! What `/hydrorisk` and `/conformite` answer: shapes, field order, numbers, times, parameters.

use serde_json::{Value, json};
use water_database::writer::History;
use water_harness::Answer;

use crate::fixture::{Row, empty, load, problem, row, rows};

#[tokio::test]
async fn an_analysis_has_its_fields_in_order() {
    let (service, mut writer) = empty().await;
    load(&mut writer, History::Analyses, &[row("a-1", 5)]).await;
    assert_eq!(
        service.get("/api/v1/hydrorisk").await.text().unwrap(),
        concat!(
            r#"{"total":1,"limit":20,"offset":0,"data":[{"id":"a-1","companyName":"Eaux de l'Hérault","#,
            r#""sectorCode":"36.00Z","deptCode":"34","globalScore":61.5,"rating":"B+","#,
            r#""createdAt":"2026-01-01T00:00:00.005Z"}]}"#
        )
    );
}

#[tokio::test]
async fn an_audit_has_its_fields_in_order() {
    let (service, mut writer) = empty().await;
    load(
        &mut writer,
        History::Audits,
        &[Row {
            score: 3.0,
            ..row("c-1", 1000)
        }],
    )
    .await;
    assert_eq!(
        service.get("/api/v1/conformite").await.text().unwrap(),
        concat!(
            r#"{"total":1,"limit":20,"offset":0,"data":[{"id":"c-1","companyName":"Eaux de l'Hérault","#,
            r#""sectorCode":"36.00Z","deptCode":"34","score":3,"globalRating":"B+","#,
            r#""createdAt":"2026-01-01T00:00:01.000Z"}]}"#
        )
    );
}

#[tokio::test]
async fn text_is_utf8_and_escaped_only_where_json_demands_it() {
    let (service, mut writer) = empty().await;
    let company = "L'Œuvre \"d'eau\" \\ 水\n</script> 🚰";
    load(
        &mut writer,
        History::Analyses,
        &[Row {
            company,
            ..row("a", 0)
        }],
    )
    .await;
    let answer = service.get("/api/v1/hydrorisk").await;
    assert_eq!(answer.json().unwrap()["data"][0]["companyName"], company);
    let written = r#""companyName":"L'Œuvre \"d'eau\" \\ 水\n</script> 🚰","#;
    assert!(answer.text().unwrap().contains(written), "{answer:?}");
}

#[tokio::test]
async fn an_account_sees_its_own_rows_only() {
    let (service, mut writer) = empty().await;
    let other = Row {
        account: "other",
        ..row("theirs", 0)
    };
    load(&mut writer, History::Analyses, &[row("ours", 0), other]).await;
    let id = |answer: Answer| answer.json().unwrap()["data"][0]["id"].clone();
    assert_eq!(id(service.get("/api/v1/hydrorisk").await), "ours");
    assert_eq!(
        id(service.get_as("other", "/api/v1/hydrorisk").await),
        "theirs"
    );
    assert_eq!(
        service
            .get_as("ACME", "/api/v1/hydrorisk")
            .await
            .json()
            .unwrap()["total"],
        0
    );
}

#[tokio::test]
async fn an_account_in_the_query_changes_nothing() {
    let (service, mut writer) = empty().await;
    load(
        &mut writer,
        History::Analyses,
        &[Row {
            account: "other",
            ..row("theirs", 0)
        }],
    )
    .await;
    for query in ["account=other", "accountId=other", "account_id=other"] {
        let answer = service.get(&format!("/api/v1/hydrorisk?{query}")).await;
        assert_eq!(answer.json().unwrap()["total"], 0, "{query}");
    }
}

#[tokio::test]
async fn the_two_histories_are_apart() {
    let (service, mut writer) = empty().await;
    load(&mut writer, History::Analyses, &rows(3)).await;
    assert_eq!(
        service.get("/api/v1/hydrorisk").await.json().unwrap()["total"],
        3
    );
    assert_eq!(
        service.get("/api/v1/conformite").await.json().unwrap()["total"],
        0
    );
}

#[tokio::test]
async fn a_history_without_rows_is_an_empty_page() {
    let (service, _) = empty().await;
    for path in ["/api/v1/hydrorisk", "/api/v1/conformite"] {
        let answer = service.get(path).await;
        assert_eq!(
            answer.text().unwrap(),
            r#"{"total":0,"limit":20,"offset":0,"data":[]}"#
        );
        let sources = "</api/v1/sources>; rel=\"describedby\"";
        assert_eq!((answer.status, answer.header("link")), (200, Some(sources)));
    }
}

#[tokio::test]
async fn malformed_pages_are_refused_by_parameter_and_without_their_value() {
    let (service, _) = empty().await;
    let bad = [
        "0", "-1", "+5", "%2B5", "%205", "5.0", "1e2", "%D9%A3", "", "zzz9", "0x10",
    ];
    for (parameter, values) in [("limit", &bad[..]), ("offset", &bad[1..])] {
        for value in values {
            let answer = service
                .get(&format!("/api/v1/hydrorisk?{parameter}={value}"))
                .await;
            assert_eq!(
                problem(&answer),
                (400, json!("invalid_parameter"), json!(parameter)),
                "{value}"
            );
            assert!(!answer.text().unwrap().contains("zzz9"));
        }
        let twice = service
            .get(&format!("/api/v1/conformite?{parameter}=5&{parameter}=5"))
            .await;
        assert_eq!(
            problem(&twice),
            (400, json!("invalid_parameter"), json!(parameter))
        );
    }
}

#[tokio::test]
async fn the_page_applied_is_shown() {
    let (service, mut writer) = empty().await;
    load(&mut writer, History::Analyses, &rows(130)).await;
    let shown = [
        ("", 20, 0, 20),
        ("limit=05", 5, 0, 5),
        ("limit=100&offset=10", 100, 10, 100),
        ("limit=101", 100, 0, 100),
        ("limit=999999999999999999999999999999", 100, 0, 100),
        ("offset=0125", 20, 125, 5),
        ("other=1&Limit=3", 20, 0, 20),
    ];
    for (query, limit, offset, length) in shown {
        let body = service
            .get(&format!("/api/v1/hydrorisk?{query}"))
            .await
            .json()
            .unwrap();
        let page = (
            &body["total"],
            &body["limit"],
            &body["offset"],
            body["data"].as_array().unwrap().len(),
        );
        assert_eq!(
            page,
            (&json!(130), &json!(limit), &json!(offset), length),
            "{query}"
        );
    }
}

#[tokio::test]
async fn an_offset_beyond_the_total_is_an_empty_page_up_to_its_bound() {
    let (service, mut writer) = empty().await;
    load(&mut writer, History::Analyses, &rows(3)).await;
    for offset in ["3", "1000", "9007199254740991"] {
        let body = service
            .get(&format!("/api/v1/hydrorisk?offset={offset}"))
            .await;
        let expected = format!(r#"{{"total":3,"limit":20,"offset":{offset},"data":[]}}"#);
        assert_eq!(body.text().unwrap(), expected);
    }
    for offset in ["9007199254740992", "99999999999999999999"] {
        let answer = service
            .get(&format!("/api/v1/hydrorisk?offset={offset}"))
            .await;
        assert_eq!(
            problem(&answer),
            (400, json!("invalid_parameter"), json!("offset"))
        );
    }
}

#[tokio::test]
async fn a_query_that_cannot_be_decoded_is_refused() {
    let (service, _) = empty().await;
    for bad in ["x=%", "limit=%zz", "%ff=1", "offset=%00"] {
        let answer = service.get(&format!("/api/v1/hydrorisk?{bad}")).await;
        assert_eq!(
            problem(&answer),
            (400, json!("invalid_query"), Value::Null),
            "{bad}"
        );
    }
}
