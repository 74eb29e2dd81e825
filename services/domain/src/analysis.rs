//! `hydrorisk`: a risk analysis in an account's history (specification §2.3).

use crate::{Number, Timestamp};

/// One risk analysis of a company, as the API answers it.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RiskAnalysis {
    /// The record's identifier, unique within the account.
    pub id: String,
    /// The company that was analysed.
    pub company_name: String,
    /// Its sector, a `SectorCode` when it was loaded.
    pub sector_code: String,
    /// Its département's code.
    pub dept_code: String,
    /// The result; may be fractional.
    pub global_score: Number,
    /// The host product's rating, a `HistoryRating` when it was loaded.
    pub rating: String,
    /// When the analysis was made.
    pub created_at: Timestamp,
}
