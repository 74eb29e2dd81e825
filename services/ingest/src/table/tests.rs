//! Tables of both forms, from bytes to cells and problems.

use std::io::Cursor;

use proptest::prelude::*;
use water_kit::strict;

use super::*;

const COLUMNS: Columns = Columns {
    required: &["a", "b"],
    optional: &["c"],
    may_be_empty: false,
};

/// Rows as `line: a|b|c`, with `-` for a cell that is not given; and the problems.
fn read_bytes(bytes: impl AsRef<[u8]>) -> (Vec<String>, String) {
    let mut problems = Problems::new("f");
    let mut rows = Vec::new();
    let each = |line: u64, row: &Row, _: &mut Problems| {
        let cell = |column| {
            row.cell(column)
                .map_or("-", |cell| cell.text)
                .escape_debug()
                .to_string()
        };
        rows.push(format!("{line}: {}|{}|{}", cell(0), cell(1), cell(2)));
    };
    read(Cursor::new(bytes), COLUMNS, &mut problems, each).unwrap();
    (rows, problems.text())
}

fn rows(bytes: impl AsRef<[u8]>) -> Vec<String> {
    let (rows, problems) = read_bytes(bytes);
    assert_eq!(problems, "");
    rows
}

fn problems(bytes: impl AsRef<[u8]>) -> String {
    read_bytes(bytes).1
}

#[test]
fn columns_come_in_any_order_and_optional_ones_may_be_empty() {
    assert_eq!(rows("b,a\n1,2\n"), ["2: 2|1|-"]);
    assert_eq!(rows("c,b,a\n1,2,3\n,2,3\n"), ["2: 3|2|1", "3: 3|2|-"]);
    assert_eq!(rows("a,b\n,\n"), ["2: ||-"]);
}

#[test]
fn line_ends_of_both_kinds_and_a_missing_last_one_are_read() {
    for text in [
        "a,b\n1,2\n3,4\n",
        "a,b\r\n1,2\r\n3,4\r\n",
        "a,b\r\n1,2\r\n3,4",
        "a,b\n1,2\n3,4\n\n\n",
    ] {
        assert_eq!(rows(text), ["2: 1|2|-", "3: 3|4|-"]);
    }
    assert_eq!(rows("a,b\r\n\r\n\r\n1,\"2\"\r\n"), ["4: 1|2|-"]);
}

#[test]
fn quotes_protect_separators_quotes_and_line_ends() {
    assert_eq!(
        rows("a,b\n\"1,\"\"2\"\"\",\"3\r\n4\"\n5,6"),
        ["2: 1,\\\"2\\\"|3\\r\\n4|-", "4: 5|6|-"]
    );
}

#[test]
fn semicolons_separate_when_the_header_has_more_of_them() {
    assert_eq!(rows("a;b\n1,5;2\n"), ["2: 1,5|2|-"]);
    assert_eq!(rows("\"a\";\"b\"\n1;2\n"), ["2: 1|2|-"]);
    assert_eq!(rows("\r\n\na;b\n1;2\n"), ["4: 1|2|-"]);
}

#[test]
fn a_header_with_wrong_columns_says_all_that_is_wrong() {
    assert_eq!(
        problems("a,A,a,d\n1,2,3,4\n"),
        "f:1: unknown column \"A\": the columns are a, b and optionally c\n\
         f:1: the column a is there twice\n\
         f:1: unknown column \"d\": the columns are a, b and optionally c\n\
         f:1: the column b is missing: the columns are a, b and optionally c\n"
    );
}

#[test]
fn a_long_unknown_column_is_cut() {
    let name = "x".repeat(1000);
    let shown = "x".repeat(40);
    let columns = "the columns are a, b and optionally c";
    assert_eq!(
        problems(format!("a,b,{name}\n1,2,3\n")),
        format!("f:1: unknown column \"{shown}…\": {columns}\n")
    );
    assert_eq!(
        problems(format!("{{\"a\":1,\"b\":2,\"{name}\":3}}")),
        format!("f:1: unknown column \"{shown}…\": {columns}\n")
    );
}

