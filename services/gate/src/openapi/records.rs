//! Schemas of the bodies of the resources, in the API's field order.
//!
//! The domain's types are authoritative; these describe them to clients. A test serialises domain values and compares
//! the fields.
#![expect(dead_code, reason = "the structs are read by the derive only")]

use serde_json::json;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Water stress of one département.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct StressRecord {
    /// Code of the département.
    #[schema(pattern = "^([0-9]{2}|2A|2B|97[12346])$", examples("34", "2A", "971"))]
    dept: String,
    /// Name of the département.
    name: String,
    /// Structural water stress, 0 to 5; may be fractional.
    #[schema(minimum = 0, maximum = 5)]
    stress_index: f64,
    /// Alert level in force.
    level: Level,
    /// Origin of the level.
    level_source: LevelSource,
    /// The moment that the level describes: the newest for which its origin gave it. A register that gives no more answers
    /// leaves it as it is.
    level_as_of: Timestamp,
}

/// Origin of an alert level.
pub(super) struct LevelSource;

impl ToSchema for LevelSource {}

impl PartialSchema for LevelSource {
    fn schema() -> RefOr<Schema> {
        let sources = water_domain::LevelSource::ALL.map(water_domain::LevelSource::as_str);
        let description = "Origins of an alert level: the national drought register; the file of stress \
                           indices; or the stress index itself, because no level was ever stated. Origins \
                           may be added.";
        open(&sources, description)
    }
}

/// Alert level.
pub(super) struct Level;

impl ToSchema for Level {}

impl PartialSchema for Level {
    fn schema() -> RefOr<Schema> {
        let levels = water_domain::Level::ALL.map(water_domain::Level::as_str);
        let description = "Alert levels, in ascending order. Levels may be added: treat an \
                           unknown level as the next higher one that you know.";
        open(&levels, description)
    }
}

/// Letter of a risk.
pub(super) struct RiskRating;

impl ToSchema for RiskRating {}

impl PartialSchema for RiskRating {
    fn schema() -> RefOr<Schema> {
        let ratings = water_domain::RiskRating::ALL.map(water_domain::RiskRating::as_str);
        let description = "Letters of the risk, from A (lowest risk) to E. Letters may be added: \
                           treat an unknown letter as the next higher one that you know.";
        open(&ratings, description)
    }
}

/// Makes an extensible enumeration: the values are listed and may become more. To a strict client `enum` would make
/// each new one an error.
fn open(values: &[&str], description: &str) -> RefOr<Schema> {
    let values = Extensions::from_iter([("x-extensible-enum", json!(values))]);
    let text = ObjectBuilder::new().schema_type(Type::String);
    text.description(Some(description))
        .extensions(Some(values))
        .into()
}

/// Water risk of one département.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct RiskRecord {
    /// Code of the département.
    #[schema(pattern = "^([0-9]{2}|2A|2B|97[12346])$", examples("34", "2A", "971"))]
    dept: String,
    /// Name of the département.
    name: String,
    /// Flood risk, 0 to 100.
    #[schema(minimum = 0, maximum = 100)]
    flood: f64,
    /// Drought risk, 0 to 100.
    #[schema(minimum = 0, maximum = 100)]
    drought: f64,
    /// Global risk, 0 to 100.
    #[schema(minimum = 0, maximum = 100)]
    overall: f64,
    /// Letter of the global risk.
    rating: RiskRating,
    /// The moment that the scores describe, as their source gives it: it may be later than the list's.
    updated_at: Timestamp,
}

/// Risk analysis of a company.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct RiskAnalysis {
    /// Identifier, unique within the account.
    id: String,
    /// The company that was analysed.
    company_name: String,
    /// Sector code of the company, opaque.
    #[schema(pattern = "^[A-Za-z0-9._-]{1,16}$")]
    sector_code: String,
    /// Code of the company's département.
    dept_code: String,
    /// The result; may be fractional.
    global_score: f64,
    /// Rating code, opaque.
    #[schema(pattern = "^[A-Z][A-Z0-9+-]{0,7}$")]
    rating: String,
    /// Time of the analysis.
    created_at: Timestamp,
}

