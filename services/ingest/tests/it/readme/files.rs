//! Files that are refused or accepted with a warning, one for each message of the README.

use crate::command::{ANALYSES, gzip};
use crate::readme::STRESS;

const RISK: &str = "dept,flood,drought,overall,rating,updatedAt\n";

fn rows(header: &str, rows: &str) -> Vec<u8> {
    format!("{header}{rows}\n").into_bytes()
}

/// A row of an analysis with one value exchanged.
fn analysis(column: usize, value: &str) -> Vec<u8> {
    let mut cells = [
        "acme",
        "1",
        "Eaux",
        "36.00Z",
        "34",
        "1",
        "A",
        "2026-01-01T00:00:00Z",
    ];
    cells[column] = value;
    rows(ANALYSES, &cells.join(","))
}

/// Each refusal and a file with it, whose name is the message's begin.
pub fn refused() -> Vec<(&'static str, Vec<u8>)> {
    let stress = |text: &str| rows(STRESS, text);
    let risk = |text: &str| rows(RISK, text);
    let long = "x".repeat(1_100_000);
    let truncated = |mut bytes: Vec<u8>| {
        bytes.truncate(bytes.len() - 4);
        bytes
    };
    vec![
        ("stress.csv:1: the file is empty", Vec::new()),
        ("stress.csv:1: the file has no rows", STRESS.into()),
        (
            "stress.csv:1: unknown column \"stress\": the columns are dept, stressIndex and optionally level, name, synthetic",
            "dept,stress\n34,1\n".into(),
        ),
        (
            "stress.csv:1: the column dept is there twice",
            "dept,dept,stressIndex\n34,34,1\n".into(),
        ),
        (
            "stress.csv:1: the column stressIndex is missing: the columns are dept, stressIndex and optionally level, name, synthetic",
            "dept\n34\n".into(),
        ),
        (
            "stress.csv:2: fields in this row: 1, in the header: 2",
            stress("34"),
        ),
        (
            "stress.csv:2: the row has more than 256 fields",
            stress(&"1,".repeat(300)),
        ),
        (
            "stress.csv:3: a quote is opened and never closed",
            stress("34,1\n35,\"1"),
        ),
        (
            "stress.csv:2: text follows a closing quote: double the quotes inside a quoted field",
            stress("34,\"1\"x"),
        ),
        (
            "stress.csv:2: a quote stands inside a field without quotes: quote the whole field and double that quote",
            stress("34,1\""),
        ),
        (
            "stress.csv:2: a carriage return is not followed by a line feed",
            stress("34,1\rx"),
        ),
        (
            "stress.csv:2: the row is longer than 1 MiB: is a quote not closed?",
            stress(&format!("34,\"{long}")),
        ),
        (
            "stress.csv:2: name: byte 0xE9 is not UTF-8 (is it Windows-1252?): save the file as UTF-8, or add --encoding windows-1252 if it is",
            b"dept,stressIndex,name\n34,1,H\xe9rault\n".into(),
        ),
        (
            "stress.csv:1: the file is UTF-16: save it as UTF-8",
            b"\xff\xfed\0e\0".into(),
        ),
        (
            "stress.csv:1: the file is a spreadsheet's workbook (.xlsx, .ods) or another zip: save the sheet as CSV UTF-8",
            b"PK\x03\x04rest".into(),
        ),
        (
            "stress.csv:1: the file is a spreadsheet's workbook (.xls): save the sheet as CSV UTF-8",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".into(),
        ),
        (
            "stress.csv:1: the file is packed with zstd: decompress it first, or pack it with gzip",
            b"\x28\xb5\x2f\xfd\x04\x58\x99".into(),
        ),
        (
            "stress.csv:1: the file is Parquet: export it as CSV UTF-8 or as NDJSON",
            b"PAR1\x15\x04\x15\x10".into(),
        ),
        (
            "stress.csv:1: the file is a JSON array: write one object a line (NDJSON), as jq -c '.[]' does",
            br#"[{"dept": "34", "stressIndex": 2.5}]"#.into(),
        ),
        (
            "stress.csv:1: the columns are separated by tabs: export the file as CSV UTF-8, with , or ;",
            "dept\tstressIndex\n34\t1\n".into(),
        ),
        (
            "stress.csv:1: the line is a spreadsheet's sep= and no header: remove it",
            "sep=;\r\ndept;stressIndex\r\n34;1\r\n".into(),
        ),
        (
            "stress.csv:1: the gzip data is damaged or cut off",
            truncated(gzip("dept,stressIndex\n34,1\n")),
        ),
        (
            "stress.ndjson:1: this is no JSON object (at byte 2 of the line)",
            "{x}\n".into(),
        ),
        (
            "stress.ndjson:2: the line is longer than 1 MiB",
            format!("{{}}\n{{\"{long}").into(),
        ),
        (
            "stress.ndjson:1: stressIndex: null is no value",
            r#"{"dept":"34","stressIndex":null}"#.into(),
        ),
        (
            "stress.ndjson:1: level: true and false are no values here",
            r#"{"dept":"34","stressIndex":1,"level":true}"#.into(),
        ),
        (
            "stress.ndjson:1: level: an array or an object is no value here",
            r#"{"dept":"34","stressIndex":1,"level":[]}"#.into(),
        ),
        (
            "stress.ndjson:1: level: this is no JSON string",
            r#"{"dept":"34","stressIndex":1,"level":"\ud800"}"#.into(),
        ),
        (
            "stress.ndjson:1: stressIndex: 3 is text: write a number without quotes",
            r#"{"dept":"34","stressIndex":"3"}"#.into(),
        ),
        (
            "stress.ndjson:1: dept: 34 is a number: write it as text, in quotes",
            r#"{"dept":34,"stressIndex":3}"#.into(),
        ),
        (
            "stress.csv:2: stressIndex: there is no value",
            stress("34,"),
        ),
        (
            "stress.csv:2: stressIndex: NULL is no value",
            stress("34,NULL"),
        ),
        (
            "stress.csv:2: stressIndex: -9999 stands for no value",
            stress("34,-9999.0"),
        ),
        ("stress.csv:2: stressIndex: x is no number", stress("34,x")),
        (
            "stress.csv:2: stressIndex: 3,5 is no number: a decimal comma is read only in files separated by ;",
            stress("34,\"3,5\""),
        ),
        (
            "stress.csv:3: stressIndex: 1,234 has a decimal comma and line 2 has a decimal point: write one of them in the whole file",
            "dept;stressIndex\n34;2.5\n75;1,234\n".into(),
        ),
        (
            "stress.csv:2: stressIndex: 5.7 is outside 0..5",
            stress("34,5.7"),
        ),
        (
            "stress.csv:2: level: red: a level is one of normal, vigilance, alerte, alerte_renforcee, crise",
            "dept,stressIndex,level\n34,1,red\n".into(),
        ),
        (
            "stress.csv:2: synthetic: yes: write true or false, as text",
            "dept,stressIndex,synthetic\n34,1,yes\n".into(),
        ),
        (
            "stress.csv:2: dept: 20: there is no such département: Corsica has been 2A (Corse-du-Sud) and 2B (Haute-Corse) since 1976",
            stress("20,1"),
        ),
        (
            "stress.csv:2: dept: 975: there is no such département: 975 is Saint-Pierre-et-Miquelon, an overseas collectivité and not a département",
            stress("975,1"),
        ),
        (
            "stress.csv:2: dept: 97: there is no such département: the overseas départements are 971 to 974 and 976; the collectivités have no record",
            stress("97,1"),
        ),
        (
            "stress.csv:2: dept: 99: there is no such département",
            stress("99,1"),
        ),
        (
            "stress.csv:2: dept: x: a département code is two digits, 2A, 2B, or three digits that begin with 97 or 98",
            stress("x,1"),
        ),
        (
            "stress.csv:3: dept: 34 was given in line 2 already",
            stress("34,1\n34,1"),
        ),
        (
            "risk.csv:2: flood: 101 is outside 0..100",
            risk("34,101,1,1,,"),
        ),
        (
            "risk.csv:2: rating: F: a risk rating is one of A, B, C, D, E",
            risk("34,1,1,1,F,"),
        ),
        (
            "risk.csv:2: updatedAt: 2026-07-01: a time is RFC 3339 with an offset, such as 2026-07-01T00:00:00Z, in the years 0000 to 9999 of UTC",
            risk("34,1,1,1,,2026-07-01"),
        ),
        (
            "risk.csv:2: updatedAt: 1999-12-31T23:59:59.000Z is before the year 2000",
            risk("34,1,1,1,,1999-12-31T23:59:59Z"),
        ),
        (
            "risk.csv:2: updatedAt: 2999-01-01T00:00:00.000Z is more than a day ahead",
            risk("34,1,1,1,,2999-01-01T00:00:00Z"),
        ),
        (
            "analyses.csv:2: accountId: \"a b\": an account id is 1 to 63 letters, digits, '.', '_' or '-', and begins and ends with a letter or digit",
            analysis(0, "a b"),
        ),
        (
            "analyses.csv:2: id: it has the control character U+0000",
            analysis(1, "a\0b"),
        ),
        (
            "analyses.csv:2: id: it is longer than 128 characters",
            analysis(1, &"x".repeat(129)),
        ),
        (
            "analyses.csv:2: id: it has the invisible character U+200B: remove it",
            analysis(1, "p\u{200b}1"),
        ),
        (
            "analyses.csv:2: id: 1.57713E+18 is a number that a spreadsheet has rounded: export the column as text",
            analysis(1, "1.57713E+18"),
        ),
        (
            "analyses.csv:2: id: p-\u{fffd} has U+FFFD in the place of a lost character: export the file again as UTF-8",
            analysis(1, "p-\u{fffd}"),
        ),
        (
            "analyses.csv:2: id: it begins or ends with white space",
            analysis(1, " 1"),
        ),
        ("analyses.csv:2: companyName: it is blank", analysis(2, " ")),
        (
            "analyses.csv:2: companyName: it has a line end: is a quote not closed?",
            analysis(2, "\"a\nb\""),
        ),
        (
            "analyses.csv:2: companyName: it is longer than 300 characters",
            analysis(2, &"x".repeat(301)),
        ),
        (
            "analyses.csv:2: sectorCode: a/b: a sector code is 1 to 16 letters, digits, '.', '_' or '-'",
            analysis(3, "a/b"),
        ),
        (
            "analyses.csv:2: rating: b: a rating is 1 to 8 upper-case letters, digits, '+' or '-', and begins with a letter",
            analysis(6, "b"),
        ),
        (
            "analyses.csv:3: id: the record of line 2 is there again with different content",
            [
                analysis(5, "1"),
                analysis(5, "2")[ANALYSES.len()..].to_vec(),
            ]
            .concat(),
        ),
        (
            "vigieau.json:1: this is no JSON array (at column 0 of the line)",
            "{}".into(),
        ),
        ("vigieau.json:1: the file has no départements", "[]".into()),
        (
            "vigieau.json:1: the file is longer than 16 MiB",
            " ".repeat((16 << 20) + 1).into(),
        ),
        (
            "vigieau.json:1: byte 0xE9 is not UTF-8 (is it Windows-1252?): save the file as UTF-8",
            b"[\"\xe9\"]".into(),
        ),
        (
            "vigieau.json:1: 1 of 1 entries cannot be read, more than 10 percent: load a later answer of the register",
            r#"[{"code":"34"}]"#.into(),
        ),
    ]
}

