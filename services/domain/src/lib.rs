//! The API's words and rules: account, plan, key, page and record.
//!
//! No I/O, no async and no clock: callers pass the time in. The modules of the resources carry the
//! English noun; the path's word is in their first line.

pub mod account;
pub mod analysis;
pub mod audit;
pub mod departement;
pub mod fault;
pub mod format;
pub mod key;
pub mod level;
pub mod number;
pub mod page;
pub mod plan;
pub mod rating;
pub mod risk;
pub mod sector;
pub mod source;
pub mod stress;
mod text;
pub mod timestamp;

pub use account::AccountId;
pub use analysis::RiskAnalysis;
pub use audit::ComplianceAudit;
pub use departement::Departement;
pub use fault::Fault;
pub use format::Format;
pub use key::{CANDIDATES, KeyHash, KeyId, KeyPrefix, MalformedKey, PlainKey, REISSUES};
pub use level::Level;
pub use number::Number;
pub use page::{Page, PageError};
pub use plan::{Limits, Plan, PlanName};
pub use rating::{HistoryRating, RiskRating};
pub use risk::RiskRecord;
pub use sector::SectorCode;
pub use source::SourceRecord;
pub use stress::{LevelSource, StressRecord};
pub use timestamp::Timestamp;
