//! Both datasets in memory: every answer that can be asked for, made once when the data changed.

use water_database::departements::Snapshot;

use crate::answers::Answers;
use crate::{risque, stress};

/// The stress and risk answers of one snapshot of the database.
#[derive(Debug)]
pub struct Datasets {
    /// The answers of `/api/v1/stress`; none before the first load.
    pub stress: Option<Answers>,
    /// The answers of `/api/v1/risque`; none before the first load.
    pub risk: Option<Answers>,
}

impl Datasets {
    /// Serialises and compresses everything.
    pub fn prepare(snapshot: &Snapshot) -> Self {
        Self {
            stress: snapshot.stress.as_ref().map(stress::answers),
            risk: snapshot.risk.as_ref().map(risque::answers),
        }
    }
}
