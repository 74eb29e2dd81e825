//! The same records as CSV.

use water_harness::Answer;
use water_kit::Running;

use crate::fixture::{problem, with_data};

const CSV: [(&str, &str); 1] = [("X-Water-Format", "csv")];

async fn csv(service: &Running, target: &str) -> Answer {
    service.request("GET", target, &CSV).await
}

/// Header and rows.
fn lines(answer: &Answer) -> Vec<String> {
    let text = answer.text().unwrap();
    let text = text.strip_suffix("\r\n").unwrap();
    text.split("\r\n").map(str::to_owned).collect()
}

#[tokio::test]
async fn all_stress_records_come_in_the_order_and_with_the_numbers_of_json() {
    let (service, _) = with_data().await;
    let answer = csv(&service, "/api/v1/stress").await;
    assert_eq!(
        answer.header("content-type"),
        Some("text/csv; charset=utf-8; header=present")
    );
    assert_eq!(
        lines(&answer),
        [
            "dept,name,stressIndex,level",
            "01,Ain,3,alerte_renforcee",
            "29,Finistère,3,alerte_renforcee",
            "2A,Corse-du-Sud,3,alerte_renforcee",
            "2B,Haute-Corse,3,alerte_renforcee",
            "30,Gard,3,alerte_renforcee",
            "34,Hérault,3,alerte_renforcee",
            "971,Guadeloupe,3,alerte_renforcee",
        ]
    );
}

#[tokio::test]
async fn one_risk_record_is_one_line_under_the_header() {
    let (service, _) = with_data().await;
    let answer = csv(&service, "/api/v1/risque?dept=2a").await;
    assert_eq!(
        answer.text().unwrap(),
        "dept,name,flood,drought,overall,rating,updatedAt\r\n\
         2A,Corse-du-Sud,12.25,100,62.5,D,2026-01-01T00:00:00.000Z\r\n"
    );
}

#[tokio::test]
async fn each_form_has_a_tag_of_its_own() {
    let (service, _) = with_data().await;
    for target in ["/api/v1/stress", "/api/v1/risque?dept=34"] {
        let (json, csv) = (service.get(target).await, csv(&service, target).await);
        let tag = csv.header("etag").unwrap();
        assert_ne!(Some(tag), json.header("etag"));
        for (form, status) in [(&CSV[..], 304), (&[], 200)] {
            let headers = [form, &[("If-None-Match", tag)]].concat();
            let answer = service.request("GET", target, &headers).await;
            assert_eq!(answer.status, status);
        }
    }
}

#[tokio::test]
async fn a_form_that_does_not_exist_is_json() {
    let (service, _) = with_data().await;
    let json = service.get("/api/v1/stress").await;
    for form in ["ndjson", "xml", ""] {
        let headers = [("X-Water-Format", form)];
        let answer = service.request("GET", "/api/v1/stress", &headers).await;
        assert_eq!(
            (answer.body, answer.headers.len()),
            (json.body.clone(), json.headers.len())
        );
    }
}

#[tokio::test]
async fn a_problem_is_a_problem_in_every_form() {
    let (service, _) = with_data().await;
    for (target, status) in [
        ("/api/v1/stress?dept=xx", 400),
        ("/api/v1/stress?dept=75", 404),
    ] {
        assert_eq!(problem(&csv(&service, target).await).0, status);
    }
}

#[tokio::test]
async fn every_answer_leads_to_the_sources() {
    let (service, _) = with_data().await;
    for target in ["/api/v1/stress", "/api/v1/risque?dept=34"] {
        for answer in [service.get(target).await, csv(&service, target).await] {
            let link = "</api/v1/sources>; rel=\"describedby\"";
            assert_eq!(answer.header("link"), Some(link));
        }
    }
}
