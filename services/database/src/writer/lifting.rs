//! Levels that end together: their orders may have ended, or their source may have lost its content. If they still end in
//! the register's answer half a day later, that is accepted.

use std::collections::BTreeMap;

use tokio_postgres::Transaction;
use water_domain::{Departement, Level, Timestamp};

use crate::error::{Attempt, Error};
use crate::moment::Moment;
use crate::writer::legal::Legal;

/// Number of levels that may end in one load without a check, where others stay: orders of a few départements end
/// every week.
const FEW: usize = 10;

/// The register's answer: each département and its level, `None` if it is unknown.
pub(super) type Levels = [(&'static Departement, Option<Level>)];

/// Measured levels above `normal`, and the effect of a load on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lifting {
    /// Départements with such a level.
    pub(super) restricted: usize,
    /// Départements whose level becomes `normal`.
    pub(super) ended: usize,
    /// Whether no level of the answer is above `normal`.
    everywhere: bool,
}

impl Lifting {
    /// Compares the stored levels with an answer, of which `ended` levels fall to `normal`.
    pub(super) fn new(stored: &BTreeMap<&str, Legal>, levels: &Levels, ended: usize) -> Self {
        Self {
            restricted: restricted(stored),
            ended,
            everywhere: levels
                .iter()
                .all(|(_, level)| level.is_none_or(|level| level == Level::Normal)),
        }
    }

    /// Compares the stored levels with a stress file, which may give levels to some départements only: `ended` of them
    /// fall to `normal`.
    pub(super) fn of_a_part(stored: &BTreeMap<&str, Legal>, ended: usize) -> Self {
        let restricted = restricted(stored);
        Self {
            restricted,
            ended,
            everywhere: ended == restricted,
        }
    }

    /// Whether a source that has lost its content could have given these levels.
    pub(super) fn is_doubtful(self) -> bool {
        let most = self.ended > FEW && self.ended * 2 > self.restricted;
        self.ended > 0 && (most || self.everywhere)
    }
}

fn restricted(stored: &BTreeMap<&str, Legal>) -> usize {
    let restricted = stored.values().filter(|legal| legal.is_restriction());
    restricted.count()
}

/// Returns the time since which all these levels ended in each refused answer that was compared, if that is at least
/// half a day: a daily load finds its own refusal the next day. An answer that is unreadable, too old or synthetic is
/// not compared, and says nothing of them.
pub(super) async fn refused_at(
    transaction: &Transaction<'_>,
    ended: &[&str],
) -> Result<Option<Timestamp>, Error> {
    let sql = "SELECT max(refused_at) AS refused_at FROM water.refused_liftings WHERE dept = ANY($1) \
               HAVING count(*) = $2 AND max(refused_at) <= clock_timestamp() - interval '12 hours'";
    let count = ended.len() as i64;
    let row = transaction.query_opt(sql, &[&ended, &count]).await;
    let row = row.attempting("reading refused answers of the register")?;
    Ok(row.map(|row| row.get::<_, Moment>("refused_at").0))
}

/// Remembers the levels that end in a refused answer.
pub(super) async fn remember(transaction: &Transaction<'_>, ended: &[&str]) -> Result<(), Error> {
    let sql = "INSERT INTO water.refused_liftings (dept, refused_at) \
               SELECT dept, clock_timestamp() FROM unnest($1::text[]) AS dept ON CONFLICT DO NOTHING";
    let noted = transaction.execute(sql, &[&ended]).await;
    noted.attempting(NOTING)?;
    Ok(())
}

/// Forgets the levels that do not end in a refused answer: a register that loses other levels each day is never
/// believed.
pub(super) async fn forget_others(
    transaction: &Transaction<'_>,
    ended: &[&str],
) -> Result<(), Error> {
    let sql = "DELETE FROM water.refused_liftings WHERE dept <> ALL($1)";
    let forgotten = transaction.execute(sql, &[&ended]).await;
    forgotten.attempting(NOTING)?;
    Ok(())
}

const NOTING: &str = "noting a refused answer of the register";

/// Forgets all refused answers, once another one was loaded.
pub(super) async fn forget(transaction: &Transaction<'_>) -> Result<(), Error> {
    let sql = "DELETE FROM water.refused_liftings";
    let forgotten = transaction.execute(sql, &[]).await;
    forgotten.attempting("forgetting refused answers of the register")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lifting(restricted: usize, ended: usize, everywhere: bool) -> Lifting {
        Lifting {
            restricted,
            ended,
            everywhere,
        }
    }

    #[test]
    fn an_end_of_all_levels_or_of_most_is_doubtful_and_one_of_a_few_is_not() {
        assert!(lifting(1, 1, true).is_doubtful());
        assert!(lifting(35, 35, true).is_doubtful());
        assert!(lifting(21, 11, false).is_doubtful());
        assert!(!lifting(22, 11, false).is_doubtful());
        assert!(!lifting(11, 10, false).is_doubtful());
    }

    #[test]
    fn a_winter_without_levels_is_not_doubtful() {
        assert!(!lifting(0, 0, true).is_doubtful());
    }
}
