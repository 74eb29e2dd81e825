//! The domain's [`Timestamp`] as PostgreSQL's `timestamptz`, both ways.

use std::error::Error as StdError;

use bytes::{BufMut, BytesMut};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};
use water_domain::Timestamp;

/// 2000-01-01T00:00:00Z, the zero of PostgreSQL's timestamps, as Unix milliseconds.
const POSTGRES_EPOCH_MILLIS: i64 = 946_684_800_000;

/// A [`Timestamp`] as a parameter or a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment(pub(crate) Timestamp);

impl Moment {
    /// Microseconds since 2000, the form on the wire.
    pub(crate) fn to_wire(self) -> i64 {
        (self.0.as_millis() - POSTGRES_EPOCH_MILLIS) * 1000
    }
}

impl ToSql for Moment {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        out.put_i64(self.to_wire());
        Ok(IsNull::No)
    }

    accepts!(TIMESTAMPTZ);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Moment {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        let micros = i64::from_be_bytes(raw.try_into()?);
        let millis = micros.div_euclid(1000) + POSTGRES_EPOCH_MILLIS;
        Timestamp::from_millis(millis)
            .map(Self)
            .ok_or_else(|| "a time beyond the year 9999".into())
    }

    accepts!(TIMESTAMPTZ);
}
