//! Example bodies: real domain values, serialised by the code that serves them.

use serde::Serialize;
use serde_json::{Value, json};
use water_domain::{
    ComplianceAudit, Departement, Format, HistoryRating, Level, LevelSource, Number, Page,
    RiskAnalysis, RiskRating, RiskRecord, SectorCode, SourceRecord, StressRecord, Timestamp,
    departement,
};
use water_http::Route;

pub(super) fn stress_record() -> StressRecord {
    StressRecord {
        departement: herault(),
        stress_index: number(3.4),
        level: Level::Crise,
        level_source: LevelSource::Register,
        level_as_of: moment(),
        updated_at: moment(),
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

/// Returns a dataset of `/api/v1/sources`.
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
        kept_levels: Vec::new(),
    }
}

/// Returns the media type of another format, and pages of a route in it.
pub(super) fn text(route: &Route, format: Format) -> (&'static str, Vec<(&'static str, Value)>) {
    if format == Format::NdJson {
        let (row, id) = match route.name {
            "hydrorisk" => (line(&risk_analysis()), "an-2026-0002"),
            _ => (line(&compliance_audit()), "au-2026-0002"),
        };
        let changes = row.clone() + &line(&json!({ "deleted": { "id": id } }));
        let pages = vec![("page", row.into()), ("pageOfChanges", changes.into())];
        return ("application/x-ndjson", pages);
    }
    let (header, row) = match route.name {
        "stress" => (
            "dept,name,stressIndex,level,levelSource,levelAsOf,updatedAt",
            "34,Hérault,3.4,crise,register,2026-07-01T00:00:00.000Z,2026-07-01T00:00:00.000Z",
        ),
        "risque" => (
            "dept,name,flood,drought,overall,rating,updatedAt",
            "34,Hérault,61,74.5,68,D,2026-07-01T00:00:00.000Z",
        ),
        "hydrorisk" => (
            "id,companyName,sectorCode,deptCode,globalScore,rating,createdAt",
            "an-2026-0001,Société des Eaux,36.00Z,34,42.5,B,2026-07-01T00:00:00.000Z",
        ),
        _ => (
            "id,companyName,sectorCode,deptCode,score,globalRating,createdAt",
            "au-2026-0001,Société des Eaux,36.00Z,34,87,A+,2026-07-01T00:00:00.000Z",
        ),
    };
    let page = format!("{header}\r\n{row}\r\n");
    ("text/csv", vec![("page", page.into())])
}

fn line(record: &impl Serialize) -> String {
    let json = serde_json::to_string(record).expect("records are always JSON");
    json + "\n"
}

/// Returns `{count, updatedAt, data}` with one record.
pub(super) fn list(record: &impl Serialize) -> Value {
    json!({ "count": 1, "updatedAt": moment(), "data": [record] })
}

/// Returns `{total, limit, offset, data}` with one item of many.
pub(super) fn page(item: &impl Serialize) -> Value {
    json!({ "total": 1204, "limit": Page::DEFAULT_LIMIT, "offset": 0, "data": [item] })
}

/// Returns the list of one record, with the record's own fields at top level as well.
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
