//! The two datasets of the départements, as the service keeps them in memory.

use std::str::FromStr;

use tokio_postgres::Row;
use water_domain::{
    Level, LevelSource, Number, RiskRating, RiskRecord, StressRecord, Timestamp, departement,
};

use crate::database::{Connection, Database, answer};
use crate::error::Error;
use crate::moment::Moment;
use crate::version_id::VersionId;

/// Versions of the stored content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Versions {
    /// Version of the stress records.
    pub stress: Version,
    /// Version of the risk records.
    pub risk: Version,
}

/// Version of one dataset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Version {
    /// Rises with every load that changes the dataset, or the date or origin of a level; 0 before the first load.
    pub number: i64,
    /// Random id, which differs where a load after a restore or a failover got the number of an earlier one. `None` if
    /// its row is missing.
    pub id: Option<VersionId>,
}

/// Both datasets at one moment: versions and records never come from different loads.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    /// Versions of both datasets.
    pub versions: Versions,
    /// The stress records; `None` before the first load.
    pub stress: Option<Dataset<StressRecord>>,
    /// The risk records; `None` before the first load.
    pub risk: Option<Dataset<RiskRecord>>,
}

/// The records of one dataset in ASCII order of the département's code, and their date.
#[derive(Clone, PartialEq, Debug)]
pub struct Dataset<R> {
    /// The newest as-of date that changed content.
    pub updated_at: Timestamp,
    /// At most one record a département.
    pub records: Vec<R>,
    /// Stored keys of records that this version does not understand: a newer one wrote them.
    pub skipped: Vec<String>,
}

impl Snapshot {
    /// Records that are not served, such as `stress 34`.
    pub fn skipped(&self) -> Vec<String> {
        let stress = self.stress.iter().flat_map(|dataset| &dataset.skipped);
        let risk = self.risk.iter().flat_map(|dataset| &dataset.skipped);
        stress
            .map(|dept| format!("stress {dept}"))
            .chain(risk.map(|dept| format!("risk {dept}")))
            .collect()
    }
}

const VERSIONS: &str = "SELECT name, current.version, id, updated_at \
    FROM water.datasets AS current \
         LEFT JOIN water.versions ON dataset = name AND versions.version = current.version \
    WHERE name IN ('stress', 'risk')";
const STRESS: &str = "SELECT dept, stress_index, stress.level, \
           CASE WHEN level_derived THEN 'derived' WHEN register THEN 'register' ELSE 'file' END AS level_source, \
           CASE WHEN level_derived THEN input.as_of ELSE levels.as_of END AS level_as_of, \
           coalesce(stress.updated_at, input.updated_at) AS updated_at \
    FROM water.stress LEFT JOIN water.levels USING (dept) \
         CROSS JOIN (SELECT as_of, updated_at FROM water.datasets WHERE name = 'stress') AS input \
    ORDER BY dept";
const RISK: &str =
    "SELECT dept, flood, drought, overall, rating, updated_at FROM water.risk ORDER BY dept";

/// Reads the versions alone: one cheap row each, polled every second.
pub async fn versions(database: &Database) -> Result<Versions, Error> {
    const ATTEMPT: &str = "reading the versions of the datasets";
    let rows = |connection: Connection| async move {
        let rows = connection.rows(VERSIONS, &[]).await;
        (connection, rows)
    };
    let rows = database.ask(ATTEMPT, rows).await?;
    Ok(rows
        .iter()
        .fold(Versions::default(), |versions, row| versions.with(row)))
}

