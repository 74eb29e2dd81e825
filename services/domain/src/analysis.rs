//! `hydrorisk`: a risk analysis in an account's history (specification §2.3).

use crate::{HistoryRating, Number, SectorCode, Timestamp};

/// One risk analysis of a company, as the API answers it.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RiskAnalysis {
    /// The record's identifier, unique within the account.
    pub id: String,
    /// The company that was analysed.
    pub company_name: String,
    /// Its sector.
    pub sector_code: SectorCode,
    /// Its département's code.
    pub dept_code: String,
    /// The result; may be fractional.
    pub global_score: Number,
    /// The host product's rating.
    pub rating: HistoryRating,
    /// When the analysis was made.
    pub created_at: Timestamp,
}
