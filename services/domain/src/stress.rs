//! `stress`: the water stress of a département (specification §2.1).

use crate::{Departement, Level, Number};

/// The water stress index and the alert level of one département.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StressRecord {
    /// Where.
    pub departement: &'static Departement,
    /// Structural water stress, 0 to 5.
    pub stress_index: Number,
    /// The legal alert level.
    pub level: Level,
}

impl serde::Serialize for StressRecord {
    /// Field order as in specification §2.1.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut record = serializer.serialize_struct("StressRecord", 4)?;
        record.serialize_field("dept", self.departement.code)?;
        record.serialize_field("name", self.departement.name)?;
        record.serialize_field("stressIndex", &self.stress_index)?;
        record.serialize_field("level", &self.level)?;
        record.end()
    }
}
