//! `risque`: the water risk of a département (specification §2.2).

use crate::{Departement, Number, RiskRating, Timestamp};

/// The water risk scores of one département.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RiskRecord {
    /// Département of the scores.
    pub departement: &'static Departement,
    /// Flood risk, 0 to 100.
    pub flood: Number,
    /// Drought risk, 0 to 100.
    pub drought: Number,
    /// Global risk, 0 to 100.
    pub overall: Number,
    /// The letter of the global risk.
    pub rating: RiskRating,
    /// The moment that the scores describe.
    pub updated_at: Timestamp,
}

impl serde::Serialize for RiskRecord {
    /// Writes the fields in the order of specification §2.2.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut record = serializer.serialize_struct("RiskRecord", 7)?;
        record.serialize_field("dept", self.departement.code)?;
        record.serialize_field("name", self.departement.name)?;
        record.serialize_field("flood", &self.flood)?;
        record.serialize_field("drought", &self.drought)?;
        record.serialize_field("overall", &self.overall)?;
        record.serialize_field("rating", &self.rating)?;
        record.serialize_field("updatedAt", &self.updated_at)?;
        record.end()
    }
}