/// Reads both datasets in one snapshot.
pub async fn snapshot(database: &Database) -> Result<Snapshot, Error> {
    const ATTEMPT: &str = "reading the records of the départements";
    let mut connection = database.connection().await?;
    let read = answer(ATTEMPT, async {
        let transaction = connection
            .build_transaction()
            .isolation_level(tokio_postgres::IsolationLevel::RepeatableRead)
            .read_only(true)
            .start()
            .await?;
        let datasets = transaction.query(VERSIONS, &[]).await?;
        let stress = transaction.query(STRESS, &[]).await?;
        let risk = transaction.query(RISK, &[]).await?;
        transaction.commit().await?;
        Ok((datasets, stress, risk))
    })
    .await;
    let (datasets, stress, risk) = connection.answered(read)?;
    Ok(Snapshot {
        versions: datasets
            .iter()
            .fold(Versions::default(), |versions, row| versions.with(row)),
        stress: dataset(&datasets, "stress", &stress, stress_record),
        risk: dataset(&datasets, "risk", &risk, risk_record),
    })
}

impl Versions {
    fn with(mut self, row: &Row) -> Self {
        let version = Version {
            number: row.get("version"),
            id: row.get("id"),
        };
        match row.get("name") {
            "stress" => self.stress = version,
            _ => self.risk = version,
        }
        self
    }
}

/// Builds the dataset `name`, unless nothing was ever loaded into it. A record with an unknown value is skipped
/// alone: during an upgrade the next version's loader may have written it.
fn dataset<R>(
    datasets: &[Row],
    name: &str,
    rows: &[Row],
    record: fn(&Row) -> Result<R, Error>,
) -> Option<Dataset<R>> {
    let state = datasets
        .iter()
        .find(|row| row.get::<_, &str>("name") == name)?;
    let Moment(updated_at) = state.get::<_, Option<Moment>>("updated_at")?;
    let (mut records, mut skipped) = (Vec::new(), Vec::new());
    for row in rows {
        match record(row) {
            Ok(record) => records.push(record),
            Err(_) => skipped.push(row.get("dept")),
        }
    }
    Some(Dataset {
        updated_at,
        records,
        skipped,
    })
}

/// A stored stress record.
fn stress_record(row: &Row) -> Result<StressRecord, Error> {
    const ATTEMPT: &str = "reading a stress record";
    Ok(StressRecord {
        departement: departement::parse(row.get("dept"))
            .map_err(|why| Error::stored(ATTEMPT, why))?,
        stress_index: number(ATTEMPT, row, "stress_index")?,
        level: word::<Level>(ATTEMPT, row, "level")?,
        level_source: word::<LevelSource>(ATTEMPT, row, "level_source")?,
        level_as_of: moment(ATTEMPT, row, "level_as_of")?,
        updated_at: moment(ATTEMPT, row, "updated_at")?,
    })
}

/// A stored risk record.
pub(crate) fn risk_record(row: &Row) -> Result<RiskRecord, Error> {
    const ATTEMPT: &str = "reading a risk record";
    Ok(RiskRecord {
        departement: departement::parse(row.get("dept"))
            .map_err(|why| Error::stored(ATTEMPT, why))?,
        flood: number(ATTEMPT, row, "flood")?,
        drought: number(ATTEMPT, row, "drought")?,
        overall: number(ATTEMPT, row, "overall")?,
        rating: word::<RiskRating>(ATTEMPT, row, "rating")?,
        updated_at: row.get::<_, Moment>("updated_at").0,
    })
}

fn moment(attempt: &'static str, row: &Row, column: &str) -> Result<Timestamp, Error> {
    let moment = row.try_get::<_, Moment>(column);
    Ok(moment.map_err(|why| Error::stored(attempt, why))?.0)
}

/// Reads the word of a column.
pub(crate) fn word<T>(attempt: &'static str, row: &Row, column: &str) -> Result<T, Error>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    let value = row.get::<_, &str>(column).parse();
    value.map_err(|why| Error::stored(attempt, why))
}

pub(crate) fn number(attempt: &'static str, row: &Row, column: &str) -> Result<Number, Error> {
    Number::try_from(row.get::<_, f64>(column)).map_err(|why| Error::stored(attempt, why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::assert_kept;

    #[test]
    fn its_statements_are_kept_for_later_migrations() {
        assert_kept("versions", VERSIONS);
        assert_kept("stress", STRESS);
        assert_kept("risk", RISK);
    }
}
