//! Example bodies: real domain values, serialised by the code that serves them.

use serde::Serialize;
use serde_json::{Value, json};
use water_domain::{
    ComplianceAudit, Departement, Format, HistoryRating, Level, Number, Page, RiskAnalysis,
    RiskRating, RiskRecord, SectorCode, SourceRecord, StressRecord, Timestamp, departement,
};

use crate::route::Route;

pub(super) fn stress_record() -> StressRecord {
    StressRecord {
        departement: herault(),
        stress_index: number(3.4),
        level: Level::Crise,
    }
}

pub(super) fn risk_record() -> RiskRecord {
    RiskRecord {
        departement: herault(),
        flood: number(61.0),
        drought: number(74.5),
        overall: number(68.0),
        rating: RiskRating::from_overall(68.0),
        updated_at: moment(),
    }
}

pub(super) fn risk_analysis() -> RiskAnalysis {
    RiskAnalysis {
        id: "an-2026-0001".into(),
        company_name: "Société des Eaux".into(),
        sector_code: valid::<SectorCode>("36.00Z").into(),
        dept_code: herault().code.into(),
        global_score: number(42.5),
        rating: valid::<HistoryRating>("B").into(),
        created_at: moment(),
    }
}

pub(super) fn compliance_audit() -> ComplianceAudit {
    ComplianceAudit {
        id: "au-2026-0001".into(),
        company_name: "Société des Eaux".into(),
        sector_code: valid::<SectorCode>("36.00Z").into(),
        dept_code: herault().code.into(),
        score: number(87.0),
        global_rating: valid::<HistoryRating>("A+").into(),
        created_at: moment(),
    }
}

/// One dataset of `/api/v1/sources`.
pub(super) fn source() -> SourceRecord {
    SourceRecord {
        dataset: "vigieau".into(),
        source: Some("VigiEau, Ministère de la Transition écologique".into()),
        source_url: Some("https://vigieau.gouv.fr".into()),
        licence: Some("Licence Ouverte 2.0".into()),
        as_of: Some(moment()),
        loaded_at: moment(),
        records: 101,
        synthetic: false,
        derived_levels: Vec::new(),
    }
}

/// The media type of another form, and a page of a route in it.
pub(super) fn text(route: &Route, format: Format) -> (&'static str, String) {
    match (route.name, format) {
        ("stress", _) => (
            "text/csv",
            csv("dept,name,stressIndex,level", "34,Hérault,3.4,crise"),
        ),
        ("risque", _) => (
            "text/csv",
            csv(
                "dept,name,flood,drought,overall,rating,updatedAt",
                "34,Hérault,61,74.5,68,D,2026-07-01T00:00:00.000Z",
            ),
        ),
        ("hydrorisk", Format::NdJson) => ("application/x-ndjson", line(&risk_analysis())),
        (_, Format::NdJson) => ("application/x-ndjson", line(&compliance_audit())),
        ("hydrorisk", _) => (
            "text/csv",
            csv(
                "id,companyName,sectorCode,deptCode,globalScore,rating,createdAt",
                "an-2026-0001,Société des Eaux,36.00Z,34,42.5,B,2026-07-01T00:00:00.000Z",
            ),
        ),
        _ => (
            "text/csv",
            csv(
                "id,companyName,sectorCode,deptCode,score,globalRating,createdAt",
                "au-2026-0001,Société des Eaux,36.00Z,34,87,A+,2026-07-01T00:00:00.000Z",
            ),
        ),
    }
}

fn csv(header: &str, row: &str) -> String {
    format!("{header}\r\n{row}\r\n")
}

fn line(record: &impl Serialize) -> String {
    let json = serde_json::to_string(record).expect("records are always JSON");
    json + "\n"
}

/// `{count, updatedAt, data}` with one record.
pub(super) fn list(record: &impl Serialize) -> Value {
    json!({ "count": 1, "updatedAt": moment(), "data": [record] })
}

/// `{total, limit, offset, data}` with one item of many.
pub(super) fn page(item: &impl Serialize) -> Value {
    json!({ "total": 1204, "limit": Page::DEFAULT_LIMIT, "offset": 0, "data": [item] })
}

/// The list of one record, with the record's own fields at top level as well.
pub(super) fn merged(list: &Value, record: &impl Serialize) -> Value {
    let mut merged = list.clone();
    let fields = json!(record);
    let fields = fields.as_object().into_iter().flatten();
    for (name, value) in fields {
        merged[name] = value.clone();
    }
    merged
}

fn herault() -> &'static Departement {
    departement::parse("34").expect("34 is a département")
}

fn number(value: f64) -> Number {
    value.try_into().expect("the examples are finite")
}

fn moment() -> Timestamp {
    Timestamp::parse("2026-07-01T00:00:00Z").expect("the example is a time")
}

fn valid<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse()
        .expect("the examples follow their types' rules")
}