/// Each warning and a file with it, likewise.
pub fn accepted() -> [(&'static str, Vec<u8>); 7] {
    let register = include_str!("../../../data/vigieau-2026-07-02.json");
    [
        (
            "stress.csv:3: warning: name: Yonne is not the name of 75 (Paris)",
            "dept,stressIndex,name\n34,1,Hérault\n75,1,Yonne\n".into(),
        ),
        (
            "stress.csv:1: warning: stressIndex: every index is below 1: if these are ratios, such as bws_raw of Aqueduct, load scores from 0 to 5, such as bws_score",
            rows(STRESS, "34,0.35"),
        ),
        (
            "stress.csv:3: warning: the last line has no end, so it may be cut off: 75,2",
            format!("{STRESS}34,1\n75,2").into(),
        ),
        (
            "analyses.csv:2: warning: companyName: SociÃ©tÃ© looks like UTF-8 that was read as Windows-1252: export the file again as UTF-8",
            analysis(2, "SociÃ©tÃ©"),
        ),
        (
            "analyses.csv:2: warning: companyName: Soci\u{fffd}t\u{fffd} has U+FFFD in the place of a lost character: export the file again as UTF-8",
            analysis(2, "Soci\u{fffd}t\u{fffd}"),
        ),
        (
            "vigieau.json:1: warning: code: 978: there is no such département: 978 is Saint-Martin, an overseas collectivité and not a département: the entry is skipped",
            register
                .replacen('[', r#"[{"code":"978","niveauGraviteMax":null},"#, 1)
                .into(),
        ),
        (
            "vigieau.json:1: warning: niveauGraviteMax: the member is missing: the stored level of 971 is kept",
            register.replacen('[', r#"[{"code":"971"},"#, 1).into(),
        ),
    ]
}
