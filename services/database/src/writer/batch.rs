//! Rows of a history in PostgreSQL's binary COPY format, written as bytes without an intermediate copy.

use bytes::{BufMut, Bytes, BytesMut};
use water_domain::{Number, Timestamp};

use crate::moment::Moment;

/// A row of an analyses or audits file, checked by its reader.
#[derive(Clone, Copy, Debug)]
pub struct HistoryRow<'a> {
    /// The physical line on which the row begins, from 1.
    pub line: u64,
    /// The account, an `AccountId`'s text.
    pub account_id: &'a str,
    /// Unique within the account.
    pub id: &'a str,
    /// The company.
    pub company_name: &'a str,
    /// A `SectorCode`'s text.
    pub sector_code: &'a str,
    /// A département's code.
    pub dept_code: &'a str,
    /// `globalScore` of an analysis, `score` of an audit.
    pub score: Number,
    /// A `HistoryRating`'s text.
    pub rating: &'a str,
    /// Date of the analysis or audit.
    pub created_at: Timestamp,
}

/// The columns in the order that [`Batch::push`] writes them.
pub(crate) const COLUMNS: &str =
    "line, account_id, id, created_at, score, company_name, sector_code, dept_code, rating";
const COLUMN_COUNT: i16 = 9;

/// Signature, flags and the length of an empty extension, which begin a binary COPY.
pub(crate) const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// A row of −1 columns, which ends a binary COPY.
pub(crate) const TRAILER: &[u8] = &(-1_i16).to_be_bytes();

/// Rows that are sent together; one row is far too little for a message.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: BytesMut,
    rows: u64,
}

impl Batch {
    /// Bytes after which a batch is worth sending.
    pub const FULL: usize = 1024 * 1024;

    /// Adds a row.
    pub fn push(&mut self, row: &HistoryRow<'_>) {
        self.rows += 1;
        self.bytes.put_i16(COLUMN_COUNT);
        self.eight_bytes(row.line);
        self.text(row.account_id);
        self.text(row.id);
        self.eight_bytes(Moment(row.created_at).to_wire() as u64);
        self.eight_bytes(row.score.get().to_bits());
        self.text(row.company_name);
        self.text(row.sector_code);
        self.text(row.dept_code);
        self.text(row.rating);
    }

    /// Whether the batch should be sent.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= Self::FULL
    }

    pub(crate) fn into_parts(self) -> (Bytes, u64) {
        (self.bytes.freeze(), self.rows)
    }

    fn eight_bytes(&mut self, value: u64) {
        self.bytes.put_i32(8);
        self.bytes.put_u64(value);
    }

    fn text(&mut self, text: &str) {
        let length = i32::try_from(text.len()).expect("a reader bounds its fields far below 2 GiB");
        self.bytes.put_i32(length);
        self.bytes.put_slice(text.as_bytes());
    }
}
