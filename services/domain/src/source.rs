//! `sources`: the origin of a dataset and its licence.

use crate::Timestamp;

/// The origin of one dataset that was loaded, as the calling account may know it.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceRecord {
    /// `stress`, `risk`, `vigieau` (the legal alert levels), or the calling account's `analyses` or `audits`, of which its
    /// newest file is described.
    pub dataset: String,
    /// Publisher, in the loader's words.
    pub source: Option<String>,
    /// Address of the publication.
    pub source_url: Option<String>,
    /// Licence.
    pub licence: Option<String>,
    /// The moment that it describes.
    pub as_of: Option<Timestamp>,
    /// Time of the load, by the database's clock.
    pub loaded_at: Timestamp,
    /// Number of records: of a history, the calling account's.
    pub records: u64,
    /// Whether it, or a part of it, is generated and not measured.
    pub synthetic: bool,
    /// Codes of the départements whose level comes from the stress index alone.
    pub derived_levels: Vec<String>,
    /// Codes of the départements whose level is that of an earlier answer of the register, since the last one had none
    /// that could be read.
    pub kept_levels: Vec<String>,
}
