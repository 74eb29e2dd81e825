//! Both datasets in memory: every possible answer, made once when the data changed.

use water_database::departements::Snapshot;

use crate::answers::Answers;
use crate::{risque, stress};

/// The stress and risk answers of one snapshot of the database.
#[derive(Debug)]
pub struct Datasets {
    /// Answers of `/api/v1/stress`; `None` before the first load.
    pub stress: Option<Answers>,
    /// Answers of `/api/v1/risque`; `None` before the first load.
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
