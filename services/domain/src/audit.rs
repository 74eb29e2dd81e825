//! `conformite`: a compliance audit in an account's history (specification §2.4).

use crate::{Number, Timestamp};

/// A compliance audit of a company, as the API answers it.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComplianceAudit {
    /// The record's identifier, unique within the account.
    pub id: String,
    /// The company that was audited.
    pub company_name: String,
    /// Sector, a `SectorCode` when it was loaded.
    pub sector_code: String,
    /// Code of the département.
    pub dept_code: String,
    /// The result; may be fractional.
    pub score: Number,
    /// The host product's rating, a `HistoryRating` when it was loaded.
    pub global_rating: String,
    /// Time of the audit.
    pub created_at: Timestamp,
}