/// Compliance audit of a company.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct ComplianceAudit {
    /// Identifier, unique within the account.
    id: String,
    /// The company that was audited.
    company_name: String,
    /// Sector code of the company, opaque.
    #[schema(pattern = "^[A-Za-z0-9._-]{1,16}$")]
    sector_code: String,
    /// Code of the company's département.
    dept_code: String,
    /// The result; may be fractional.
    score: f64,
    /// Rating code, opaque.
    #[schema(pattern = "^[A-Z][A-Z0-9+-]{0,7}$")]
    global_rating: String,
    /// Time of the audit.
    created_at: Timestamp,
}

/// Line of NDJSON that reports a record deleted since a token.
#[derive(ToSchema)]
pub(super) struct Deletion {
    deleted: DeletedRecord,
}

/// A record that was deleted.
#[derive(ToSchema)]
pub(super) struct DeletedRecord {
    /// Identifier, unique within the account.
    id: String,
}

/// A moment in UTC with three decimals.
#[derive(ToSchema)]
#[schema(
    format = DateTime,
    pattern = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$",
    examples("2026-07-01T00:00:00.000Z")
)]
pub(super) struct Timestamp(String);

/// Stress records. With `dept`, the one record's fields stand at top level as well.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct StressList {
    /// Number of records in `data`.
    #[schema(minimum = 0, maximum = 101)]
    count: u32,
    /// The newest as-of date that changed an index or a level in `data`, or removed a record; never the time of a load.
    updated_at: Timestamp,
    /// Records in ASCII order of the codes.
    data: Vec<StressRecord>,
    /// Present with the parameter `dept` only.
    #[schema(required = false)]
    dept: String,
    /// Present with the parameter `dept` only.
    #[schema(required = false)]
    name: String,
    /// Present with the parameter `dept` only.
    #[schema(required = false, minimum = 0, maximum = 5)]
    stress_index: f64,
    /// Present with the parameter `dept` only.
    #[schema(required = false)]
    level: Level,
    /// Present with the parameter `dept` only.
    #[schema(required = false)]
    level_source: LevelSource,
    /// Present with the parameter `dept` only.
    #[schema(required = false)]
    level_as_of: Timestamp,
}

/// Risk records of all départements.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct RiskList {
    /// Number of records in `data`.
    #[schema(minimum = 0, maximum = 101)]
    count: u32,
    /// The newest as-of date that changed the records; never the time of a load.
    updated_at: Timestamp,
    /// Records in ASCII order of the codes.
    data: Vec<RiskRecord>,
}

/// A page of the account's risk analyses.
#[derive(ToSchema)]
pub(super) struct RiskAnalysisPage {
    /// Number of records that the account has.
    total: u64,
    /// The page size applied.
    #[schema(minimum = 1, maximum = 100)]
    limit: u32,
    /// The offset applied.
    offset: u64,
    /// The newest first.
    data: Vec<RiskAnalysis>,
}

/// A page of the account's compliance audits.
#[derive(ToSchema)]
pub(super) struct ComplianceAuditPage {
    /// Number of records that the account has.
    total: u64,
    /// The page size applied.
    #[schema(minimum = 1, maximum = 100)]
    limit: u32,
    /// The offset applied.
    offset: u64,
    /// The newest first.
    data: Vec<ComplianceAudit>,
}

/// Sources of the loaded datasets.
#[derive(ToSchema)]
pub(super) struct SourceList {
    /// A source for each dataset of the départements that was loaded, and for each history in which a file had records of
    /// the account.
    data: Vec<Source>,
}

/// Source of a dataset, as its loader declared it; of a history, the newest file that had records of the account.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct Source {
    /// Dataset: `stress`, `risk`, `vigieau` (the legal alert levels), `analyses`, `audits`.
    #[schema(examples("vigieau"))]
    dataset: String,
    /// Publisher, in the loader's words.
    source: Option<String>,
    /// Link to the publication.
    source_url: Option<String>,
    /// Licence under which it may be used.
    licence: Option<String>,
    /// The moment that it describes.
    as_of: Option<Timestamp>,
    /// Time of the load.
    loaded_at: Timestamp,
    /// Number of records; of histories, of the calling account's.
    records: u64,
    /// Whether the dataset, or a part of it, is generated and not measured; of histories, whether some of the account's
    /// records may be.
    synthetic: bool,
    /// Codes of the départements whose level is derived from the stress index.
    derived_levels: Vec<String>,
    /// Codes of the départements whose level is that of an earlier answer of the register: the last one had none that
    /// could be read.
    kept_levels: Vec<String>,
}
