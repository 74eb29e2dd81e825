//! `hydrorisk`: a risk analysis in an account's history (specification §2.3).

use crate::{Number, Timestamp};

/// A risk analysis of a company, as the API answers it.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RiskAnalysis {
    /// The record's identifier, unique within the account.
    pub id: String,
    /// The company that was analysed.
    pub company_name: String,
    /// Sector, a `SectorCode` when it was loaded.
    pub sector_code: String,
    /// Code of the département.
    pub dept_code: String,
    /// The result; may be fractional.
    pub global_score: Number,
    /// The host product's rating, a `HistoryRating` when it was loaded.
    pub rating: String,
    /// Time of the analysis.
    pub created_at: Timestamp,
}
