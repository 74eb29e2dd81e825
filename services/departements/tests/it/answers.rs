//! What `/stress` and `/risque` answer: shapes, field order, numbers, times, parameters.

use serde_json::{Value, json};
use water_harness::{Answer, Postgres};

use crate::fixture::{day, load, migrated, problem, ready, risk, stress, with_data, writer};

fn codes(answer: &Answer) -> Vec<String> {
    let body = answer.json().unwrap();
    let records = body["data"].as_array().unwrap();
    records
        .iter()
        .map(|record| record["dept"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn both_lists_are_in_ascii_order_of_the_code() {
    let (service, _) = with_data().await;
    for path in ["/api/v1/stress", "/api/v1/risque"] {
        let list = service.get(path).await;
        assert_eq!(
            codes(&list),
            ["01", "29", "2A", "2B", "30", "34", "971"],
            "{path}"
        );
        assert_eq!(list.json().unwrap()["count"], 7);
    }
}

#[tokio::test]
async fn one_stress_record_is_in_the_envelope_and_beside_it() {
    let (service, _) = with_data().await;
    assert_eq!(
        service.get("/api/v1/stress?dept=34").await.text().unwrap(),
        concat!(
            r#"{"count":1,"updatedAt":"2026-01-02T00:00:00.000Z","data":["#,
            r#"{"dept":"34","name":"Hérault","stressIndex":3,"level":"alerte_renforcee"}],"#,
            r#""dept":"34","name":"Hérault","stressIndex":3,"level":"alerte_renforcee"}"#
        )
    );
}

#[tokio::test]
async fn one_risk_record_stands_alone() {
    let (service, _) = with_data().await;
    assert_eq!(
        service.get("/api/v1/risque?dept=2a").await.text().unwrap(),
        concat!(
            r#"{"dept":"2A","name":"Corse-du-Sud","flood":12.25,"drought":100,"overall":62.5,"#,
            r#""rating":"D","updatedAt":"2026-01-01T00:00:00.000Z"}"#
        )
    );
}

#[tokio::test]
async fn a_list_has_its_envelope_first_and_its_records_as_they_stand_alone() {
    let (service, _) = with_data().await;
    let list = service.get("/api/v1/risque").await;
    let one = service.get("/api/v1/risque?dept=01").await;
    let start = format!(
        r#"{{"count":7,"updatedAt":"2026-01-01T00:00:00.000Z","data":[{},"#,
        one.text().unwrap()
    );
    assert!(list.text().unwrap().starts_with(&start), "{list:?}");
    assert_eq!(list.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn short_and_lower_case_codes_are_read() {
    let (service, _) = with_data().await;
    for (asked, code) in [
        ("1", "01"),
        ("01", "01"),
        ("2b", "2B"),
        ("%32A", "2A"),
        ("971", "971"),
    ] {
        let answer = service.get(&format!("/api/v1/stress?dept={asked}")).await;
        assert_eq!(answer.json().unwrap()["dept"], code);
    }
}

#[tokio::test]
async fn malformed_empty_and_repeated_codes_are_refused_without_their_value() {
    let (service, _) = with_data().await;
    for query in [
        "dept=zzz9",
        "dept=",
        "dept",
        "dept=34&dept=34",
        "dept=2C",
        "dept=%2B34",
        "dept=001",
        "dept= 34",
    ] {
        for path in ["/api/v1/stress", "/api/v1/risque"] {
            let answer = service
                .get(&format!("{path}?{}", query.replace(' ', "%20")))
                .await;
            assert_eq!(
                problem(&answer),
                (400, json!("invalid_parameter"), json!("dept")),
                "{query}"
            );
            assert!(!answer.text().unwrap().contains("zzz9"));
        }
    }
}

#[tokio::test]
async fn a_code_without_departement_is_not_found_with_a_hint_where_there_is_one() {
    let (service, _) = with_data().await;
    for (code, hint) in [
        ("20", "2A"),
        ("975", "Saint-Pierre-et-Miquelon"),
        ("987", "Polynésie"),
        ("00", ""),
        ("96", ""),
    ] {
        let answer = service.get(&format!("/api/v1/risque?dept={code}")).await;
        assert_eq!(
            problem(&answer),
            (404, json!("not_found"), Value::Null),
            "{code}"
        );
        assert!(answer.text().unwrap().contains(hint), "{answer:?}");
    }
}

#[tokio::test]
async fn a_departement_without_a_record_is_not_found() {
    let (service, _) = with_data().await;
    let answer = service.get("/api/v1/stress?dept=75").await;
    assert_eq!(problem(&answer), (404, json!("not_found"), Value::Null));
}

#[tokio::test]
async fn unknown_parameters_are_ignored_unless_they_cannot_be_decoded() {
    let (service, _) = with_data().await;
    let ignored = service
        .get("/api/v1/stress?other=1&other=2&DEPT=x&limit=0")
        .await;
    assert_eq!(ignored.body, service.get("/api/v1/stress").await.body);
    for bad in ["other=%", "other=%zz", "other=%ff", "%c0%af=1"] {
        let answer = service.get(&format!("/api/v1/stress?{bad}")).await;
        assert_eq!(
            problem(&answer),
            (400, json!("invalid_query"), Value::Null),
            "{bad}"
        );
    }
}

#[tokio::test]
async fn an_empty_database_is_ready_and_answers_no_data_for_each_dataset() {
    let database = migrated(Postgres::shared().await.unwrap()).await;
    let service = ready(&database.url_as("water_reader")).await;
    for target in ["/api/v1/stress", "/api/v1/risque?dept=34"] {
        assert_eq!(
            problem(&service.get(target).await),
            (404, json!("no_data"), Value::Null)
        );
    }
    assert_eq!(problem(&service.get("/api/v1/stress?dept=xx").await).0, 400);
    assert_eq!(
        service.admin("/data").await.json().unwrap(),
        json!({"stress": 0, "risk": 0})
    );
}

#[tokio::test]
async fn one_dataset_is_served_without_the_other() {
    let database = migrated(Postgres::shared().await.unwrap()).await;
    let mut writer = writer(&database).await;
    writer
        .replace_risk(&[risk("34", 1.0)], day(1), &load())
        .await
        .unwrap();
    let service = ready(&database.url_as("water_reader")).await;
    assert_eq!(service.get("/api/v1/risque").await.status, 200);
    assert_eq!(problem(&service.get("/api/v1/stress").await).1, "no_data");
    assert_eq!(
        service.admin("/data").await.json().unwrap(),
        json!({"stress": 0, "risk": 1})
    );
}

#[tokio::test]
async fn indices_print_as_briefly_as_they_can() {
    let database = migrated(Postgres::shared().await.unwrap()).await;
    let indices = [
        ("01", 0.1 + 0.2),
        ("02", 5.0),
        ("03", 0.0),
        ("04", 1e-7),
        ("05", 2.5),
    ];
    let rows = indices.map(|(code, index)| stress(code, index));
    writer(&database)
        .await
        .replace_stress(&rows, day(1), &load())
        .await
        .unwrap();
    let service = ready(&database.url_as("water_reader")).await;
    let list = service.get("/api/v1/stress").await;
    let numbers = list.text().unwrap().split(r#""stressIndex":"#).skip(1);
    let printed: Vec<_> = numbers
        .map(|rest| rest.split(',').next().unwrap())
        .collect();
    assert_eq!(
        printed,
        ["0.30000000000000004", "5", "0", "0.0000001", "2.5"]
    );
}