#[test]
fn a_line_that_is_no_header_is_named_where_it_is() {
    for (text, why) in [
        ("\n [\n{\"a\":1}]", "2: the file is a JSON array: "),
        (
            "sep=;\r\na;b\r\n1;2\r\n",
            "1: the line is a spreadsheet's sep= ",
        ),
        (
            "\"SEP=,\"\na,b\n1,2\n",
            "1: the line is a spreadsheet's sep= ",
        ),
        ("\na\tb\n1\t2\n", "2: the columns are separated by tabs: "),
    ] {
        let said = problems(text);
        assert!(said.starts_with(&format!("f:{why}")), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn a_row_with_another_number_of_fields_is_refused() {
    assert_eq!(
        problems("a,b\n1\n1,2\n1,2,3\n"),
        "f:2: fields in this row: 1, in the header: 2\nf:4: fields in this row: 3, in the header: 2\n"
    );
}

#[test]
fn a_file_without_rows_is_refused() {
    assert_eq!(problems(""), "f:1: the file is empty\n");
    assert_eq!(problems("\r\n\n"), "f:1: the file is empty\n");
    assert_eq!(problems("a,b\n"), "f:1: the file has no rows\n");
}

#[test]
fn a_quote_that_stays_open_is_refused_where_it_was_opened() {
    for end in ["", "\n", "\n3,4\n5,6"] {
        assert_eq!(
            problems(format!("a,b\n1,2\n1,\"2{end}")),
            "f:3: a quote is opened and never closed\n"
        );
    }
    let endless = format!("a,b\n1,\"{}", "x".repeat(3 << 20));
    assert_eq!(
        problems(endless),
        "f:2: the row is longer than 1 MiB: is a quote not closed?\n"
    );
}

#[test]
fn a_stray_quote_is_refused_and_never_merges_two_rows() {
    let stray =
        "a quote stands inside a field without quotes: quote the whole field and double that quote";
    let after = "text follows a closing quote: double the quotes inside a quoted field";
    for (text, line, why) in [
        ("a,b\n\"1,x\n2,\"y,z\n", 3, after),
        ("a;b\n1;\"x;2\n3;\"y;4\n", 3, after),
        ("a,b\n1,\"3\".5\n", 2, after),
        ("a,b\n1,\"12\"7\n", 2, after),
        ("a,b\n1,\"2\" \n", 2, after),
        ("a,b\n1,x\"2\"\n", 2, stray),
        ("a,b\n1, \"2\"\n", 2, stray),
        (
            "a,b\n1,2\rx,3\n",
            2,
            "a carriage return is not followed by a line feed",
        ),
    ] {
        assert_eq!(problems(text), format!("f:{line}: {why}\n"), "{text:?}");
    }
}

#[test]
fn text_that_is_not_utf8_is_refused_with_the_byte() {
    assert_eq!(
        problems(b"a,b\n1,2\nH\xe9rault,2\n"),
        "f:3: a: byte 0xE9 is not UTF-8 (is it Windows-1252?): save the file as UTF-8, \
         or add --encoding windows-1252 if it is\n"
    );
    assert_eq!(
        problems(b"{\"a\":\"\xe9\"}\n"),
        "f:1: byte 0xE9 is not UTF-8 (is it Windows-1252?): save the file as UTF-8, \
         or add --encoding windows-1252 if it is\n"
    );
    assert_eq!(
        problems(b"\xff\xfea\0,\0b\0"),
        "f:1: the file is UTF-16: save it as UTF-8\n"
    );
}

#[test]
fn one_json_object_a_line_is_a_table_too() {
    assert_eq!(
        rows("{\"b\":1.50,\"a\":\"x\\ny\"}\n\n{\"a\":\"\u{e9}\",\"b\":\"\",\"c\":\"z\"}"),
        ["1: x\\ny|1.50|-", "3: é||z"]
    );
    assert_eq!(rows("\r\n\n{\"a\":\"x\",\"b\":1}\n"), ["3: x|1|-"]);
}

#[test]
fn a_json_object_with_wrong_members_says_all_that_is_wrong() {
    assert_eq!(
        problems("{\"a\":null,\"d\":1,\"c\":true}\n{\"a\":[1],\"b\":1,\"b\":2}\n[1]\n{\"a\":1,}\n"),
        "f:1: a: null is no value\n\
         f:1: unknown column \"d\": the columns are a, b and optionally c\n\
         f:1: c: true and false are no values here\n\
         f:1: the column b is missing: the columns are a, b and optionally c\n\
         f:2: a: an array or an object is no value here\n\
         f:2: the column b is there twice\n\
         f:3: this is no JSON object (at byte 0 of the line)\n\
         f:4: this is no JSON object (at byte 8 of the line)\n"
    );
}

/// Bytes that get far into the readers more often than random bytes do.
fn nearly_a_table() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"a,b\n".to_vec()),
        Just(b"a;b;c\r\n".to_vec()),
        Just(b"{\"a\":1,\"b\":\"2\"}\n".to_vec()),
        Just(b"\"".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"1,2\r\n".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..8),
    ];
    proptest::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

/// Text of the characters with a meaning in CSV, and a few others.
fn nearly_csv() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => Just("\""),
        4 => Just(","),
        4 => Just("\n"),
        2 => Just("\r\n"),
        1 => Just("\r"),
        1 => Just(";"),
        4 => Just("1"),
        2 => Just("é"),
    ];
    let rows = proptest::collection::vec(piece, 0..16);
    rows.prop_map(|pieces| format!("a,b\n{}", pieces.concat()))
}

/// Rows that the strict reader finds in a text whose header is right; `None` if it is not a table.
fn strictly(text: &str) -> Option<Vec<String>> {
    let records = strict::records(text, ',')?;
    let rows = records
        .iter()
        .skip(1)
        .map(|record| match record.as_slice() {
            [a, b] => Some(format!("{}|{}|-", a.escape_debug(), b.escape_debug())),
            _ => None,
        });
    rows.collect::<Option<Vec<_>>>()
        .filter(|rows| !rows.is_empty())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_table_is_accepted_exactly_as_the_strict_reader_reads_it(text in nearly_csv()) {
        let (rows, problems) = read_bytes(&text);
        let rows: Vec<_> = rows
            .iter()
            .filter_map(|row| Some(row.split_once(": ")?.1.to_owned()))
            .collect();
        prop_assert_eq!(problems.is_empty().then_some(rows), strictly(&text));
    }

    #[test]
    fn any_bytes_are_read_or_refused_and_never_panic(bytes in nearly_a_table()) {
        let (rows, problems) = read_bytes(&bytes);
        prop_assert!(!rows.is_empty() || !problems.is_empty());
    }

    #[test]
    fn a_quoted_cell_comes_back_as_it_was(cells in proptest::collection::vec("[a-z\",;\r\n é]{1,9}", 2)) {
        let quoted: Vec<_> = cells.iter().map(|cell| format!("\"{}\"", cell.replace('"', "\"\""))).collect();
        let text = format!("a,b\n{}\n", quoted.join(","));
        let wanted: Vec<_> = cells.iter().map(|cell| cell.escape_debug().to_string()).collect();
        prop_assert_eq!(rows(text), vec![format!("2: {}|-", wanted.join("|"))]);
    }
}
