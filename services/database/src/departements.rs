//! The two datasets of the départements, as the service keeps them in memory.

use tokio_postgres::Row;
use water_domain::{Level, Number, RiskRating, RiskRecord, StressRecord, Timestamp, departement};

use crate::database::{Database, answer};
use crate::error::Error;
use crate::moment::Moment;

/// Which content is stored; each number rises with every load that changes its dataset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Versions {
    /// Of the stress records; 0 before the first load.
    pub stress: i64,
    /// Of the risk records; 0 before the first load.
    pub risk: i64,
}

/// Both datasets at one moment: versions and records never come from different loads.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    /// Which content this is.
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
    /// The stored keys of records that this version does not understand: a newer one wrote them.
    pub skipped: Vec<String>,
}

impl Snapshot {
    /// What is not served, such as `stress 34`.
    pub fn skipped(&self) -> Vec<String> {
        let stress = self.stress.iter().flat_map(|dataset| &dataset.skipped);
        let risk = self.risk.iter().flat_map(|dataset| &dataset.skipped);
        stress
            .map(|dept| format!("stress {dept}"))
            .chain(risk.map(|dept| format!("risk {dept}")))
            .collect()
    }
}

const VERSIONS: &str =
    "SELECT name, version, updated_at FROM water.datasets WHERE name IN ('stress', 'risk')";
const STRESS: &str = "SELECT dept, stress_index, level FROM water.stress ORDER BY dept";
const RISK: &str =
    "SELECT dept, flood, drought, overall, rating, updated_at FROM water.risk ORDER BY dept";

/// The versions alone: one cheap row each, to be asked every second.
pub async fn versions(database: &Database) -> Result<Versions, Error> {
    const ATTEMPT: &str = "reading the versions of the datasets";
    let connection = database.connection().await?;
    let rows = answer(ATTEMPT, async {
        let statement = connection.prepare_cached(VERSIONS).await?;
        connection.query(&statement, &[]).await
    })
    .await;
    let rows = connection.answered(rows)?;
    Ok(rows
        .iter()
        .fold(Versions::default(), |versions, row| versions.with(row)))
}

/// Both datasets in one snapshot.
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
        match row.get("name") {
            "stress" => self.stress = row.get("version"),
            _ => self.risk = row.get("version"),
        }
        self
    }
}

/// The dataset `name`, unless nothing was ever loaded into it. A record with a value that is not
/// understood stops itself only: during an upgrade the next version's loader may have written it.
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
pub(crate) fn stress_record(row: &Row) -> Result<StressRecord, Error> {
    const ATTEMPT: &str = "reading a stress record";
    Ok(StressRecord {
        departement: departement::parse(row.get("dept"))
            .map_err(|why| Error::stored(ATTEMPT, why))?,
        stress_index: number(ATTEMPT, row, "stress_index")?,
        level: row
            .get::<_, &str>("level")
            .parse::<Level>()
            .map_err(|why| Error::stored(ATTEMPT, why))?,
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
        rating: row
            .get::<_, &str>("rating")
            .parse::<RiskRating>()
            .map_err(|why| Error::stored(ATTEMPT, why))?,
        updated_at: row.get::<_, Moment>("updated_at").0,
    })
}

fn number(attempt: &'static str, row: &Row, column: &str) -> Result<Number, Error> {
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
