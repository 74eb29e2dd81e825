//! Answers of `/stress` and `/risque`: shapes, field order, CSV, refusals.

use serde_json::{Value, json};
use water_domain::departement;
use water_kit::{Database, problem, risk, stress};

use crate::{CSV, RISQUE, STRESS, start, with_data};

#[tokio::test]
async fn one_record_of_stress_is_in_the_envelope_and_beside_it_and_one_of_risk_alone() {
    let (service, _) = with_data().await;
    for (target, text) in [
        (
            "/api/v1/stress?dept=34",
            concat!(
                r#"{"count":1,"updatedAt":"2026-01-02T00:00:00.000Z","data":["#,
                r#"{"dept":"34","name":"Hérault","stressIndex":3,"level":"alerte_renforcee","#,
                r#""levelSource":"file","levelAsOf":"2026-01-02T00:00:00.000Z"}],"#,
                r#""dept":"34","name":"Hérault","stressIndex":3,"level":"alerte_renforcee","#,
                r#""levelSource":"file","levelAsOf":"2026-01-02T00:00:00.000Z"}"#
            ),
        ),
        (
            "/api/v1/risque?dept=2a",
            concat!(
                r#"{"dept":"2A","name":"Corse-du-Sud","flood":12.25,"drought":100,"overall":62.5,"#,
                r#""rating":"D","updatedAt":"2026-01-01T00:00:00.000Z"}"#
            ),
        ),
    ] {
        assert_eq!(service.get(target).await.text().unwrap(), text);
    }
}

#[tokio::test]
async fn a_list_has_all_records_in_ascii_order_and_csv_has_their_fields() {
    let (service, _) = with_data().await;
    for (path, as_of, header) in [
        (
            STRESS,
            "2026-01-02",
            "dept,name,stressIndex,level,levelSource,levelAsOf,updatedAt",
        ),
        (
            RISQUE,
            "2026-01-01",
            "dept,name,flood,drought,overall,rating,updatedAt",
        ),
    ] {
        let list = service.get(path).await;
        let start = format!(r#"{{"count":7,"updatedAt":"{as_of}T00:00:00.000Z","data":[{{"#);
        assert!(list.text().unwrap().starts_with(&start), "{list:?}");
        let body = list.json().unwrap();
        let records = body["data"].as_array().unwrap();
        let codes: Vec<&Value> = records.iter().map(|record| &record["dept"]).collect();
        assert_eq!(codes, ["01", "29", "2A", "2B", "30", "34", "971"], "{path}");

        let csv = service.request("GET", path, &[CSV]).await;
        let kind = "text/csv; charset=utf-8; header=present";
        assert_eq!(csv.header("content-type"), Some(kind));
        let mut lines = csv.text().unwrap().lines();
        assert_eq!(lines.next(), Some(header));
        let names: Vec<&str> = header.split(',').collect();
        // No field of these datasets needs quotes.
        for (line, record) in lines.by_ref().zip(records) {
            let shown = |field: &Value| field.as_str().map_or(field.to_string(), str::to_owned);
            // The date of a stress record is its envelope's.
            let field = |name: &&str| record.get(name).unwrap_or(&body["updatedAt"]);
            let fields: Vec<String> = names.iter().map(|name| shown(field(name))).collect();
            assert_eq!(line, fields.join(","));
            let all = names.len() - usize::from(path == STRESS);
            assert_eq!(record.as_object().unwrap().len(), all);
        }
        assert_eq!(lines.next(), None);
        let target = format!("{path}?dept=34");
        let one = service.request("GET", &target, &[CSV]).await;
        let line = csv.text().unwrap().split("\r\n").nth(6).unwrap();
        assert_eq!(one.text().unwrap(), format!("{header}\r\n{line}\r\n"));
        for answer in [list, csv, one] {
            let sources = "</api/v1/sources>; rel=\"describedby\"";
            assert_eq!(answer.header("link"), Some(sources));
        }
    }
}

#[tokio::test]
async fn a_departement_that_is_malformed_unknown_or_without_a_record_is_refused_in_every_form() {
    let (service, _) = with_data().await;
    let malformed = (400, json!("invalid_parameter"), json!("dept"));
    let unknown = (404, json!("not_found"), Value::Null);
    for path in [STRESS, RISQUE] {
        for (code, expected, says) in [
            ("zzz9", &malformed, ""),
            ("34&dept=34", &malformed, ""),
            ("20", &unknown, "2A"),
            ("75", &unknown, "no record"),
        ] {
            for form in [&[][..], &[CSV]] {
                let target = format!("{path}?dept={code}");
                let answer = service.request("GET", &target, form).await;
                assert_eq!(problem(&answer), *expected, "{target}");
                let text = answer.text().unwrap();
                assert!(text.contains(says) && !text.contains("zzz9"), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn each_dataset_is_no_data_until_it_is_loaded() {
    let database = Database::new().await;
    let empty = start(&database).ready().await;
    let no_data = (404, json!("no_data"), Value::Null);
    for target in [STRESS, "/api/v1/risque?dept=34"] {
        assert_eq!(problem(&empty.get(target).await), no_data);
    }
    assert_eq!(problem(&empty.get("/api/v1/stress?dept=xx").await).0, 400);
    let data = empty.admin("/data").await.json().unwrap();
    assert_eq!(data, json!({"stress": 0, "risk": 0}));

    let mut loader = database.writer().await;
    loader.risk(1, &[risk("34", 1.0)]).await;
    let service = start(&database).ready().await;
    assert_eq!(service.get(RISQUE).await.status, 200);
    assert_eq!(problem(&service.get(STRESS).await), no_data);
    let data = service.admin("/data").await.json().unwrap();
    assert_eq!(data, json!({"stress": 0, "risk": 1}));
}

#[tokio::test]
async fn both_routes_answer_in_the_frame() {
    let database = Database::new().await;
    let mut loader = database.writer().await;
    let codes = departement::all().iter();
    let codes: Vec<&str> = codes.map(|departement| departement.code).collect();
    let stresses: Vec<_> = codes.iter().map(|code| stress(code, 1.5)).collect();
    loader.stress(1, &stresses).await;
    let risks: Vec<_> = codes.iter().map(|code| risk(code, 1.5)).collect();
    loader.risk(1, &risks).await;
    let service = start(&database).ready().await;
    for path in [STRESS, RISQUE] {
        let kept = "private, max-age=60, must-revalidate";
        service.answers_in_the_frame(path, kept).await;
    }
}
