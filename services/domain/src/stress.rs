//! `stress`: the water stress of a département (specification §2.1).

use std::str::FromStr;

use crate::{Departement, Level, Number, Timestamp};

/// The water stress index and the alert level of one département.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StressRecord {
    /// Département of the values.
    pub departement: &'static Departement,
    /// Structural water stress, 0 to 5.
    pub stress_index: Number,
    /// The legal alert level.
    pub level: Level,
    /// Origin of the level.
    pub level_source: LevelSource,
    /// The moment that the level describes: the newest for which its origin gave it.
    pub level_as_of: Timestamp,
    /// The newest as-of date that changed index or level, or made a derived level a stated one. Not a field of the record's
    /// JSON, where the envelope has it.
    pub updated_at: Timestamp,
}

/// Origin of an alert level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LevelSource {
    /// The national drought register.
    Register,
    /// The file of stress indices, which may state levels.
    File,
    /// The stress index, because no level was ever stated.
    Derived,
}

/// Text that names no origin of a level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the source of a level is one of register, file, derived")]
pub struct UnknownLevelSource;

impl LevelSource {
    /// List of every origin.
    pub const ALL: [Self; 3] = [Self::Register, Self::File, Self::Derived];

    /// Returns the API's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::File => "file",
            Self::Derived => "derived",
        }
    }
}

impl FromStr for LevelSource {
    type Err = UnknownLevelSource;

    fn from_str(text: &str) -> Result<Self, UnknownLevelSource> {
        Self::ALL
            .into_iter()
            .find(|source| source.as_str() == text)
            .ok_or(UnknownLevelSource)
    }
}

impl serde::Serialize for StressRecord {
    /// Writes the fields of specification §2.1 in their order, then those of the level.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut record = serializer.serialize_struct("StressRecord", 6)?;
        record.serialize_field("dept", self.departement.code)?;
        record.serialize_field("name", self.departement.name)?;
        record.serialize_field("stressIndex", &self.stress_index)?;
        record.serialize_field("level", &self.level)?;
        record.serialize_field("levelSource", &self.level_source)?;
        record.serialize_field("levelAsOf", &self.level_as_of)?;
        record.end()
    }
}
