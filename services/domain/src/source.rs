//! `sources`: where a dataset comes from and under which licence.

use crate::Timestamp;

/// The origin of one dataset that was loaded, as everyone may know it.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceRecord {
    /// `stress`, `risk`, `vigieau` (the legal alert levels), `analyses` or `audits`.
    pub dataset: String,
    /// Who publishes it, in its loader's words.
    pub source: Option<String>,
    /// Where it is published.
    pub source_url: Option<String>,
    /// Under which licence.
    pub licence: Option<String>,
    /// The moment that it describes.
    pub as_of: Option<Timestamp>,
    /// When it was loaded, by the database's clock.
    pub loaded_at: Timestamp,
    /// How many records there are: of a history, the calling account's.
    pub records: u64,
    /// Whether it, or a part of it, is generated and not measured.
    pub synthetic: bool,
    /// Codes of the départements whose level comes from the stress index alone.
    pub derived_levels: Vec<String>,
}
