//! Random id of a version, which the database assigns with each change of a dataset.

use std::error::Error as StdError;

use tokio_postgres::types::{FromSql, Type, accepts};

/// The id of a version. Another change with the same number, after a restore or a failover, has another id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VersionId(pub [u8; 16]);

impl<'a> FromSql<'a> for VersionId {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(raw.try_into()?))
    }

    accepts!(UUID);
}
