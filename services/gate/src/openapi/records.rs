//! Schemas of the bodies of the resources, in the API's field order.
//!
//! The domain's types decide; these describe them to clients. A test serialises domain values and
//! compares the fields.
#![expect(dead_code, reason = "the structs are read by the derive only")]

use utoipa::ToSchema;

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
    /// Alert level in force. Where no legal level was loaded it is derived from the index, which
    /// `derivedLevels` of `/api/v1/sources` tells.
    level: Level,
}

/// Alert levels, in ascending order.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(super) enum Level {
    Normal,
    Vigilance,
    Alerte,
    AlerteRenforcee,
    Crise,
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
    /// Letter of the global risk, from A (lowest risk) to E.
    #[schema(pattern = "^[A-E]$")]
    rating: String,
    /// The moment that the scores describe.
    updated_at: Timestamp,
}

/// One risk analysis of a company.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct RiskAnalysis {
    /// Identifier, unique within the account.
    id: String,
    /// The company that was analysed.
    company_name: String,
    /// Its sector code, opaque.
    #[schema(pattern = "^[A-Za-z0-9._-]{1,16}$")]
    sector_code: String,
    /// Its département's code.
    dept_code: String,
    /// The result; may be fractional.
    global_score: f64,
    /// Rating code, opaque.
    #[schema(pattern = "^[A-Z][A-Z0-9+-]{0,7}$")]
    rating: String,
    /// When the analysis was made.
    created_at: Timestamp,
}

/// One compliance audit of a company.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct ComplianceAudit {
    /// Identifier, unique within the account.
    id: String,
    /// The company that was audited.
    company_name: String,
    /// Its sector code, opaque.
    #[schema(pattern = "^[A-Za-z0-9._-]{1,16}$")]
    sector_code: String,
    /// Its département's code.
    dept_code: String,
    /// The result; may be fractional.
    score: f64,
    /// Rating code, opaque.
    #[schema(pattern = "^[A-Z][A-Z0-9+-]{0,7}$")]
    global_rating: String,
    /// When the audit was made.
    created_at: Timestamp,
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
    /// How many records `data` has.
    #[schema(minimum = 0, maximum = 101)]
    count: u32,
    /// The newest as-of date that changed the records; never the time of a load.
    updated_at: Timestamp,
    /// In ASCII order of the codes.
    data: Vec<StressRecord>,
    /// With the parameter `dept` only.
    #[schema(required = false)]
    dept: String,
    /// With the parameter `dept` only.
    #[schema(required = false)]
    name: String,
    /// With the parameter `dept` only.
    #[schema(required = false, minimum = 0, maximum = 5)]
    stress_index: f64,
    /// With the parameter `dept` only.
    #[schema(required = false)]
    level: Level,
}

/// Risk records of all départements.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct RiskList {
    /// How many records `data` has.
    #[schema(minimum = 0, maximum = 101)]
    count: u32,
    /// The newest as-of date that changed the records; never the time of a load.
    updated_at: Timestamp,
    /// In ASCII order of the codes.
    data: Vec<RiskRecord>,
}

/// A page of the account's risk analyses.
#[derive(ToSchema)]
pub(super) struct RiskAnalysisPage {
    /// How many the account has.
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
    /// How many the account has.
    total: u64,
    /// The page size applied.
    #[schema(minimum = 1, maximum = 100)]
    limit: u32,
    /// The offset applied.
    offset: u64,
    /// The newest first.
    data: Vec<ComplianceAudit>,
}

/// Where each loaded dataset comes from.
#[derive(ToSchema)]
pub(super) struct SourceList {
    /// One a dataset that was loaded; of histories, those in which the account has records.
    data: Vec<Source>,
}

/// Where a dataset comes from, as its loader said.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct Source {
    /// Which: `stress`, `risk`, `vigieau` (the legal alert levels), `analyses`, `audits`.
    #[schema(examples("vigieau"))]
    dataset: String,
    /// Who publishes it.
    source: Option<String>,
    /// Where it is published.
    source_url: Option<String>,
    /// Under which licence it may be used.
    licence: Option<String>,
    /// The moment that it describes.
    as_of: Option<Timestamp>,
    /// When it was loaded.
    loaded_at: Timestamp,
    /// How many records it has; of histories, the calling account's.
    records: u64,
    /// Whether it, or a part of it, is generated and not measured.
    synthetic: bool,
    /// Codes of the départements whose level is derived from the stress index.
    derived_levels: Vec<String>,
}
