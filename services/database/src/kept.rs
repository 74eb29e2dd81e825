//! Statements of this version, kept as SQL with the tests: the migrations of later versions are tested with them,
//! because this version's services go on reading while those are rolled out.

const READER: &str = include_str!("../tests/it/kept/reader.sql");

/// Fails unless the file prepares exactly this statement by this name. A changed statement is changed there too,
/// unless a version with the former one was released: then it gets another file.
pub fn assert_kept(name: &str, statement: &str) {
    let prepared = READER.split_once(&format!("PREPARE {name} AS "));
    let prepared = prepared.and_then(|(_, rest)| rest.split_once(';'));
    let prepared = prepared.map(|(prepared, _)| prepared);
    assert_eq!(prepared, Some(statement), "reader.sql: {name}");
}
